// SPDX-License-Identifier: MIT
// weir cannot cancel a wait it knows nothing about, so it refuses it and names the way in.
// EXPECT: weir::suspend
#include <coroutine>
#include <weir/weir.hpp>

struct foreign {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  int await_resume() const noexcept { return 0; }
};

weir::task<int> caller() { co_return co_await foreign{}; }
