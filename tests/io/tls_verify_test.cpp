// SPDX-License-Identifier: MIT
// Who is accepted: certificates, names, dates, protocols, on both ends; and the files they are in.
#include <fstream>

#include "tls_support.hpp"

using namespace weir_test;

namespace {

/// "accepted", or why not.
task<std::string> verdict(std::string host, int port, io::tls_options options) {
  const std::exception_ptr error = co_await attempt([&]() -> task<> {
    auto c = co_await io::tls_connect(host, port, options);
    co_await c.write_all("x");
    EXPECT_EQ(co_await read_next(c, 1), "x");
  });
  if (error == nullptr) co_return std::string("accepted");
  EXPECT_EQ(code_of(error), errc::tls_failed) << what_of(error);
  co_return what_of(error);
}

void put_text(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}
std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST(tls_verify, the_chain_the_dates_and_the_name_of_a_server_are_verified) {
  const localhost_authority ca;
  const localhost_authority other;
  ca.make("old", {.from = -7200, .until = -3600});
  ca.make("early", {.from = 3600, .until = 7200});
  ca.make("elsewhere", {.names = "DNS:example.org,IP:127.0.0.2"});
  ca.make("nameless", {.names = "", .common_name = "localhost"});
  ca.make("wild", {.names = "DNS:*.example.org"});
  struct row {
    const char* certificate;
    const char* host;
    io::tls_options options;
    const char* expected;
  };
  const row rows[] = {
      {"srv", "localhost", {.ca_file = ca.root}, "accepted"},
      {"srv", "127.0.0.1", {.ca_file = ca.root}, "accepted"},
      {"srv", "localhost", {.ca_file = ca.root, .server_name = "localhost."}, "accepted"},
      {"srv", "localhost", {.ca_file = other.root}, "from an unknown authority"},
      {"srv", "localhost", {}, "from an unknown authority"},
      {"old", "localhost", {.ca_file = ca.root}, "has expired"},
      {"early", "localhost", {.ca_file = ca.root}, "is not valid yet"},
      {"elsewhere", "localhost", {.ca_file = ca.root}, "is not for 'localhost'"},
      {"elsewhere", "127.0.0.1", {.ca_file = ca.root}, "is not for '127.0.0.1'"},
      {"elsewhere", "127.0.0.1", {.ca_file = ca.root, .server_name = "example.org"}, "accepted"},
      {"srv",
       "localhost",
       {.ca_file = ca.root, .server_name = "example.org"},
       "is not for 'example.org'"},
      {"nameless", "localhost", {.ca_file = ca.root}, "is not for 'localhost'"},
      {"wild", "127.0.0.1", {.ca_file = ca.root, .server_name = "a.example.org"}, "accepted"},
      {"wild", "127.0.0.1", {.ca_file = ca.root, .server_name = "a.b.example.org"}, "is not for"},
      {"wild", "127.0.0.1", {.ca_file = ca.root, .server_name = "example.org"}, "is not for"},
      {"old", "127.0.0.1", {.server_name = "nobody", .verify = false}, "accepted"},
  };
  for (const row& r : rows) {
    while_serving_tls(ca.server(r.certificate), tls_echo, [&](int port) -> task<> {
      const std::string got = co_await verdict(r.host, port, r.options);
      EXPECT_TRUE(contains(got, r.expected)) << r.certificate << " " << r.host << ": " << got;
      if (got != "accepted") {
        const std::string_view name =
            r.options.server_name.empty() ? r.host : r.options.server_name;
        EXPECT_TRUE(contains(got, name)) << got;
      }
    });
  }
}

TEST(tls_verify, the_client_names_the_server_in_the_handshake_but_not_an_address) {
  const localhost_authority ca;
  struct row {
    const char* host;
    const char* name;
  };
  for (const row& r : {row{"localhost", "localhost"}, row{"127.0.0.1", "(none)"}}) {
    auto program = [&]() -> task<> {
      auto l = co_await io::listen();
      std::string hello;
      auto listen = [&]() -> task<> {
        auto c = co_await l.accept();
        hello = co_await read_next(c, 4096);
      };
      auto connect = [&]() -> task<> {
        (void)co_await attempt([&] { return io::tls_connect(r.host, l.port()); });
      };
      co_await weir::all(listen, connect);
      EXPECT_EQ(contains(hello, "localhost"), std::string_view(r.name) == "localhost");
      EXPECT_FALSE(contains(hello, "127.0.0.1"));
    };
    weir::run(program);
  }
}

TEST(tls_verify, the_preferred_protocol_of_the_server_is_chosen) {
  const localhost_authority ca;
  struct row {
    const char* server;
    const char* client;
    const char* chosen;
  };
  for (const row& r : {row{"echo,http/1.1", "http/1.1,echo", "echo"},
                       row{"h2,echo", "echo", "echo"}, row{"echo", "", ""}, row{"", "echo", ""}}) {
    auto program = [&]() -> task<> {
      socket_pair p = co_await tls_pair(ca, {.alpn = r.server}, {.alpn = r.client});
      EXPECT_EQ(p.a.alpn(), r.chosen);
      EXPECT_EQ(p.b.alpn(), r.chosen);
      p.a.close();
      EXPECT_EQ(p.a.alpn(), r.chosen);
    };
    weir::run(program);
  }
}

TEST(tls_verify, without_a_shared_protocol_both_ends_say_so) {
  const localhost_authority ca;
  text_log failed;
  auto seen = [&](const weir::event_info& e) {
    if (e.name == "connection_failed") failed.push_back(what_of(e.error));
  };
  while_serving_tls(ca.server("srv", {.alpn = "a"}), tls_echo, [&](int port) -> task<> {
    auto sub = weir::on_event(seen);
    const std::string got = co_await verdict("localhost", port, {.ca_file = ca.root, .alpn = "b"});
    EXPECT_TRUE(contains(got, "none of the application protocols")) << got;
    co_await wait_until([&] { return !failed.empty(); });
  });
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_TRUE(contains(failed[0], "no application protocol of this server")) << failed[0];
}

TEST(tls_verify, a_server_may_require_certificates_of_its_clients) {
  const localhost_authority ca;
  const localhost_authority other;
  ca.make("anna", {.names = "", .common_name = "anna"});
  other.make("bob", {.names = "", .common_name = "bob"});
  const std::string anna = ca / "anna.pem";
  const std::string anna_key = ca / "anna.key";
  const std::string bob = other / "bob.pem";
  const std::string bob_key = other / "bob.key";
  text_log failed;
  auto seen = [&](const weir::event_info& e) {
    if (e.name == "connection_failed") failed.push_back(what_of(e.error));
  };
  while_serving_tls(ca.server("srv", {.client_ca = ca.root}), tls_echo, [&](int port) -> task<> {
    auto sub = weir::on_event(seen);
    std::string got = co_await verdict(
        "localhost", port, {.ca_file = ca.root, .cert_file = anna, .key_file = anna_key});
    EXPECT_EQ(got, "accepted");
    EXPECT_TRUE(failed.empty());
    got = co_await verdict("localhost", port, {.ca_file = ca.root});
    EXPECT_TRUE(contains(got, "requires a certificate")) << got;
    got = co_await verdict("localhost", port,
                           {.ca_file = ca.root, .cert_file = bob, .key_file = bob_key});
    EXPECT_TRUE(contains(got, "unknown CA")) << got;
    co_await wait_until([&] { return failed.size() == 2; });
    EXPECT_TRUE(contains(failed[0], "has sent no certificate")) << failed[0];
    EXPECT_TRUE(contains(failed[1], "unknown authority")) << failed[1];
  });
}

TEST(tls_verify, files_that_are_not_what_they_must_be_are_refused_with_their_name) {
  const localhost_authority ca;
  ca.make("another");
  const std::string garbage = ca / "garbage";
  put_text(garbage, "-----BEGIN CERTIFICATE-----\nnothing\n");
  const std::string locked = ca / "locked";
  put_text(locked,
           "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
           "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAh\n"
           "-----END ENCRYPTED PRIVATE KEY-----\n");
  const std::string srv = ca / "srv.pem";
  const std::string key = ca / "srv.key";
  struct row {
    std::string certificate;
    std::string key;
    std::string client_ca;
    std::error_condition code;
    std::string named;
  };
  const std::error_condition missing(std::errc::no_such_file_or_directory);
  const std::error_condition bad = make_error_code(errc::bad_data).default_error_condition();
  for (const row& r :
       {row{ca / "none", key, "", missing, "none"}, row{srv, ca / "none", "", missing, "none"},
        row{srv, key, ca / "none", missing, "none"}, row{garbage, key, "", bad, "garbage"},
        row{srv, garbage, "", bad, "garbage"}, row{srv, locked, "", bad, "locked"},
        row{srv, key, garbage, bad, "garbage"}, row{srv, ca / "another.key", "", bad, "another"},
        row{ca / ".", key, "", bad, ""}}) {
    const std::exception_ptr error = thrown_by(
        [&] { return io::tls_context::server(r.certificate, r.key, {.client_ca = r.client_ca}); });
    EXPECT_TRUE(code_of(error) == r.code) << r.named << ": " << what_of(error);
    EXPECT_TRUE(contains(what_of(error), r.named)) << what_of(error);
  }
  EXPECT_EQ(ERR_peek_error(), 0U);
  auto program = [&]() -> task<> {
    const std::string none = ca / "none";
    EXPECT_EQ(
        co_await code_after([&] { return io::tls_connect("localhost", 1, {.ca_file = none}); }),
        std::errc::no_such_file_or_directory);
    EXPECT_EQ(
        co_await code_after([&] { return io::tls_connect("localhost", 1, {.ca_file = garbage}); }),
        errc::bad_data);
  };
  weir::run(program);
}

TEST(tls_verify, options_without_sense_are_refused) {
  const localhost_authority ca;
  for (const char* list : {",", "a,", ",a", "a,,b"}) {
    EXPECT_EQ(code_of(thrown_by([&] { return ca.server("srv", {.alpn = list}); })),
              errc::invalid_argument);
  }
  const std::string longest(256, 'a');
  const std::string nul("a\0b", 3);
  auto program = [&]() -> task<> {
    const io::tls_options wrong[] = {{.alpn = "a,,b"},       {.alpn = longest},
                                     {.cert_file = ca.root}, {.key_file = ca.root},
                                     {.server_name = "."},   {.server_name = ".example.org"},
                                     {.server_name = nul}};
    for (const io::tls_options& o : wrong) {
      EXPECT_EQ(co_await code_after([&] { return io::tls_connect("localhost", 1, o); }),
                errc::invalid_argument);
    }
  };
  weir::run(program);
}

TEST(tls_verify, a_reload_changes_new_connections_only) {
  const localhost_authority ca;
  const localhost_authority other;
  io::tls_context context = ca.server("srv");
  while_serving_tls(context, tls_echo, [&](int port) -> task<> {
    auto before = co_await io::tls_connect("localhost", port, {.ca_file = ca.root});
    put_text(ca / "srv.pem", text_of(other / "srv.pem"));
    EXPECT_EQ(code_of(thrown_by([&] {
                context.reload();
                return 0;
              })),
              errc::bad_data);
    EXPECT_EQ(co_await verdict("localhost", port, {.ca_file = ca.root}), "accepted");
    put_text(ca / "srv.key", text_of(other / "srv.key"));
    context.reload();
    EXPECT_EQ(co_await verdict("localhost", port, {.ca_file = other.root}), "accepted");
    const std::string got = co_await verdict("localhost", port, {.ca_file = ca.root});
    EXPECT_TRUE(contains(got, "unknown authority")) << got;
    co_await before.write_all("still");
    EXPECT_EQ(co_await read_n(before, 5), "still");
  });
}

TEST(tls_verify, a_client_reads_its_authorities_again_when_their_file_has_changed) {
  const localhost_authority ca;
  const localhost_authority other;
  const std::string trusted = ca / "trusted";
  put_text(trusted, text_of(other.root));
  while_serving_tls(ca.server("srv"), tls_echo, [&](int port) -> task<> {
    const std::string first = co_await verdict("localhost", port, {.ca_file = trusted});
    EXPECT_TRUE(contains(first, "unknown authority")) << first;
    put_text(trusted, text_of(other.root) + text_of(ca.root));
    EXPECT_EQ(co_await verdict("localhost", port, {.ca_file = trusted}), "accepted");
  });
}
