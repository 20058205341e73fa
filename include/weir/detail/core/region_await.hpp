// SPDX-License-Identifier: MIT
// Awaits for weir's own coroutines only: entering regions, continuing to unwind, ending with an
// outcome.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include <weir/context.hpp>
#include <weir/detail/core/frame.hpp>
#include <weir/outcome.hpp>
#include <weir/task.hpp>

namespace weir::detail {

/// Makes `c` the innermost region of the running strand; it inherits a cancellation of its parent
/// unless it is a shield.
void enter_region(context& c);
/// Leaves `c`; a cancelled parent takes effect at the next await.
void leave_region(context& c) noexcept;

/// Starts the frame that `out` owns, for `me`, as a catch edge. Returns whether `me` stays
/// suspended.
inline bool start_caught(frame& me, outcome_base& out) {
  out.make_catch_edge();
  frame& child = frame_of(out.frame());
  child.parent = &me;
  child.out = &out;
  strand& s = *current;
  if (--s.budget < 0) [[unlikely]]
    return give_up_turn_quietly(s, me, child);
  return enter_child(s, me, child);
}

/// Runs the task that `make()` returns inside region `c` and stores how it ended in `out`: a catch
/// edge, where unwinding stops and this frame is resumed. Never throws, is not a cancellation
/// point. The region stays entered.
template <class T, class Make>
class region_await {
 public:
  region_await(context& c, outcome<T>& out, Make& make) noexcept : c_(c), out_(out), make_(make) {}
  region_await(const region_await&) = delete;
  region_await& operator=(const region_await&) = delete;

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> me) {
    enter_region(c_);
    try {
      auto op = make_();
      if (!op) {
        if constexpr (std::is_void_v<T>) out_.emplace();
        return false;
      }
      out_.own_frame(op.release());
    } catch (...) {
      out_.set_error(std::current_exception());
      return false;
    }
    return start_caught(me.promise(), out_);
  }
  void await_resume() noexcept { out_.destroy_frame(); }

 private:
  context& c_;
  outcome<T>& out_;
  Make& make_;
};

template <class T, class Make>
struct inside_op {
  context* c;
  outcome<T>* out;
  Make* make;
  region_await<T, Make> weir_await() && { return region_await<T, Make>(*c, *out, *make); }
};
template <class T, class Make>
inside_op<T, Make> inside(context& c, outcome<T>& out, Make& make) {
  return {&c, &out, &make};
}

/// Awaits a task of weir's own without a cancellation point: cleanup, joining.
template <class T>
struct quiet_op {
  std::coroutine_handle<> frame;
  task_await<T, false> weir_await() && { return task_await<T, false>(frame); }
};
template <class T>
quiet_op<T> quietly(task<T> t) {
  return {t.release()};
}

/// A wait that is not a cancellation point, because something must finish first.
template <class W>
class quiet_wait final : public W {
 public:
  explicit quiet_wait(typename W::args&& given) : W(std::move(given)) {}
  bool await_ready() { return W::try_now(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> me) {
    strand& s = *current;
    s.leaf = &me.promise();
    park_quietly(s, *this);
    W::arm();
  }
  typename W::result await_resume() { return W::take(); }
};
/// Not an aggregate: g++-12 destroys a brace-initialised one twice in a co_await expression.
template <class W>
class quiet_wait_op {
 public:
  explicit quiet_wait_op(typename W::args args) : args_(std::move(args)) {}
  quiet_wait<W> weir_await() && { return quiet_wait<W>(std::move(args_)); }

 private:
  typename W::args args_;
};

/// Continues the unwinding that this frame was resumed from. Does not return.
struct keep_unwinding {
  struct awaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> me) const noexcept {
      current->leaf = &me.promise();
      current->unwinding = true;
    }
    void await_resume() const noexcept {}
  };
  awaiter weir_await() && { return {}; }
};

/// Ends this coroutine with `out` as it is: value, error or cancelled, with its notes, without a
/// throw. Does not return; its owner destroys the frame as if it had returned.
template <class T>
struct finish_op {
  outcome<T>* out;
  struct awaiter {
    outcome<T>* out;
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> me) {
      frame& self = me.promise();
      static_cast<outcome<T>*>(self.out)->adopt(std::move(*out));
      current->leaf = self.parent;
    }
    void await_resume() const noexcept {}
  };
  awaiter weir_await() && { return {out}; }
};
template <class T>
finish_op<T> finish_as(outcome<T>& out) {
  return {&out};
}

}  // namespace weir::detail
