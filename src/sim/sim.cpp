// SPDX-License-Identifier: MIT
#include <weir/sim.hpp>

#include <exception>

#include "core/environment.hpp"
#include "core/loop.hpp"

namespace weir {

namespace detail {

/// Virtual time, and choices drawn from a seed.
class sim_environment final : public environment, public chooser {
 public:
  explicit sim_environment(const sim::options& options)
      : options_(options), choices_(options.seed), numbers_(~options.seed) {}

  time_point now() override { return now_; }
  wall_time wall_now() override {
    const duration passed = now_.time_since_epoch();
    return options_.start_time > wall_time::max() - passed ? wall_time::max()
                                                           : options_.start_time + passed;
  }
  std::uint64_t random() override { return numbers_.next(); }
  void park(loop&, std::optional<time_point> until) override {
    if (until && *until > now_) now_ = *until;
  }
  bool count_step() override { return ++steps_ > options_.max_steps; }
  chooser* choices() noexcept override { return options_.strategy == sim::random ? this : nullptr; }
  bool hears_threads() const noexcept override { return false; }
  std::size_t choose(std::size_t options) override {
    return static_cast<std::size_t>(choices_.below(options));
  }

 private:
  sim::options options_;
  random_numbers choices_;
  random_numbers numbers_;
  time_point now_{};
  std::int64_t steps_ = 0;
};

void delete_sim_environment::operator()(sim_environment* env) const noexcept { delete env; }

sim_environment_ptr make_sim_environment(const sim::options& options) {
  if (options.max_steps <= 0)
    raise(errc::invalid_argument,
          "sim::run: max_steps is not positive; give 1 or more, or "
          "unbounded");
  return sim_environment_ptr(new sim_environment(options));
}

environment* as_environment(sim_environment& env) noexcept { return &env; }

// Verdicts of the scheduler are failures of the simulation; everything else is the program's.
void rethrow_as_sim_failure() {
  try {
    throw;
  } catch (const sim::failure&) {
    throw;
  } catch (const error& e) {
    if (typeid(e) != typeid(error)) throw;
    if (e.code() == errc::livelock) throw sim::failure(errc::livelock, e.what());
    if (e.code() == errc::deadlock) throw sim::failure(errc::deadlock, e.what());
    throw;
  }
}

}  // namespace detail
}  // namespace weir
