// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include <weir/detail/core/home.hpp>
#include <weir/detail/flow/adjusting_governor.hpp>
#include <weir/name.hpp>

namespace weir {

/// The name and weight of a part of a partitioned_governor, as in `{"gold", 60}`.
struct governor_share {
  weir::name name{};
  std::int64_t weight = 1;
};

class partitioned_governor;

/// One part of a partitioned_governor, itself a governor. Its name is "api/gold" if the whole is
/// named "api".
class governor_part final : public detail::adjusting_governor {
 public:
  /// The permits guaranteed to this part: its share of the capacity by weight, rounded down.
  std::int64_t share() const noexcept;

 private:
  friend class partitioned_governor;
  governor_part(partitioned_governor& whole, const governor_share& share, weir::name full_name,
                std::int64_t max_waiting);

  void require_home() override;
  void adjust(time_point now) noexcept override;
  void granted(std::int64_t weight) noexcept override;
  void give_back(std::int64_t weight) override;

  partitioned_governor& whole_;
  std::int64_t weight_;
  detail::kept_name short_name_;
};

/// `capacity` permits shared by several kinds of users: `part("gold")` is the governor of one kind.
/// Shares are weights. Other parts may borrow what a part does not use. A released permit goes to
/// the waiting part that holds least in proportion to its weight, so first to parts below their
/// share.
///
/// Threads: home loop only, one home for all parts. Order: first come, first served within a part.
/// Cancels: as counting_governor. `.max_waiting` applies to each part. Bad capacities, no parts, a
/// weight that is not 1..2^31-1, an empty name or one given twice: errc::invalid_argument.
class partitioned_governor {
 public:
  partitioned_governor(std::int64_t capacity, std::initializer_list<governor_share> shares,
                       const governor_options& options = {});
  partitioned_governor(const partitioned_governor&) = delete;
  partitioned_governor& operator=(const partitioned_governor&) = delete;
  ~partitioned_governor();

  /// An unknown name: errc::invalid_argument.
  governor_part& part(std::string_view name);

  /// Growing grants the new permits to waiters; shrinking revokes nothing.
  void resize(std::int64_t capacity);
  /// All present and later acquires of all parts fail with errc::governor_closed.
  void close();

  std::int64_t capacity() const noexcept { return capacity_; }
  /// Permits that are free, not counting claims of waiters.
  std::int64_t available() const noexcept { return out_ < capacity_ ? capacity_ - out_ : 0; }
  /// Permits that are held, of all parts.
  std::int64_t active() const noexcept { return out_; }
  /// Permits that waiters have requested, in all parts.
  std::int64_t waiting() const noexcept;
  std::string_view name() const noexcept { return name_.view(); }

 private:
  friend class governor_part;
  detail::object_name self() const noexcept { return {"partitioned_governor", name_.view()}; }
  void require_capacity(std::int64_t capacity) const;
  void add(const governor_share& share, std::int64_t max_waiting);
  governor_part* find(std::string_view name) const noexcept;
  governor_part* next_part() const noexcept;
  std::int64_t offered_to(const governor_part& part) const noexcept;
  void grant() noexcept;

  std::int64_t capacity_;
  std::int64_t out_ = 0;
  std::int64_t total_weight_ = 0;
  detail::home home_;
  detail::kept_name name_;
  std::vector<std::unique_ptr<governor_part>> parts_;
};

}  // namespace weir
