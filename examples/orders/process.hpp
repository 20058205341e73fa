// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <weir/weir.hpp>

#include "shop.hpp"

namespace shop {

/// Another process of this program, which keeps a shop. Destroying it kills it.
class process {
 public:
  /// `door`: a listening socket, which it inherits.
  process(const settings& s, int door);
  process(const process&) = delete;
  process& operator=(const process&) = delete;
  ~process();

  /// Its wait status, when it has ended.
  weir::task<int> ended();
  /// SIGTERM: it answers what it is asked, and exits.
  void close();

 private:
  pid_t pid_ = -1;
  int descriptor_ = -1;
};

}  // namespace shop
