// SPDX-License-Identifier: MIT
// A crash: what was written and not synced is lost. A world has several loops on one thread, and a
// disk in memory that keeps track of what was synced.

#include <array>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

// ------------------------------------------------------------------ saving a file, step by step

const std::string notes(1024, 'x');  // two sectors

using step = void (*)(weir::disk&);
using steps = std::span<const step>;

void write_to(weir::disk& disk, const char* path) {
  const auto file = disk.open(path, weir::open_mode::create);
  weir::write_all(*file, std::as_bytes(std::span(notes)), 0);
}
void write_notes(weir::disk& disk) { write_to(disk, "notes"); }
void write_new(weir::disk& disk) { write_to(disk, "notes.new"); }
void sync_notes(weir::disk& disk) { disk.open("notes", weir::open_mode::read_write)->sync(); }
void sync_new(weir::disk& disk) { disk.open("notes.new", weir::open_mode::read_write)->sync(); }
void rename_new(weir::disk& disk) { disk.rename("notes.new", "notes"); }
void sync_names(weir::disk& disk) { disk.sync_directory("/"); }

std::string what_is_left(weir::disk& disk) {
  if (!disk.exists("notes")) return "nothing";
  const auto file = disk.open("notes", weir::open_mode::read);
  std::string text(file->size(), '?');
  weir::read_exactly(*file, std::as_writable_bytes(std::span(text)), 0);
  if (text.empty()) return "an empty file";
  return text == notes ? "the notes" : "a part of them";
}

// ------------------------------------------------------------------ on another loop

void post_all(weir::loop_ref to, weir::disk& disk, steps how) {
  for (const step each : how) to.post([&disk, each] { each(disk); });
}

/// Waits until everything that was posted to a loop has run there.
task<> done(weir::loop_ref there) {
  co_await weir::suspend<void>(
      [&](weir::resumer<void> r) { there.post([r]() mutable { r.complete(); }); });
}

task<> save_then_crash(weir::sim::world& w, steps how) {
  const weir::loop_ref server = w.loop("server");
  post_all(server, w.disk(), how);
  co_await done(server);
  w.crash("server");
  say("a crash leaves " + what_is_left(w.disk()));
}

void crash_after(steps how) {
  weir::sim::world w;
  w.run([&] { return save_then_crash(w, how); });
}

// Now the crash may happen at any time, and tear what was not synced; both are choices of the run.
task<> crash_while_saving(weir::sim::world& w, steps how) {
  w.disk().set({.torn = 0.5});
  post_all(w.loop("server"), w.disk(), how);
  for (int i = 0; i < 4; ++i) co_await weir::yield();
  w.crash("server");
  const std::string left = what_is_left(w.disk());
  weir::sim::sometimes("the notes are saved", left == "the notes");
  weir::sim::sometimes("the crash comes first", left == "nothing");
  weir::sim::always("all or nothing is saved", left == "the notes" || left == "nothing");
}

weir::sim::report explore(steps how) {
  auto program = [&](weir::sim::world& w) { return crash_while_saving(w, how); };
  return weir::sim::explore({.runs = 1000}, program);
}

}  // namespace

int main() {
  std::puts("written");
  crash_after(std::array{write_notes});
  std::puts("written, the file synced");
  crash_after(std::array{write_notes, sync_notes});
  std::puts("written, the directory synced");
  crash_after(std::array{write_notes, sync_names});
  std::puts("written, both synced");
  crash_after(std::array{write_notes, sync_notes, sync_names});

  std::puts("a crash at any time");
  say(explore(std::array{write_notes, sync_notes, sync_names}).message());
  std::puts("under another name, synced, renamed");
  const auto after = explore(std::array{write_new, sync_new, rename_new, sync_names});
  say(after.ok() ? "passes " + std::to_string(after.runs()) + " runs" : after.message());
}
