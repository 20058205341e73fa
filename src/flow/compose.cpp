// SPDX-License-Identifier: MIT
#include <weir/governor/compose.hpp>

#include <exception>

namespace weir::detail {

namespace {

/// Releases both permits, even if one release throws.
struct release_both {
  void operator()() {
    std::exception_ptr broken;
    try {
      second.release();
    } catch (...) {
      broken = std::current_exception();
    }
    try {
      first.release();
    } catch (...) {
      if (broken) raise_both(broken, std::current_exception());
      throw;
    }
    if (broken) std::rethrow_exception(broken);
  }
  permit first;
  permit second;
};

}  // namespace

permit both_permits(permit first, permit second) {
  return permit(release_both{std::move(first), std::move(second)});
}

}  // namespace weir::detail
