// SPDX-License-Identifier: MIT
// What weir stores must say how; the error names the two ways.
// EXPECT: weir cannot store this type: write WEIR_DESCRIBE(type, members...)
#include <weir/durable/serde.hpp>

#include <vector>

struct secret {
  int n = 0;
};
std::string stored(const std::vector<secret>& secrets) { return weir::detail::encode(secrets); }
