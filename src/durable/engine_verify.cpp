// SPDX-License-Identifier: MIT
// Replaying what a journal has recorded against the present code, without changing anything.
#include "durable/engine_core.hpp"

#include <ostream>
#include <unordered_map>
#include <unordered_set>

#include "core/error_notes.hpp"
#include "durable/journal_reader.hpp"

namespace weir::detail {

namespace {

/// The first reading: which runs there are, and where the records of each end.
class run_finder final : public journal_visitor {
 public:
  explicit run_finder(site_table& sites) noexcept : sites_(sites) {}
  void restart() override {
    last.clear();
    newest.clear();
    sites_.clear();
  }
  void see(const record_head& head, std::string_view payload, std::uint64_t lsn,
           record_place) override {
    if (static_cast<record_type>(head.type) == record_type::compacted)
      for (const std::uint64_t run : compacted_record::read(payload).forgotten) last.erase(run);
    if (static_cast<record_type>(head.type) == record_type::site)
      sites_.see(site_record::read(payload));
    if (starts_run(head.type)) start(head, payload);
    each_sent_start(head, payload, [&](const record_head& sent, std::string_view bytes) {
      start(sent, bytes);
      last[sent.run].lsn = lsn;
    });
    const auto found = last.find(head.run);
    if (found == last.end() || found->second.ended) return;
    found->second.lsn = lsn;
    found->second.ended = ends_run(head.type);
    if (found->second.missing > 0 && !starts_run(head.type)) --found->second.missing;
  }

  struct state {
    std::uint64_t lsn = 0;
    std::uint64_t missing = 0;  // records of a fork
    bool ended = false;
  };
  std::unordered_map<std::uint64_t, state> last;
  std::unordered_map<std::string, std::uint64_t> newest;  // by id

 private:
  void start(const record_head& head, std::string_view payload) {
    payload_reader in(payload);
    const start_record s = start_record::read(in);
    state made;
    const auto type = static_cast<record_type>(head.type);
    if (type == record_type::restart) last.erase(restart_record::read(in).replaced);
    if (type == record_type::fork) made.missing = fork_record::read(in).records;
    last.emplace(head.run, made);
    newest.insert_or_assign(std::string(s.id), head.run);
  }

  site_table& sites_;
};

/// The second reading: collects the records of a run and passes them on with the last one that the
/// first reading has found, so that few histories are in memory at a time.
template <class F, class G>
class run_collector final : public journal_visitor {
 public:
  run_collector(const run_finder& all, std::optional<std::uint64_t> only, F take, G forget)
      : all_(all), only_(only), take_(std::move(take)), forget_(std::move(forget)) {}
  void restart() override {
    open_.clear();
    forget_();
  }
  /// At the end: runs whose last record was moved in between.
  void finish() {
    for (const auto& [number, records] : open_)
      if (starts_run(records.front().head.type)) take_(records);
  }
  void see(const record_head& head, std::string_view payload, std::uint64_t lsn,
           record_place) override {
    add(head, payload, lsn);
    each_sent_start(head, payload, [&](const record_head& sent, std::string_view bytes) {
      add(sent, bytes, lsn);
    });
  }

 private:
  void add(const record_head& head, std::string_view payload, std::uint64_t lsn) {
    if (only_ && head.run != *only_) return;
    const auto of = all_.last.find(head.run);
    if (of == all_.last.end() || of->second.missing > 0 || lsn > of->second.lsn) return;
    std::vector<exported_record>& records = open_[head.run];
    records.push_back({head, std::string(payload)});
    if (lsn < of->second.lsn) return;
    const std::vector<exported_record> whole = std::move(records);
    open_.erase(head.run);
    take_(whole);
  }

