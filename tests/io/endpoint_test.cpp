// SPDX-License-Identifier: MIT
// endpoint: addresses, ports, paths and their texts.
#include "io_support.hpp"

using namespace weir_test;

TEST(endpoint, texts_of_addresses) {
  EXPECT_EQ(io::endpoint("1.2.3.4", 80).str(), "1.2.3.4:80");
  EXPECT_EQ(io::endpoint("::1", 80).str(), "[::1]:80");
  EXPECT_EQ(io::endpoint("::1", 80).address(), "::1");
  EXPECT_EQ(io::endpoint("fe80::1%lo", 80).str(), "[fe80::1%lo]:80");
  EXPECT_EQ(io::endpoint::of_path("/run/x").str(), "/run/x");
  EXPECT_EQ(io::endpoint::of_path("/run/x").port(), 0);
  EXPECT_EQ(io::endpoint::of_loop("server", 80).str(), "server:80");
  EXPECT_EQ(io::endpoint().str(), "nowhere");
}

TEST(endpoint, equal_if_address_and_port_are) {
  EXPECT_EQ(io::endpoint("1.2.3.4", 80), io::endpoint("1.2.3.4", 80));
  EXPECT_NE(io::endpoint("1.2.3.4", 80), io::endpoint("1.2.3.4", 81));
  EXPECT_NE(io::endpoint("1.2.3.4", 80), io::endpoint("1.2.3.5", 80));
  EXPECT_EQ(io::endpoint("0:0::1", 80), io::endpoint("::1", 80));
}

TEST(endpoint, names_and_impossible_ports_are_refused) {
  for (const char* bad : {"localhost", "", "1.2.3", "1.2.3.4.5", "::g", "fe80::1%nosuch"})
    EXPECT_EQ(code_of(thrown_by([&] { return io::endpoint(bad, 1); })), errc::invalid_argument)
        << bad;
  const std::string cut("127.0.0.1\0x", 11);  // the system would read up to the NUL
  EXPECT_EQ(code_of(thrown_by([&] { return io::endpoint(cut, 1); })), errc::invalid_argument);
  for (const int port : {-1, 65536})
    EXPECT_EQ(code_of(thrown_by([&] { return io::endpoint("::1", port); })),
              errc::invalid_argument);
  EXPECT_EQ(code_of(thrown_by([] { return io::endpoint::of_path(std::string(108, 'p')); })),
            errc::invalid_argument);
  EXPECT_EQ(code_of(thrown_by([] { return io::endpoint::of_path(""); })), errc::invalid_argument);
}
