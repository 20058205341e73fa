// SPDX-License-Identifier: MIT
// cmake -DWEIR_FUZZ=ON -DCMAKE_CXX_COMPILER=clang++-19 ..., then run fuzz_http_request.
#include "fuzz/http_message.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)fuzz::read_http(fuzz::http_input(data, size), true);
  return 0;
}
