// SPDX-License-Identifier: MIT
// Starting a process. Between its creation and its program only the system's library runs in the
// child, which shares no locks with other threads (posix_spawn), so any thread may start one at any
// time; the calling thread is blocked until the program has begun, or could not.
#pragma once

#include <memory>

#include <weir/io/command.hpp>

#include "io/child_process.hpp"
#include "io/pipe_stream.hpp"

namespace weir::detail {

/// A process that was started, and our ends of its pipes. Whoever has it must reap it.
struct started_process {
  std::unique_ptr<child_process> child;
  std::unique_ptr<pipe_stream> in;  // null: it reads /dev/null
  std::unique_ptr<pipe_stream> out;
  std::unique_ptr<pipe_stream> err;
};

/// Throws weir::error with the system's code, naming the program; then nothing was started.
started_process start_process(const io::command& what, bool with_input);

}  // namespace weir::detail
