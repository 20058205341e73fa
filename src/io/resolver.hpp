// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include <weir/error.hpp>
#include <weir/io/endpoint.hpp>
#include <weir/task.hpp>

namespace weir::detail {

/// The name may be known later: the resolver could not be asked.
class temporary_host_error : public error {
 public:
  explicit temporary_host_error(const std::string& what) : error(errc::host_not_found, what) {}
};

/// The addresses of a host in the order in which they are to be tried, the families alternating; at
/// least one. A numeric host is not looked up. errc::host_not_found. A cancellation abandons the
/// thread that asks.
task<std::vector<io::endpoint>> resolve(std::string host, int port);

}  // namespace weir::detail
