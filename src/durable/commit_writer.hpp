// SPDX-License-Identifier: MIT
// Writes the batches of a journal to the disk.
#pragma once

#include <exception>
#include <memory>

#include "durable/journal.hpp"

namespace weir::detail {

class engine_core;
class loop;

/// Writes one batch at a time and notifies the engine. On a real loop its own thread does the work,
/// so that the loop continues meanwhile; in a simulation it happens synchronously.
class commit_writer {
 public:
  commit_writer() = default;
  commit_writer(const commit_writer&) = delete;
  commit_writer& operator=(const commit_writer&) = delete;
  virtual ~commit_writer() = default;
  /// Leads to `engine_core::commit_done` on the engine's loop, later or at once.
  /// REQUIRES: the previous batch is done.
  virtual void write(std::unique_ptr<journal_batch> batch) = 0;

  static std::unique_ptr<commit_writer> make(engine_core& engine, journal& to, loop& host);
};

}  // namespace weir::detail
