// SPDX-License-Identifier: MIT
#include "io/utf8.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace {

using weir::detail::is_utf8;
using weir::detail::utf8_check;

struct utf8_case {
  std::string_view bytes;
  bool valid;
};

constexpr std::array utf8_cases{
    utf8_case{"", true},
    utf8_case{"plain text that is longer than eight bytes", true},
    utf8_case{"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5", true},
    utf8_case{"\x7f", true},
    utf8_case{"\xc2\x80", true},
    utf8_case{"\xdf\xbf", true},
    utf8_case{"\xe0\xa0\x80", true},
    utf8_case{"\xed\x9f\xbf", true},
    utf8_case{"\xee\x80\x80", true},
    utf8_case{"\xef\xbf\xbf", true},
    utf8_case{"\xf0\x90\x80\x80", true},
    utf8_case{"\xf4\x8f\xbf\xbf", true},
    utf8_case{"\x80", false},
    utf8_case{"\xbf", false},
    utf8_case{"\xc0\xaf", false},
    utf8_case{"\xc1\xbf", false},
    utf8_case{"\xe0\x80\xaf", false},
    utf8_case{"\xe0\x9f\xbf", false},
    utf8_case{"\xed\xa0\x80", false},
    utf8_case{"\xed\xbf\xbf", false},
    utf8_case{"\xf0\x80\x80\xaf", false},
    utf8_case{"\xf0\x8f\xbf\xbf", false},
    utf8_case{"\xf4\x90\x80\x80", false},
    utf8_case{"\xf5\x80\x80\x80", false},
    utf8_case{"\xfe", false},
    utf8_case{"\xff", false},
    utf8_case{"\xc3(", false},
    utf8_case{"\xe2\x82", false},
    utf8_case{"12345678\xf0\x9f\x98", false},
    utf8_case{"1234567\xf0\x9f\x98\x80 behind it, and more", true},
};

}  // namespace

TEST(utf8, is_recognised) {
  for (const utf8_case& c : utf8_cases) EXPECT_EQ(is_utf8(c.bytes), c.valid) << c.bytes;
}

TEST(utf8, is_recognised_however_the_bytes_are_cut) {
  for (const utf8_case& c : utf8_cases)
    for (std::size_t first = 0; first <= c.bytes.size(); ++first)
      for (std::size_t second = first; second <= c.bytes.size(); ++second) {
        utf8_check check;
        const bool valid = check.add(c.bytes.substr(0, first)) &&
                           check.add(c.bytes.substr(first, second - first)) &&
                           check.add(c.bytes.substr(second)) && check.complete();
        EXPECT_EQ(valid, c.valid) << c.bytes << " cut at " << first << " and " << second;
      }
}

TEST(utf8, a_bad_byte_is_found_as_soon_as_it_comes) {
  utf8_check check;
  EXPECT_TRUE(check.add("\xe2"));
  EXPECT_FALSE(check.complete());
  EXPECT_FALSE(check.add("\x28"));
}
