// SPDX-License-Identifier: MIT
// The entry point of the fuzzer on some thousand inputs, so that every build runs it; the
// sanitizers see what it touches.
#include <vector>

#include <gtest/gtest.h>

#include "durable/log_batch.hpp"
#include "fuzz/journal_decoder.hpp"
#include "support/disk_support.hpp"

using disk_support::generator;

namespace {

/// A segment with a few frames, as a journal would write it.
std::vector<std::byte> sample(generator& random) {
  weir::detail::log_layout layout({.segment = 1,
                                   .offset = 64,
                                   .capacity = 100,
                                   .next_lsn = 1 + random.below(100),
                                   .segment_bytes = 1 << 16,
                                   .frame_bytes = 1 + random.below(2000),
                                   .epoch = 1,
                                   .secret = {}});
  weir::detail::log_batch batch;
  for (std::uint64_t n = 1 + random.below(20); n > 0; --n) {
    const auto flags = static_cast<std::uint16_t>(random.next());
    const std::string payload(random.below(2) == 0 ? 40 : random.below(300), 'p');
    layout.append(batch, {.type = 1, .flags = flags}, payload);
  }
  layout.close_frame(batch);
  batch.seal(1, 7);
  return batch.bytes;
}

void mutate(generator& random, std::vector<std::byte>& bytes) {
  for (std::uint64_t n = random.below(6); n > 0; --n)
    bytes[random.below(bytes.size())] = static_cast<std::byte>(random.next());
  if (random.below(4) == 0) bytes.resize(random.below(bytes.size() + 1));
  if (random.below(4) == 0 && !bytes.empty())
    bytes.erase(bytes.begin(),
                bytes.begin() + static_cast<std::ptrdiff_t>(random.below(bytes.size()) / 8 * 8));
}

}  // namespace

TEST(journal_decoder, stays_inside_of_whatever_it_is_given) {
  generator random(11);
  for (int i = 0; i < 4000; ++i) {
    auto bytes = sample(random);
    mutate(random, bytes);
    // An allocation of exactly this size, so that AddressSanitizer sees the first byte too far.
    const std::vector<std::byte> exact(bytes.begin(), bytes.end());
    fuzz::decode(exact, 7);
  }
}