  const run_finder& all_;
  std::optional<std::uint64_t> only_;
  F take_;
  G forget_;
  std::unordered_map<std::uint64_t, std::vector<exported_record>> open_;
};

/// How a run ended, as its last record says; nullopt: it has not.
std::optional<command_answer> recorded_end(const exported_record& last) {
  if (!ends_run(last.head.type)) return std::nullopt;
  const answer_record read = answer_record::read(last.payload);
  command_answer end;
  end.how = answer_kind(last.head.flags);
  end.code = read.code == errc{} ? errc::terminal : read.code;
  end.text = read.text;
  return end;
}

/// It was cancelled while it was blocked: its code did not lead to its end.
bool ended_blocked(const std::vector<exported_record>& records, const command_answer& end) {
  if (end.how != command_answer::kind::cancelled) return false;
  for (const exported_record& r : records)
    if (r.head.type == static_cast<std::uint16_t>(record_type::cancel)) return false;
  return true;
}

}  // namespace

std::string engine_core::look_at(const std::vector<exported_record>& records,
                                 const exported_run* exported, durable::replay_difference& found) {
  payload_reader in(records.front().payload);
  const start_record start = start_record::read(in);
  durable_run run(*this, records.front().head.run);
  describe(run, start);
  durable_object object;  // what was read of it is recorded
  object.name = object_of_handler(start.handler);
  object.key = start.key;
  const handler_kind kind = kind_of_start(records.front().head.flags);
  if (kind != handler_kind::plain)
    run.part = std::make_unique<object_part>(object_part{&object, kind == handler_kind::shared});
  if (static_cast<record_type>(records.front().head.type) == record_type::restart)
    run.life = restart_record::read(in).life;
  found.id = run.id.view();
  found.handler = run.handler();
  found.version = static_cast<int>(run.version);
  const std::optional<command_answer> end = recorded_end(records.back());
  if (end && ended_blocked(records, *end)) return {};
  const handler_base* code = code_of(run);
  if (code == nullptr)
    return "no handler '" + run.handler() + "' of version " + std::to_string(run.version) +
           " was added";
  run_history past;
  if (exported != nullptr) past.awakeables = exported->awakeables;
  record_place place = 0;
  for (auto r = records.begin() + 1; r != records.end() - (end ? 1 : 0); ++r)
    past.add(r->head, r->payload, ++place);
  const in_loop outside(host_);
  try {
    run.begun = true;
    run.begin(*code, std::string(start.input), std::move(past));
  } catch (...) {
    const std::string why = message_of(std::current_exception());
    if (run.live != nullptr) run.discard();
    return why + "; handler '" + run.handler() + "' was added at " + text_of(code->added);
  }
  std::string difference = run.look(end);
  if (run.live != nullptr) run.evict("it was only replayed");
  return difference;
}

durable::replay_report engine_core::look_at_runs(const char* what, const std::string& id) {
  require_here(what);
  if (opened_ || ended_)
    raise(errc::already_open,
          text_of_use(what) + " was opened before; make another one and call this instead of open");
  journal_reader from(setup_.disk != nullptr ? *setup_.disk : real_disk(), setup_.path,
                      setup_.keys);
  durable::replay_report report;
  run_finder all(sites_);
  from.read(all);
  if (from.view().key_id != 0 && setup_.keys == nullptr)
    raise(errc::wrong_key,
          text_of_use(what) + " has an encrypted journal; give the engine its encryption_key");
  std::optional<std::uint64_t> only;
  if (!id.empty()) {
    const auto found = all.newest.find(id);
    if (found == all.newest.end() || all.last.at(found->second).missing > 0)
      raise(errc::invalid_argument, "run '" + id + "' is not in the journal '" + setup_.path + "'");
    only = found->second;
  }
  secret_ = from.view().secret;
  auto take = [&](const std::vector<exported_record>& records) {
    durable::replay_difference found;
    found.message = look_at(records, nullptr, found);
    ++report.runs;
    if (!found.message.empty()) report.differences.push_back(std::move(found));
  };
  run_collector reader(all, only, take, [&] { report = {}; });
  from.read(reader);
  reader.finish();
  return report;
}

durable::replay_report engine_core::look_at_export(const exported_run& from) {
  for (const std::string& site : from.sites) sites_.see(site_record::read(site));
  durable::replay_report report;
  durable::replay_difference found;
  found.message = look_at(from.records, &from, found);
  report.runs = 1;
  if (!found.message.empty()) report.differences.push_back(std::move(found));
  return report;
}

task<durable::replay_report> replay_exported(std::string file,
                                             std::shared_ptr<const handler_base> handler) {
  std::string bytes;
  const auto opened = real_disk().open(file, open_mode::read);
  bytes.resize(static_cast<std::size_t>(opened->size()));
  (void)read_up_to(*opened, std::as_writable_bytes(std::span(bytes)), 0);
  const exported_run run = read_export(bytes, file);
  durable::engine_options options;
  options.path = file;
  const auto core = std::make_shared<engine_core>(engine_setup(options));
  const start_record start = start_record::read(run.records.front().payload);
  core->add_handler(start.handler, std::move(handler), static_cast<int>(start.version));
  co_return core->look_at_export(run);
}

}  // namespace weir::detail

namespace weir::durable {

std::ostream& operator<<(std::ostream& out, const replay_report& report) {
  for (const replay_difference& d : report.differences)
    out << "run '" << d.id << "' of handler '" << d.handler << "', version " << d.version << ": "
        << d.message << "\n";
  out << report.runs << (report.runs == 1 ? " run replayed, " : " runs replayed, ");
  if (report.ok()) return out << "no difference";
  return out << report.differences.size() << " with a difference";
}

}  // namespace weir::durable
