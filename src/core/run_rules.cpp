// SPDX-License-Identifier: MIT
#include <weir/detail/core/run_rules.hpp>

#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/run_seam.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/local.hpp>

#include "core/door.hpp"
#include "core/error_notes.hpp"
#include "core/home.hpp"
#include "core/user_place.hpp"

namespace weir::detail {

// ------------------------------------------------------------------ waits

void check_fits_run(const wait& w) {
  if (w.fits_run()) return;
  std::string text("durable run '");
  text.append(current_run->run_id()).append("': a wait for ");
  {
    dump_line line(text);
    w.describe(line);
  }
  text.append(" at ").append(running_place());
  text.append(
      " is neither local to the run nor journaled, so it would not be the same when the run is "
      "replayed; do it in a weir::step");
  raise(errc::not_journaled, text);
}

// ------------------------------------------------------------------ objects

void refuse_in_run(const char* kind, std::string_view name, std::source_location site) {
  std::string text("durable run '");
  text.append(current_run->run_id()).append("': ").append(kind);
  if (!name.empty()) text.append(" '").append(name).append("'");
  if (site.line() != 0) {
    text.append(" used at ").append(text_of(site));
  } else {
    text.append(" used at or after ").append(running_place());
  }
  text.append(
      " is not journaled, and others have a part in it, so it would not be the same when the run "
      "is replayed; use it in a weir::step");
  raise(errc::not_journaled, text);
}

void require_same_run(std::uint32_t home, const std::string& what) {
  if (current_run != nullptr || door_table::is_inner(home)) raise_other_run(what);
}

void raise_other_run(const std::string& what) {
  std::string text = what;
  if (current_run != nullptr) {
    text.append(" of others used at or after ").append(running_place()).append(" in durable run '");
    text.append(current_run->run_id());
    text.append(
        "'; what others do to it would not be the same when the run is replayed: use it in "
        "a weir::step, or make one inside the run");
  } else {
    text.append(" of a durable run used outside of it at or after ").append(running_place());
    text.append(
        "; a run's own objects are for its fibers only, not for steps and not for others: "
        "pass values");
  }
  raise(errc::not_journaled, text);
}

void made_in_run::refuse(const object_name& whose) const { raise_other_run(text_of(whose)); }

void made_in_run::require_for_step(const char* kind) const {
  if (serial_ == 0) return;
  raise(errc::not_journaled, std::string(kind) + " of a durable run given to a step at " +
                                 running_place() +
                                 "; steps are not part of the run: give one that was made outside");
}

// ------------------------------------------------------------------ journaled operations

extern const char step_mark = 0;

run_seam* run_outside_step(const char* what) {
  if (current_run != nullptr) return current_run;
  if (current != nullptr && find_local(&step_mark) != nullptr) {
    std::string text(what);
    text.append(" inside a step, at ").append(running_place());
    text.append("; a step is one thing that is done and recorded: call it outside");
    raise(errc::inside_step, text);
  }
  return nullptr;
}

run_seam& require_run(const char* what) {
  if (run_seam* run = run_outside_step(what)) return *run;
  raise(errc::not_durable, std::string(what) + " called outside a durable run");
}

run_seam& require_object(const char* what) {
  run_seam* const run = run_outside_step(what);
  if (run == nullptr || run->object_key().empty()) raise_no_object(what);
  return *run;
}

void raise_no_object(const char* what) {
  std::string text(what);
  text.append(" called outside the handlers of an object, at or after ").append(running_place());
  if (current_run != nullptr)
    text.append(", in durable run '").append(current_run->run_id()).append("'");
  raise(errc::no_object, text.append("; add the handler with add_object"));
}

run_seam& require_run_of_awakeable(const run_seam* creator) {
  run_seam& here = require_run("awakeable");
  if (&here != creator) refuse_in_run("an awakeable of another run", {}, {});
  return here;
}

void raise_outside_step(const char* what) {
  raise(errc::not_durable, std::string(what) + " called outside the body of a step, at or after " +
                               running_place() + "; call it in the function given to weir::step");
}

}  // namespace weir::detail
