// SPDX-License-Identifier: MIT
#include "sim/disk_state.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "sim/disk_error.hpp"

namespace weir::detail {

namespace {

// Like the kernel's limits; far below 2^64, so that sums of sizes cannot overflow.
constexpr std::uint64_t file_bytes_max = std::uint64_t{1} << 44;
constexpr std::uint64_t offset_max = std::numeric_limits<std::int64_t>::max();

/// The components of a path from the root, without "." and "..".
std::vector<std::string> components(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    std::string part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

std::string normal(const std::string& path) {
  std::string text;
  for (const std::string& part : components(path)) text.append("/").append(part);
  return text;
}

void require_offset(std::string_view call, const std::string& path, std::uint64_t offset) {
  if (offset > offset_max) raise_disk(EINVAL, call, path, at_offset(offset));
}

void require_size(std::string_view call, const std::string& path, std::uint64_t size) {
  if (size > file_bytes_max)
    raise_disk(size > offset_max ? EINVAL : EFBIG, call, path, to_size(size));
}

}  // namespace

disk_state::place disk_state::resolve(std::string_view call, const std::string& path) const {
  if (path.empty()) raise_disk(ENOENT, call, path);
  place at{{}, root_directory};
  for (std::string& part : components(path)) {
    if (at.node == 0) raise_disk(ENOENT, call, path);
    if (!nodes_.at(at.node).directory) raise_disk(ENOTDIR, call, path);
    at.name = {at.node, std::move(part)};
    at.node = names_.find(at.name);
  }
  return at;
}

node_id disk_state::directory_at(std::string_view call, const std::string& path) const {
  const place at = resolve(call, path);
  if (at.node == 0) raise_disk(ENOENT, call, path);
  if (!nodes_.at(at.node).directory) raise_disk(ENOTDIR, call, path);
  return at.node;
}

node_id disk_state::make_node(const disk_name& name, bool directory) {
  const node_id made = ++last_node_;
  nodes_[made].directory = directory;
  names_.change(host_.owner(), {{name, made}});
  return made;
}

handle_id disk_state::open(const std::string& path, open_mode mode) {
  if (happens(faults_.eio)) raise_disk(EIO, "open", path);
  place at = resolve("open", path);
  if (at.node != 0 && mode == open_mode::create_new) raise_disk(EEXIST, "open", path);
  if (at.node != 0 && nodes_.at(at.node).directory) raise_disk(EISDIR, "open", path);
  if (at.node == 0) {
    if (mode == open_mode::read || mode == open_mode::read_write) raise_disk(ENOENT, "open", path);
    at.node = make_node(at.name, false);
  }
  files_[++last_handle_] = {at.node, host_.owner(), mode != open_mode::read};
  return last_handle_;
}

/// Whether a path leads through a directory.
bool disk_state::is_inside(const std::string& path, node_id directory) const {
  node_id at = root_directory;
  for (std::string& part : components(path)) {
    if (at == directory) return true;
    at = names_.find({at, std::move(part)});
  }
  return false;
}

void disk_state::require_movable(const place& from, const place& to, const std::string& from_path,
                                 const std::string& to_path) const {
  const auto refuse = [&](int error) {
    raise_disk(error, "rename", from_path, " to '" + to_path + "'");
  };
  if (from.node == 0) refuse(ENOENT);
  if (from.node == root_directory || to.node == root_directory) refuse(EBUSY);
  if (to.node == from.node) return;
  if (is_inside(to_path, from.node)) refuse(EINVAL);
  if (to.node == 0) return;
  if (is_inside(from_path, to.node)) refuse(ENOTEMPTY);
  const bool directory = nodes_.at(from.node).directory;
  if (directory && !nodes_.at(to.node).directory) refuse(ENOTDIR);
  if (!directory && nodes_.at(to.node).directory) refuse(EISDIR);
  if (directory && !names_.list(to.node).empty()) refuse(ENOTEMPTY);
}

void disk_state::rename(const std::string& from, const std::string& to) {
  const place source = resolve("rename", from);
  const place target = resolve("rename", to);
  require_movable(source, target, from, to);
  if (source.node == target.node) return;
  if (target.node != 0) mark_unlinked(target.node);
  names_.change(host_.owner(), {{source.name, 0}, {target.name, source.node}});
}

void disk_state::unlink(const std::string& path) {
  const place at = resolve("unlink", path);
  if (at.node == 0) raise_disk(ENOENT, "unlink", path);
  if (nodes_.at(at.node).directory) raise_disk(EISDIR, "unlink", path);
  mark_unlinked(at.node);
  names_.change(host_.owner(), {{at.name, 0}});
}

void disk_state::make_directory(const std::string& path) {
  const place at = resolve("make_directory", path);
  if (at.node == 0) {
    make_node(at.name, true);
  } else if (!nodes_.at(at.node).directory) {
    raise_disk(EEXIST, "make_directory", path);
  }
}

std::vector<std::string> disk_state::list(const std::string& directory) {
  return names_.list(directory_at("list", directory));
}

bool disk_state::exists(const std::string& path) const {
  node_id at = path.empty() ? 0 : root_directory;
  for (std::string& part : components(path)) {
    at = names_.find({at, std::move(part)});
    if (at == 0) return false;
  }
  return at != 0;
}

bool disk_state::sync_fails() {
  return std::exchange(next_sync_fails_, false) || happens(faults_.sync_error);
}

void disk_state::sync_directory(const std::string& directory) {
  const node_id at = directory_at("sync_directory", directory);
  if (sync_fails()) {
    names_.drop_unsynced(at);
    raise_disk(EIO, "sync_directory", directory);
  }
  if (names_.sync(at)) sweep();
}

handle_id disk_state::lock(const std::string& path) {
  const place at = resolve("lock", path);
  if (at.node != 0 && nodes_.at(at.node).directory) raise_disk(EISDIR, "lock", path);
  if (locks_.contains(normal(path))) raise_disk_locked(path);
  if (at.node == 0) make_node(at.name, false);
  locks_[normal(path)] = {++last_handle_, host_.owner()};
  return last_handle_;
}

void disk_state::unlock(handle_id id) noexcept {
  std::erase_if(locks_, [&](const auto& entry) { return entry.second.handle == id; });
}

const disk_state::opened& disk_state::handle(handle_id file, std::string_view call,
                                             const std::string& path) const {
  const auto found = files_.find(file);
  if (found == files_.end()) raise_disk(EBADF, call, path, ": closed by a crash");
  return found->second;
}

std::size_t disk_state::pread(handle_id file, const std::string& path, std::span<std::byte> into,
                              std::uint64_t offset) {
  const opened& at = handle(file, "pread", path);
  require_offset("pread", path, offset);
  if (happens(faults_.eio)) raise_disk(EIO, "pread", path, at_offset(offset));
  return nodes_.at(at.node).content.read(into, offset);
}

std::size_t disk_state::pwrite(handle_id file, const std::string& path,
                               std::span<const std::byte> from, std::uint64_t offset) {
  const opened& at = handle(file, "pwrite", path);
  if (!at.writable) raise_disk(EBADF, "pwrite", path, at_offset(offset));
  require_offset("pwrite", path, offset);
  if (happens(faults_.eio)) raise_disk(EIO, "pwrite", path, at_offset(offset));
  if (from.empty()) return 0;
  if (offset >= file_bytes_max) raise_disk(EFBIG, "pwrite", path, at_offset(offset));
  disk_content& content = nodes_.at(at.node).content;
  std::uint64_t count = std::min<std::uint64_t>(from.size(), file_bytes_max - offset);
  if (offset + count > content.size()) {
    const std::uint64_t end_max = content.size() + std::min(room(), file_bytes_max);
    if (end_max <= offset) raise_disk(ENOSPC, "pwrite", path, at_offset(offset));
    count = std::min(count, end_max - offset);
  }
  if (count > 1 && happens(faults_.short_write)) count = 1 + host_.below(count - 1);
  const auto done = static_cast<std::size_t>(count);
  content.write(host_.owner(), from.first(done), offset);
  return done;
}

std::uint64_t disk_state::size(handle_id file, const std::string& path) const {
  return nodes_.at(handle(file, "stat", path).node).content.size();
}

/// Bytes by which files may still grow. Unlinked files count while they are open.
std::uint64_t disk_state::room() const {
  if (faults_.space == std::int64_t{unbounded}) return std::numeric_limits<std::uint64_t>::max();
  std::set<node_id> present = names_.named();
  for (const auto& [id, file] : files_) present.insert(file.node);
  std::uint64_t used = 0;
  for (const node_id id : present) used += nodes_.at(id).content.size();
  const auto space = static_cast<std::uint64_t>(faults_.space);
  return used < space ? space - used : 0;
}

void disk_state::grow(node& file, std::string_view call, const std::string& path,
                      std::uint64_t size) {
  if (size - file.content.size() > room()) raise_disk(ENOSPC, call, path, to_size(size));
  file.content.resize(host_.owner(), size);
}

void disk_state::truncate(handle_id file, const std::string& path, std::uint64_t size) {
  const opened& at = handle(file, "truncate", path);
  if (!at.writable) raise_disk(EINVAL, "truncate", path, to_size(size));
  require_size("truncate", path, size);
  node& cut = nodes_.at(at.node);
  if (size > cut.content.size()) {
    grow(cut, "truncate", path, size);
  } else if (size < cut.content.size()) {
    cut.content.resize(host_.owner(), size);
  }
}

void disk_state::preallocate(handle_id file, const std::string& path, std::uint64_t size) {
  const opened& at = handle(file, "preallocate", path);
  if (size == 0) return;
  if (!at.writable) raise_disk(EBADF, "preallocate", path, to_size(size));
  require_size("preallocate", path, size);
  node& grown = nodes_.at(at.node);
  if (size > grown.content.size()) grow(grown, "preallocate", path, size);
}

void disk_state::sync(handle_id file, const std::string& path) {
  disk_content& content = nodes_.at(handle(file, "sync", path).node).content;
  if (sync_fails()) {
    content.drop_unsynced();
    raise_disk(EIO, "sync", path);
  }
  content.sync();
}

void disk_state::close(handle_id file) noexcept {
  const auto found = files_.find(file);
  if (found == files_.end()) return;
  const bool unlinked = nodes_.at(found->second.node).unlinked;
  files_.erase(found);
  if (unlinked) sweep();
}

void disk_state::mark_unlinked(node_id id) { nodes_.at(id).unlinked = true; }

/// Frees the nodes that are unreachable now and after a crash.
void disk_state::sweep() {
  std::set<node_id> known = names_.collect();
  for (const auto& [id, file] : files_) known.insert(file.node);
  std::erase_if(nodes_, [&](const auto& entry) { return !known.contains(entry.first); });
}

void disk_state::crash(std::optional<std::uint32_t> owner) {
  const disk_crash how{host_, faults_, owner};
  std::erase_if(files_, [&](const auto& entry) { return how.hits(entry.second.owner); });
  std::erase_if(locks_, [&](const auto& entry) { return how.hits(entry.second.owner); });
  for (auto& [id, each] : nodes_) each.content.crash(how);
  names_.crash(how);
  sweep();
}

}  // namespace weir::detail
