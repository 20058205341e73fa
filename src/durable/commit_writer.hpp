// SPDX-License-Identifier: MIT
// Who writes the batches of a journal to the disk.
#pragma once

#include <exception>
#include <memory>

#include "durable/journal.hpp"

namespace weir::detail {

class engine_core;
class loop;

/// Writes one batch after the other and tells the engine. On a real loop a thread of its own does
/// it, so that the loop goes on meanwhile; in a simulation it is done on the spot.
class commit_writer {
 public:
  commit_writer() = default;
  commit_writer(const commit_writer&) = delete;
  commit_writer& operator=(const commit_writer&) = delete;
  virtual ~commit_writer() = default;
  /// `engine_core::commit_done` is called on the engine's loop, later or at once.
  /// REQUIRES: the last batch is done.
  virtual void write(std::unique_ptr<journal_batch> batch) = 0;

  static std::unique_ptr<commit_writer> make(engine_core& engine, journal& to, loop& host);
};

}  // namespace weir::detail
