// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include <weir/detail/agents/agent_core.hpp>
#include <weir/detail/core/wait.hpp>

namespace weir::detail {

/// One life of an agent: a fiber that constructs the object, passes it one message after the other,
/// and has no frame while it waits for the next message.
class agent_life : public driven_fiber {
 public:
  explicit agent_life(agent_core& of) noexcept;

  agent_core& core() const noexcept { return *of_.get(); }
  std::uint32_t generation() const noexcept { return generation_; }
  /// Ends the life with this error as soon as its handler has ended or was cancelled.
  void crash(std::exception_ptr error) noexcept;
  virtual void* object() noexcept = 0;

  next_step drive() override;
  void finished() noexcept override;
  trail_ref trail_of(const scope* inside) override;
  void add_details(dump_line& line) const override;
  polite_service* polite() noexcept override { return of_.get(); }
  outcome_base& result() noexcept override { return out_; }
  void drop_operation() noexcept override;
  void drop_value() noexcept override { out_.drop_value(); }

 protected:
  ~agent_life();
  virtual void destroy_object() noexcept = 0;

 private:
  friend class agent_core;
  friend class agent_timer;

  enum class stage : std::uint8_t { fresh, serving, closing, over };

  /// The wait of an idle life.
  class mail_wait final : public wait {
   public:
    bool poll() override { return false; }
    void link() override {}
    cancel_result withdraw() noexcept override;
    void describe(dump_line& line) const override;
    void wake() noexcept { complete(); }
  };
  /// State that few lives need.
  struct extra;

  void construct();
  void notify(birth_listener* listener, const std::shared_ptr<door>& listening);
  agent_timer*& timers();
  bool must_end() const noexcept;
  next_step serve();
  void handled() noexcept;
  void leave_chain() noexcept;
  next_step pause() noexcept;
  next_step put_off() noexcept;
  next_step begin_end();
  next_step scope_ended() noexcept;
  next_step end() noexcept;
  extra& need_extra();

  agent_handle of_;
  envelope* handling_ = nullptr;
  mail_wait mail_;
  std::unique_ptr<extra> extra_;
  agent_life* sibling_ = nullptr;  // in the core's list
  std::uint32_t generation_ = 0;
  stage stage_ = stage::fresh;
  bool constructed_ = false;
  bool put_off_ = false;  // it gave up its turn while a message was waiting
  outcome<void> out_;
};

/// A life with its object.
template <class T>
class life_of final : public agent_life {
 public:
  explicit life_of(agent_core& of) noexcept : agent_life(of) {}
  ~life_of() {}
  void* object() noexcept override { return std::addressof(value); }
  void destroy_object() noexcept override { value.~T(); }
  void dispose() noexcept override { delete this; }
  union {
    T value;
  };
};

[[noreturn]] void raise_not_copyable(std::string_view name);

/// Unique for each type.
template <class T>
inline constexpr char type_mark = 0;

/// The arguments of an agent; the owner says when they are destroyed. Empty if there are none.
template <class... Args>
struct argument_place {
  template <class... A>
  explicit argument_place(A&&... args) : all(std::forward<A>(args)...) {}
  ~argument_place() {}
  union {
    std::tuple<Args...> all;
  };
};
template <>
struct argument_place<> {
  [[no_unique_address]] std::tuple<> all;
};

template <class T, class... Args>
class agent_core_of final : public agent_core {
  static_assert(alignof(T) <= 16, "the agent is over-aligned; keep what needs it elsewhere");
  static constexpr bool scoped = std::is_constructible_v<T, scope&, Args...>;
  static_assert(scoped || std::is_constructible_v<T, Args...>,
                "the agent cannot be constructed from these arguments");
  static constexpr bool copyable = (std::is_copy_constructible_v<Args> && ...);

 public:
  template <class... A>
  explicit agent_core_of(agent_setup&& setup, A&&... args)
      : agent_core(check(std::move(setup))), args_(std::forward<A>(args)...) {}
  ~agent_core_of() override { drop_arguments(); }

 private:
  static agent_setup&& check(agent_setup&& setup) {
    if (setup.keeps && !copyable) raise_not_copyable(setup.name.view());
    return std::move(setup);
  }
  agent_life* make_life() override {
    static_assert(sizeof...(Args) > 0 || sizeof(agent_core_of) == sizeof(agent_core),
                  "has_arguments_ has its place in the last byte of agent_core");
    return new life_of<T>(*this);
  }
  bool wants_scope() const noexcept override { return scoped; }
  void construct(agent_life& life, scope* own) override {
    void* const at = life.object();
    auto make = [&](auto&&... args) {
      if constexpr (scoped) {
        new (at) T(*own, std::forward<decltype(args)>(args)...);
      } else {
        new (at) T(std::forward<decltype(args)>(args)...);
      }
    };
    if constexpr (copyable) {
      if (keeps_arguments()) return std::apply(make, std::tuple<Args...>(args_.all));
    }
    std::apply([&](auto&... args) { make(std::move(args)...); }, args_.all);
  }
  void drop_arguments() noexcept override {
    if (std::exchange(has_arguments_, false)) std::destroy_at(&args_.all);
  }
  const void* type() const noexcept override { return &type_mark<T>; }

  bool has_arguments_ = true;  // in the last byte of agent_core
  [[no_unique_address]] argument_place<Args...> args_;
};

}  // namespace weir::detail
