// SPDX-License-Identifier: MIT
// A journal on a disk that loses power at random moments, beside a model that knows what must be
// there afterwards. Used by the crash test, and by the probe that the planted defects must not
// pass.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "durable/compaction.hpp"
#include "durable/journal_support.hpp"
#include "durable/payload_keys.hpp"

namespace journal_aid {

/// The journal broke a promise.
struct violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The power is gone: every call fails from now on.
struct power_failure : std::system_error {
  power_failure() : system_error(std::make_error_code(std::errc::io_error), "power failure") {}
};

/// A disk that works for so many calls.
class failing_power {
 public:
  void fail_after(std::uint64_t calls) { left_ = calls; }
  bool off() const noexcept { return left_ == 0; }
  void use() {
    if (left_ > 0) --left_;
    if (left_ == 0) throw power_failure();
  }

 private:
  std::uint64_t left_ = UINT64_MAX;
};

class powered_file final : public weir::disk_file {
 public:
  powered_file(std::unique_ptr<weir::disk_file> file, failing_power& power)
      : disk_file(file->path()), file_(std::move(file)), power_(power) {}

  std::size_t pread(std::span<std::byte> into, std::uint64_t offset) override {
    return file_->pread(into, offset);
  }
  std::size_t pwrite(std::span<const std::byte> from, std::uint64_t offset) override {
    power_.use();
    return file_->pwrite(from, offset);
  }
  std::uint64_t size() const override { return file_->size(); }
  void truncate(std::uint64_t size) override {
    power_.use();
    file_->truncate(size);
  }
  void preallocate(std::uint64_t size) override {
    power_.use();
    file_->preallocate(size);
  }
  void sync() override {
    power_.use();
    file_->sync();
  }

 private:
  std::unique_ptr<weir::disk_file> file_;
  failing_power& power_;
};

class powered_disk final : public weir::disk {
 public:
  explicit powered_disk(weir::disk& real) : disk_(real) {}

  failing_power power;

  std::unique_ptr<weir::disk_file> open(const std::string& path, weir::open_mode mode) override {
    power.use();
    return std::make_unique<powered_file>(disk_.open(path, mode), power);
  }
  void rename(const std::string& from, const std::string& to) override {
    power.use();
    disk_.rename(from, to);
  }
  void unlink(const std::string& path) override {
    power.use();
    disk_.unlink(path);
  }
  void make_directory(const std::string& path) override {
    power.use();
    disk_.make_directory(path);
  }
  std::vector<std::string> list(const std::string& directory) override {
    return disk_.list(directory);
  }
  bool exists(const std::string& path) override { return disk_.exists(path); }
  void sync_directory(const std::string& directory) override {
    power.use();
    disk_.sync_directory(directory);
  }
  std::unique_ptr<weir::disk_lock> lock(const std::string& path) override {
    return disk_.lock(path);
  }

 private:
  weir::disk& disk_;
};

/// One journal and its lives, each of which ends with the power. What is appended depends on the
/// LSN in its size and on the life in its content, so frames that a crash took away fit exactly
/// where later ones stand.
class crash_model {
 public:
  explicit crash_model(std::uint64_t seed, std::uint64_t frame_bytes)
      : random_(seed), rig_(seed), frame_bytes_(frame_bytes) {
    rig_.disk.make_directory("j");
    rig_.disk.make_directory("j/blob");
    rig_.disk.sync_directory("/");
    rig_.disk.sync_directory("j");
  }

  /// Errors of the disk besides the loss of power; they end a life, too, and then the next one may
  /// find what the page cache still shows.
  void set(weir::sim::disk_faults faults) {
    faults.torn = 0.5;
    faults.reorder = 0.3;
    faults_ = faults;
  }

  /// From this life on payloads are sealed, each life may have another key, and no payload that was
  /// written then is ever on the disk as it is. What was written before is sealed by compactions.
  void encrypt(std::uint64_t first_life = 1) { encrypted_from_ = first_life; }

  /// Throws `violation`.
  void live_and_crash() {
    ++life_;
    powered_disk disk(rig_.disk);
    disk.power.fail_after(random_.below(5) == 0 ? 1 + random_.below(30) : 12 + random_.below(80));
    before_.clear();
    if (random_.below(2) == 0) before_ = tail();
    rig_.disk.set(faults_);
    try {
      journal j(options(disk));
      open(j, disk);
      std::uint64_t commits = random_.below(4) == 0 ? random_.below(8) : UINT64_MAX;
      while (!disk.power.off() && commits-- > 0) {
        work(j, disk, 1 + random_.below(6));
        if (compacts_) compact(j, disk);
      }
      if (!disk.power.off()) j.close();  // the power may go in the middle of it, too
    } catch (const weir::error& e) {
      if (!disk.power.off()) accept(e);
    }
    rig_.disk.set({.torn = faults_.torn, .reorder = faults_.reorder});
    if (disk.power.off() || random_.below(2) == 0) rig_.disk.crash();
    if (life_ >= encrypted_from_ && life_ % 6 == 0) require_sealed();
  }

