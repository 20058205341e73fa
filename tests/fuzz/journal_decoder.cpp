// SPDX-License-Identifier: MIT
// cmake -DWEIR_FUZZ=ON -DCMAKE_CXX_COMPILER=clang++-19 ..., then run fuzz_journal_decoder.
#include "fuzz/journal_decoder.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::decode(std::as_bytes(std::span(data, size)), 7);
  return 0;
}
