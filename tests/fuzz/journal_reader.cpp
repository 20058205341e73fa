// SPDX-License-Identifier: MIT
// cmake -DWEIR_FUZZ=ON -DCMAKE_CXX_COMPILER=clang++-19 ..., then run fuzz_journal_reader.
#include "fuzz/journal_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)fuzz::read_journal(std::as_bytes(std::span(data, size)));
  return 0;
}