  /// From now on runs are forgotten, and their records removed by compactions.
  void compact() { compacts_ = true; }

  std::size_t acknowledged() const noexcept { return acknowledged_; }
  std::size_t compactions() const noexcept { return compactions_; }

 private:
  /// Small frames, so that a batch has several, and any of them may be lost.
  journal_options options(weir::disk& disk) const {
    journal_options o = on(disk);
    o.frame_bytes = frame_bytes_;
    if (life_ < encrypted_from_) return o;
    o.keys = keys();
    o.salt.emplace();
    std::memcpy(o.salt->data() + 8, &life_, sizeof life_);
    return o;
  }

  static std::array<std::string, 3> all_keys() {
    return {std::string(32, 'a'), std::string(32, 'b'), std::string(32, 'c')};
  }
  std::size_t present_key() const noexcept { return (life_ / 3) % 3; }

  /// A key that changes now and then, and the ones before.
  std::shared_ptr<const weir::detail::key_ring> keys() const {
    const auto all = all_keys();
    const std::array<std::string_view, 3> old{all[0], all[1], all[2]};
    return weir::detail::key_ring::make(all[present_key()], old);
  }

  struct kept {
    std::string payload;
    record_place place = 0;
    bool forgotten = false;  // it may be there, and need not
    bool sealed = false;     // when it was appended
  };

  /// Compares what is read with what was appended.
  class checker final : public weir::detail::record_reader {
   public:
    explicit checker(std::vector<kept>& log) : log_(log) {}

    void see(const record_head& head, std::string_view payload, std::uint64_t lsn,
             record_place place) override {
      if (!problem.empty() || head.run == 0) return;
      while (count + 1 < lsn && count < log_.size() && log_[count].forgotten) ++count;
      if (lsn != count + 1)
        problem = "something was left out before record " + std::to_string(lsn);
      else if (count >= log_.size())
        problem = "invented: record " + std::to_string(lsn);
      else if (payload != log_[count].payload || head.run != lsn)
        problem = "wrong content: record " + std::to_string(lsn);
      else if (place != log_[count].place)
        problem = "another place: record " + std::to_string(lsn);
      ++count;
    }

    std::size_t count = 0;
    std::string problem;

   private:
    std::vector<kept>& log_;
  };

  void accept(const weir::error& e) const {
    const bool expected =
        (faults_.eio > 0 || faults_.sync_error > 0) && e.code() == weir::errc::journal_failed;
    if (!expected) throw violation("not to be expected: " + std::string(e.what()));
  }

  std::string payload_of(std::uint64_t lsn) const {
    disk_support::generator shape(lsn);
    const std::uint64_t kind = shape.below(300);
    // Where syncs fail, segments are short-lived: their beginnings are what a sync can spoil.
    const std::uint64_t of_medium_size = faults_.sync_error > 0 ? 200 : 30;
    std::uint64_t size = shape.below(700);
    if (kind < of_medium_size) size = shape.below(9000);
    if (kind == 0) size = 16385 + shape.below(3000);
    // The same few words again and again, which is quick, and another text for each life.
    disk_support::generator fill(lsn * 1000 + life_);
    std::array<std::uint64_t, 8> words{};
    for (std::uint64_t& word : words) word = fill.next();
    std::string text(static_cast<std::size_t>(size), '\0');
    for (std::size_t i = 0; i < text.size(); i += sizeof words)
      std::memcpy(text.data() + i, words.data(), std::min(sizeof words, text.size() - i));
    return text;
  }

  void open(journal& j, powered_disk& disk) {
    checker seen(log_);
    j.open(seen);
    if (!seen.problem.empty()) throw violation(seen.problem);
    while (seen.count < j.last_lsn() && seen.count < log_.size() && log_[seen.count].forgotten)
      ++seen.count;
    if (seen.count < acknowledged_)
      throw violation("lost: " + std::to_string(acknowledged_) + " records were acknowledged, " +
                      std::to_string(seen.count) + " are there");
    log_.resize(seen.count);
    if (j.durable_lsn() != log_.size() || j.last_lsn() != log_.size())
      throw violation("the numbers of the last record are wrong");
    acknowledged_ = log_.size();
    if (disk.power.off()) return;
    if (!before_.empty() && revive()) {
      // One commit, of one frame, in front of what was cut off before; perhaps a second one.
      disk.power.fail_after(3 + random_.below(2));
      work(j, disk, 1);
    }
  }

