// SPDX-License-Identifier: MIT
// The smallest task and generator that behave like weir's, and the objects that a full-expression
// with an await may make: what the matrix in matrix.cpp is built of. Nothing here is weir's,
// because what is tested is the compiler.
#pragma once

#include <array>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

/// Owns memory, so that AddressSanitizer sees when one is destroyed twice; counted, so that one
/// that is never destroyed is seen as well.
struct item {
  item() : item(0) {}
  item(int n) : value(new int(n)) { ++live; }
  item(const item& other) : item(*other.value) {}
  item(item&& other) noexcept : item(*other.value) {}
  item& operator=(const item& other) {
    *value = *other.value;
    return *this;
  }
  ~item() {
    delete value;
    --live;
  }
  item with(const item& other) const { return {*value + *other.value}; }
  item operator+(const item& other) const { return with(other); }

  int* value;
  static inline int live = 0;
};

inline std::coroutine_handle<> parked;  // the coroutine to resume next
inline bool throwing = false;           // awaits end with an exception

template <class T>
class task;

struct park {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> me) const noexcept { parked = me; }
  void await_resume() const {
    if (throwing) throw 1;
  }
  park awaited() && { return {}; }
};

struct promise_base {
  struct at_end {
    bool await_ready() const noexcept { return false; }
    template <class P>
    void await_suspend(std::coroutine_handle<P> me) const noexcept {
      parked = me.promise().parent;
    }
    void await_resume() const noexcept {}
  };
  std::suspend_always initial_suspend() const noexcept { return {}; }
  at_end final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { error = std::current_exception(); }
  template <class A>
  auto await_transform(A&& a) {
    return std::forward<A>(a).awaited();
  }
  std::coroutine_handle<> parent;
  std::exception_ptr error;
};

template <class T>
struct promise : promise_base {
  task<T> get_return_object() noexcept;
  template <class U = T>
  void return_value(U&& u) {
    result.emplace(std::forward<U>(u));
  }
  /// Whoever resumes it has taken the value.
  template <class U>
  park yield_value(U&&) const noexcept {
    return {};
  }
  std::optional<T> result;
};

template <class T>
class task_await {
 public:
  explicit task_await(std::coroutine_handle<promise<T>> child) noexcept : child_(child) {}
  task_await(const task_await&) = delete;
  task_await& operator=(const task_await&) = delete;
  ~task_await() {
    if (child_) child_.destroy();
  }
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> me) const noexcept {
    child_.promise().parent = me;
    parked = child_;
  }
  T await_resume() const {
    if (child_.promise().error) std::rethrow_exception(child_.promise().error);
    return std::move(*child_.promise().result);
  }

 private:
  std::coroutine_handle<promise<T>> child_;
};

template <class T>
class [[nodiscard]] task {
 public:
  using promise_type = promise<T>;
  explicit task(std::coroutine_handle<promise<T>> made) noexcept : frame(made) {}
  task(task&& other) noexcept : frame(std::exchange(other.frame, nullptr)) {}
  ~task() {
    if (frame) frame.destroy();
  }
  task_await<T> awaited() && { return task_await<T>(std::exchange(frame, nullptr)); }
  std::coroutine_handle<promise<T>> frame;
};
template <class T>
task<T> promise<T>::get_return_object() noexcept {
  return task<T>(std::coroutine_handle<promise<T>>::from_promise(*this));
}

// What is made of items: an aggregate in several shapes, and classes with constructors.
struct pair {
  item a;
  int b = 0;
};
struct nested {
  pair p;
  int c = 0;
};
struct with_default {
  int b = 1;
  item a = item(5);
};
struct with_base : item {
  int b = 0;
};
struct trivial {
  int b = 0;
};
template <class T>
struct deduced {
  T a;
  int b;
};
template <class T>
deduced(T, int) -> deduced<T>;
struct wrapped {
  wrapped(item i) : a(std::move(i)) {}
  wrapped(pair p) : a(std::move(p.a)) {}
  item a;
};
struct converts {
  operator item() const { return {4}; }
};

// What is done with them. The awaited functions park once.
template <class T>
task<int> eat(T) {
  co_await park{};
  co_return 1;
}
template <class T>
task<int> eat_reference(const T&) {
  co_await park{};
  co_return 1;
}
template <class T>
task<item> exchange(T) {
  co_await park{};
  co_return item(1);
}
template <class T>
task<std::vector<int>> listed(T) {
  co_await park{};
  co_return std::vector<int>(2);
}
struct bound {
  int first;
  item second;
};
template <class T>
task<bound> paired(T) {
  co_await park{};
  co_return bound(1, item(1));
}
template <class T>
struct operation {
  explicit operation(T t) : held(std::move(t)) {}
  task<int> start() && { return eat(std::move(held)); }
  auto awaited() && { return eat(std::move(held)).awaited(); }
  T held;
};
template <class T>
operation<T> operation_of(T t) {
  return operation<T>(std::move(t));
}
struct left {};
template <class T>
task<int> operator|(left, T t) {
  return eat(std::move(t));
}
inline task<int> one() { return eat(1); }
inline task<item> give(int n) { return exchange(n); }
template <class T>
T same(T t) {
  return t;
}
template <class T>
const T& refer(const T& t) {
  return t;
}
template <class... T>
int number(const T&...) {
  return 1;
}
inline item make(int n) { return {n}; }
inline item take_pair(pair p) { return p.a; }
inline item take_function(const std::function<int()>& f) { return {f()}; }
inline item plain_default(item i = item(3)) { return i; }
inline item pair_default(pair p = pair{item(3), 1}) { return p.a; }
inline item choice_default(item i = item::live > 0 ? item(3) : item(4)) { return i; }
inline std::vector<item> two() { return std::vector<item>(2, item(1)); }
inline task<pair> return_braces() { co_return {item(1), 2}; }
inline task<pair> return_awaited_braces() { co_return {co_await give(1), 2}; }
inline task<item> return_conditional(bool yes) { co_return yes ? item(1) : item(2); }
