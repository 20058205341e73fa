// SPDX-License-Identifier: MIT
// cmake -DWEIR_FUZZ=ON -DCMAKE_CXX_COMPILER=clang++-19 ..., then run fuzz_ws_frames.
#include "fuzz/ws_frames.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::check_ws(data, size);
  return 0;
}
