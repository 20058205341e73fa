// SPDX-License-Identifier: MIT
#include <weir/io/file.hpp>

#include <algorithm>
#include <cerrno>
#include <limits>

#include <sys/stat.h>

#include <weir/detail/core/run_rules.hpp>

#include "io/file_core.hpp"

namespace weir::io {

// ------------------------------------------------------------------ file

namespace {

task<file> open_on_pool(std::string path, mode how) {
  auto call = [&path, how] { return detail::open_file(path, how); };
  detail::owned_descriptor opened = co_await blocking(call);
  co_return file(std::make_shared<detail::file_core>(std::move(opened), std::move(path), how));
}

task<> close_on_pool(detail::file_ref f) {
  if (f == nullptr || !f->begin_close()) co_return;
  auto call = [&f] { f->close(); };
  co_await blocking(call);
}

}  // namespace

task<file> file::open(std::string_view path, mode how) {
  return open_on_pool(std::string(path), how);
}

task<> file::close() {
  if (core_ != nullptr) core_->require_home();
  return close_on_pool(core_);
}

const detail::file_ref& file::use(const char* what) const {
  if (core_ == nullptr)
    detail::raise(errc::closed, std::string(what) + ": the file was moved from, or never opened");
  core_->require_home();
  if (core_->closed()) core_->raise_closed(what);
  return core_;
}

std::size_t file::read(detail::file_core& f, std::uint64_t offset, std::span<std::byte> into) {
  return f.read_at(offset, into);
}
void file::write(detail::file_core& f, std::uint64_t offset, std::span<const std::byte> bytes) {
  f.write_at(offset, bytes);
}
void file::append_to(detail::file_core& f, std::span<const std::byte> bytes) { f.append(bytes); }
void file::sync_data(detail::file_core& f) { f.sync(); }
std::uint64_t file::size_of(detail::file_core& f) { return f.size(); }

// ------------------------------------------------------------------ read_file

namespace {

[[noreturn]] void raise_too_large(const std::string& path, std::size_t max) {
  detail::raise(errc::too_large, "read_file: '" + path + "' is larger than " + std::to_string(max) +
                                     " bytes; raise the limit, or read it with io::chunks");
}

// The size that the system reports is a hint: files grow, and those of /proc have none.
std::string read_whole(const std::string& path, std::size_t max) {
  const detail::owned_descriptor from = detail::open_file(path, mode::read);
  struct stat found{};
  const bool known = ::fstat(from.get(), &found) == 0 && S_ISREG(found.st_mode);
  const std::size_t hint = known ? static_cast<std::size_t>(found.st_size) : 0;
  if (hint > max) raise_too_large(path, max);
  constexpr std::size_t least = 4096;
  std::string text;
  for (std::size_t wanted = std::max(hint, least - 1) + 1;; wanted = 2 * text.size()) {
    const std::size_t had = text.size();
    if (max < wanted) wanted = max == std::numeric_limits<std::size_t>::max() ? max : max + 1;
    text.resize(wanted);
    const std::int64_t n =
        detail::read_fully(from.get(), std::as_writable_bytes(std::span(text).subspan(had)));
    if (n < 0) detail::raise_system(static_cast<int>(-n), "cannot read file '" + path + "'");
    text.resize(had + static_cast<std::size_t>(n));
    if (text.size() > max) raise_too_large(path, max);
    if (text.size() < wanted) return text;
  }
}

task<std::string> read_on_pool(std::string path, std::size_t max) {
  auto call = [&path, max] { return read_whole(path, max); };
  co_return co_await blocking(call);
}

}  // namespace

task<std::string> read_file(std::string_view path, std::size_t max) {
  return read_on_pool(std::string(path), max);
}

}  // namespace weir::io

// ------------------------------------------------------------------ streams

namespace weir::detail {

/// Reads a file piece by piece, from its begin to its end; opens it for the first one.
class file_reader {
 public:
  file_reader(std::string path, std::size_t n) : path_(std::move(path)), n_(n) {}

  /// Empty at the end. On the blocking pool.
  std::string next() {
    if (!from_) from_ = open_file(path_, io::mode::read);
    std::string piece;
    while (piece.size() < n_) {  // in steps: `n_` may be much more than there is
      const std::size_t had = piece.size();
      const std::size_t wanted = std::min(n_ - had, std::max(had, std::size_t{1} << 16));
      piece.resize(had + wanted);
      const std::int64_t n =
          read_fully(from_.get(), std::as_writable_bytes(std::span(piece).subspan(had)));
      if (n < 0) raise_system(static_cast<int>(-n), "cannot read file '" + path_ + "'");
      piece.resize(had + static_cast<std::size_t>(n));
      if (static_cast<std::size_t>(n) < wanted) break;
    }
    return piece;
  }

 private:
  std::string path_;
  std::size_t n_;
  owned_descriptor from_;
};

file_chunks_stage::file_chunks_stage(std::string path, std::size_t n) {
  require_no_run("a stream of a file", path);
  if (n == 0) raise(errc::invalid_argument, "io::chunks: pieces of 0 bytes; give 1 or more");
  reader_ = std::make_shared<file_reader>(std::move(path), n);
}

pull file_chunks_stage::poll(std::optional<std::string>& out, composite& owner) {
  require_no_run("a stream of a file");
  if (!piece_.made()) piece_.make(blocking([r = reader_] { return r->next(); }).release());
  if (!piece_.poll(owner)) return pull::pending;
  std::string piece = piece_.take();
  piece_.drop();
  if (piece.empty()) return pull::end;
  out.emplace(std::move(piece));
  return pull::value;
}

void file_chunks_stage::shut(closing&) noexcept {
  piece_.drop();
  reader_.reset();
}

file_lines_stage::file_lines_stage(std::string path, std::size_t max)
    : path_(path), max_(max), pieces_(std::move(path), std::size_t{1} << 16) {}

pull file_lines_stage::poll(std::optional<std::string>& out, composite& owner) {
  while (!take_line(out)) {
    if (ended_) return pull::end;
    std::optional<std::string> piece;
    const pull answer = pieces_.poll(piece, owner);
    if (answer == pull::pending) return pull::pending;
    if (answer == pull::end) {
      ended_ = true;
    } else if (begin_ == read_.size()) {
      read_ = std::move(*piece);
      begin_ = looked_ = 0;
    } else {
      read_.erase(0, begin_);
      looked_ -= begin_;
      begin_ = 0;
      read_.append(*piece);
    }
  }
  return pull::value;
}

bool file_lines_stage::take_line(std::optional<std::string>& out) {
  const std::size_t found = read_.find('\n', looked_);
  const bool last = found == std::string::npos;
  std::size_t end = last ? read_.size() : found;
  if (last && (!ended_ || begin_ == end)) {
    looked_ = end;
    require_short(end - begin_ - (end > begin_ && read_[end - 1] == '\r' ? 1 : 0));
    return false;
  }
  const std::size_t next = last ? end : found + 1;
  if (!last && end > begin_ && read_[end - 1] == '\r') --end;
  require_short(end - begin_);
  out.emplace(read_, begin_, end - begin_);
  begin_ = looked_ = next;
  return true;
}

void file_lines_stage::require_short(std::size_t length) const {
  if (length > max_)
    raise(errc::too_long, "io::lines: a line of '" + path_ + "' is longer than " +
                              std::to_string(max_) + " bytes; raise the limit");
}

}  // namespace weir::detail