  /// Appends records and commits them.
  void work(journal& j, const powered_disk& disk, std::uint64_t records) {
    for (std::uint64_t n = records; n > 0; --n) {
      const std::uint64_t lsn = log_.size() + 1;
      kept k{.payload = payload_of(lsn), .sealed = life_ >= encrypted_from_};
      const weir::detail::secret_part all{0, static_cast<std::uint32_t>(k.payload.size())};
      const std::span secrets(&all, k.payload.empty() ? 0 : 1);
      const auto appended = j.append({.type = 1, .run = lsn}, {k.payload, secrets});
      if (appended.lsn != lsn) throw violation("a wrong LSN");
      k.place = appended.place;
      log_.push_back(std::move(k));
    }
    if (random_.below(4) == 0) read_some(j);
    auto batch = j.take();
    note_acknowledged(j);
    if (batch == nullptr) throw violation("nothing to take");
    if (random_.below(4) == 0) read_some(j);
    if (faults_.sync_error > 0 && random_.below(20) == 0) rig_.disk.fail_next_sync();
    j.commit(*batch);
    if (disk.power.off()) throw violation("committed without power");
    j.committed(std::move(batch));
    note_acknowledged(j);
    if (j.durable_lsn() != log_.size()) throw violation("committed, but not durable");
  }

  void require_sealed() {
    const image now = files(rig_.disk);
    for (std::size_t i = log_.size() > 8 ? log_.size() - 8 : 0; i < log_.size(); ++i)
      if (log_[i].sealed) require_hidden(now, i);
    note_nonces(now);
  }

  void require_hidden(const image& now, std::size_t i) const {
    const std::string_view some = std::string_view(log_[i].payload).substr(0, 64);
    if (some.size() < 16) return;
    for (const auto& [name, content] : now)
      if (content.find(some) != std::string::npos)
        throw violation("record " + std::to_string(i + 1) + " can be read in " + name);
  }

  /// Under one key and salt no counter may stand for two payloads, ever.
  void note_nonces(const image& now) {
    namespace d = weir::detail;
    for (const auto& [name, content] : now) {
      if (name.starts_with("blob/")) {
        note_nonce(content);
        continue;
      }
      std::size_t at = d::segment_number(name) ? d::segment_header_bytes : d::snapshot_header_bytes;
      if (!d::segment_number(name) && !d::snapshot_number(name)) continue;
      const auto bytes = std::as_bytes(std::span(content));
      while (at + d::frame_header_bytes <= bytes.size()) {
        const auto head = d::peek_frame(bytes.subspan(at));
        if (!head || at + head->bytes > bytes.size()) break;
        d::record_cursor cursor(bytes.subspan(at, head->bytes));
        for (d::record_view r; cursor.next(r);)
          if ((r.head.flags & d::record_is_sealed) != 0 && (r.head.flags & d::record_is_blob) == 0)
            note_nonce(r.payload);
        at += head->bytes;
      }
    }
  }

  void note_nonce(std::string_view stored) {
    if (weir::detail::sealed_with(stored) == 0) return;
    const std::string nonce = std::string(stored.substr(0, 4)).append(stored.substr(8, 24));
    const std::size_t content = std::hash<std::string_view>{}(stored);
    if (nonces_.emplace(nonce, content).first->second != content)
      throw violation("a nonce was used for two payloads");
  }

  /// After a compaction nothing is left of other keys, and nothing readable of times without one.
  void require_present_key_suffices(journal& j) {
    const image now = files(rig_.disk);
    note_nonces(now);
    if (j.may_be_replaced().segments > 0) return;
    for (const auto& [name, content] : now) {
      const auto number = weir::detail::segment_number(name);
      const auto bytes = std::as_bytes(std::span(content));
      if (!number || content.size() < weir::detail::segment_header_bytes) continue;
      const auto header =
          weir::detail::decode_segment_header(bytes.first<weir::detail::segment_header_bytes>());
      if (header && header->key_id != keys()->present()) return;  // nothing appended yet
    }
    for (std::size_t i = 0; i < log_.size(); i += 7) require_hidden(now, i);
    const auto all = all_keys();
    open_copy(now, all[present_key()], weir::errc{});
    open_copy(now, all[(present_key() + 1) % all.size()], weir::errc::wrong_key);
  }

