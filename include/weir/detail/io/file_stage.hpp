// SPDX-License-Identifier: MIT
// The streams of io::lines and io::chunks: each piece is one call on the blocking pool. A call that
// runs while its pull is cancelled is waited for, and its piece stays here for the next pull.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include <weir/blocking.hpp>
#include <weir/detail/flow/stage.hpp>

namespace weir::detail {

class file_reader;

class file_chunks_stage {
 public:
  using value_type = std::string;
  static constexpr bool leaves_pending = false;

  file_chunks_stage(std::string path, std::size_t n);
  pull poll(std::optional<std::string>& out, composite& owner);
  unsigned withdraw_all() noexcept { return piece_.withdraw_all(); }
  void shut(closing&) noexcept;
  void describe(dump_line& line) const { piece_.describe(line); }

 private:
  std::shared_ptr<file_reader> reader_;
  wait_leaf<blocking_wait<std::string>> piece_;
};

class file_lines_stage {
 public:
  using value_type = std::string;
  static constexpr bool leaves_pending = false;

  file_lines_stage(std::string path, std::size_t max);
  pull poll(std::optional<std::string>& out, composite& owner);
  unsigned withdraw_all() noexcept { return pieces_.withdraw_all(); }
  void shut(closing& c) noexcept { pieces_.shut(c); }
  void describe(dump_line& line) const { pieces_.describe(line); }

 private:
  bool take_line(std::optional<std::string>& out);
  void require_short(std::size_t length) const;

  std::string path_;
  std::size_t max_;
  file_chunks_stage pieces_;
  std::string read_;        // what was read
  std::size_t begin_ = 0;   // of the next line in it
  std::size_t looked_ = 0;  // no line ends between `begin_` and here
  bool ended_ = false;
};

}  // namespace weir::detail
