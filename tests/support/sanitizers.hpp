// SPDX-License-Identifier: MIT
// Which sanitizers this build has, for the few tests that count what a sanitizer changes.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define WEIR_TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR_TEST_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define WEIR_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_TEST_TSAN 1
#endif
#endif

#ifndef WEIR_TEST_ASAN
#define WEIR_TEST_ASAN 0
#endif
#ifndef WEIR_TEST_TSAN
#define WEIR_TEST_TSAN 0
#endif

namespace test_support {

/// Under a sanitizer every coroutine frame is an allocation of its own, and stacks are larger.
inline constexpr bool sanitized = WEIR_TEST_ASAN != 0 || WEIR_TEST_TSAN != 0;

}  // namespace test_support