  /// What opening the files elsewhere, with one key, leads to.
  void open_copy(const image& now, const std::string& key, weir::errc expected) {
    disk_support::rig other(1);
    restore(other.disk, now);
    journal_options o = on(other.disk);
    o.keys = weir::detail::key_ring::make(key);
    const weir::errc code = errc_of([&] {
      checker seen(log_);
      journal copy(o);
      copy.open(seen);
      if (!seen.problem.empty()) throw violation("with the present key alone: " + seen.problem);
      return 0;
    });
    if (code != expected)
      throw violation("opening with another set of keys ends with " +
                      std::to_string(static_cast<int>(code)));
  }

  /// Begins a compaction, or has a slice of it done, or neither.
  void compact(journal& j, const powered_disk& disk) {
    const auto old = j.may_be_replaced();
    if (!j.compacting() && (old.segments == 0 || random_.below(6) != 0)) return;
    if (!j.compacting()) {
      weir::detail::compaction_plan plan;
      plan.last_segment = old.last_segment;
      for (std::size_t i = 0; i < log_.size(); ++i) {
        if (random_.below(3) == 0 && log_[i].place < weir::detail::make_place(old.last_segment, 0))
          log_[i].forgotten = true;
        if (!log_[i].forgotten) plan.keep.add(i + 1);
      }
      plan.closing = [](auto) {
        return weir::detail::compaction_plan::closing_record{{.type = 19}, "the end"};
      };
      plan.secrets = [](const record_head&, std::string_view payload, auto& parts) {
        if (!payload.empty()) parts.push_back({0, static_cast<std::uint32_t>(payload.size())});
      };
      plan.needs = j.last_lsn();
      j.begin_compaction(std::move(plan));
    }
    for (std::uint64_t slices = random_.below(8); slices > 0 && j.compacting(); --slices) {
      auto batch = j.take_to_compact();
      if (faults_.sync_error > 0 && random_.below(20) == 0) rig_.disk.fail_next_sync();
      j.commit(*batch);
      j.committed(std::move(batch));
      if (j.failed()) return;
      if (!j.compacting() && !j.compaction_error()) {
        ++compactions_;
        if (life_ >= encrypted_from_ && compactions_ % 4 == 0) require_present_key_suffices(j);
      }
      if (!disk.power.off() && !log_.empty()) read_some(j);
    }
  }

  void note_acknowledged(const journal& j) {
    acknowledged_ = std::max(acknowledged_, static_cast<std::size_t>(j.durable_lsn()));
  }

  void read_some(journal& j) {
    const auto i = static_cast<std::size_t>(random_.below(log_.size()));
    if (log_[i].forgotten) return;
    std::string payload;
    if (j.read(log_[i].place, payload).run != i + 1 || payload != log_[i].payload)
      throw violation("read gives another record than " + std::to_string(i + 1));
  }

  /// Where the zeros at the end begin, in words.
  static std::size_t used_end(const std::string& bytes) {
    std::size_t end = bytes.size() / 8 * 8;
    for (std::uint64_t word = 0; end > 0; end -= 8) {
      std::memcpy(&word, bytes.data() + end - 8, 8);
      if (word != 0) break;
    }
    return end;
  }

  /// The last two segments as they are now.
  image tail() {
    image found;
    std::vector<std::string> names;
    for (const std::string& name : rig_.disk.list("j"))
      if (weir::detail::segment_number(name)) names.push_back(name);
    if (names.size() > 2) names.erase(names.begin(), names.end() - 2);
    for (const std::string& name : names) found[name] = disk_support::get(rig_.disk, "j/" + name);
    return found;
  }

  /// Writes back what opening the journal has cut off: zeroing it is one defence, the epoch is
  /// another, and this shows that it suffices. False if nothing was.
  bool revive() {
    rig_.disk.set({});
    bool any = false;
    for (const auto& [name, now] : tail()) {
      const std::string& then = before_[name];
      const std::size_t from = used_end(now);  // frames are aligned, as this is
      if (used_end(then) <= from) continue;
      auto file = rig_.disk.open("j/" + name, weir::open_mode::read_write);
      disk_support::put(*file, std::string_view(then).substr(from), from);
      file->sync();
      any = true;
    }
    rig_.disk.set(faults_);
    return any;
  }

  disk_support::generator random_;
  disk_support::rig rig_;
  std::uint64_t frame_bytes_;  // 1: each record has a frame of its own
  weir::sim::disk_faults faults_{.torn = 0.5, .reorder = 0.3};
  std::uint64_t encrypted_from_ = UINT64_MAX;  // a life
  std::unordered_map<std::string, std::size_t> nonces_;
  std::uint64_t life_ = 0;
  std::vector<kept> log_;  // all that was appended and may still be there
  std::size_t acknowledged_ = 0;
  image before_;
  bool compacts_ = false;
  std::size_t compactions_ = 0;
};

}  // namespace journal_aid
