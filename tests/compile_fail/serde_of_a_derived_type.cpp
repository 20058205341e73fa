// SPDX-License-Identifier: MIT
// A description covers its struct only: what is derived from it has members that would be lost.
// EXPECT: weir cannot store this type: write WEIR_DESCRIBE(type, members...)
#include <weir/durable/serde.hpp>

struct base {
  int n = 0;
};
WEIR_DESCRIBE(base, n)
struct derived : base {
  int more = 0;
};
derived restored(std::string_view text) { return weir::detail::decode<derived>(text); }
