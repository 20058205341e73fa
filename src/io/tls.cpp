// SPDX-License-Identifier: MIT
#include <weir/io/tls.hpp>

#include <new>
#include <string>
#include <utility>

#include <arpa/inet.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <weir/blocking.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/io/connect.hpp>

#include "core/loop.hpp"
#include "io/tls_settings.hpp"
#include "io/tls_stream.hpp"

namespace weir {

namespace detail {

namespace {

/// What a client wants: everything is a copy.
struct tls_wish {
  explicit tls_wish(const io::tls_options& o)
      : files{std::string(o.ca_file), std::string(o.cert_file), std::string(o.key_file)},
        name(o.server_name),
        alpn(o.alpn),
        verify(o.verify) {}

  tls_client_files files;
  std::string name;
  std::string alpn;
  bool verify;
};

bool is_address(const std::string& name) noexcept {
  unsigned char ignored[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, name.c_str(), ignored) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), ignored) == 1;
}

/// The name as certificates have it: without the dot at the end of a full name, and the interface
/// of a link-local address. A dot at the beginning would match every name below it.
std::string expected_name(const std::string& given) {
  std::string name = given.substr(0, given.find('%'));
  if (name.size() > 1 && name.back() == '.') name.pop_back();
  if (name.empty() || name.front() == '.' || name.find('\0') != std::string::npos)
    raise(errc::invalid_argument, "tls_connect: '" + given + "' is not the name of a server");
  return name;
}

void expect_server(SSL* ssl, const std::string& name) {
  X509_VERIFY_PARAM* const rules = SSL_get0_param(ssl);
  X509_VERIFY_PARAM_set_hostflags(
      rules, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const bool known = is_address(name)
                         ? X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str()) == 1
                         : X509_VERIFY_PARAM_set1_host(rules, name.c_str(), name.size()) == 1;
  if (!known) {
    ERR_clear_error();
    raise(errc::invalid_argument, "tls_connect: '" + name + "' is not the name of a server");
  }
  SSL_set_verify(ssl, SSL_VERIFY_PEER, nullptr);
}

ssl_ref client_end(const tls_settings& settings, const tls_wish& wish, const std::string& name) {
  ERR_clear_error();
  ssl_ref made(SSL_new(settings.context.get()));
  if (made == nullptr) throw std::bad_alloc();
  SSL_set_connect_state(made.get());
  if (wish.verify) expect_server(made.get(), name);
  if (!is_address(name) && SSL_set_tlsext_host_name(made.get(), name.c_str()) != 1) {
    ERR_clear_error();
    raise(errc::invalid_argument, "tls_connect: '" + name + "' is not the name of a server");
  }
  const std::string alpn = alpn_as_sent(wish.alpn, "tls_connect");
  // The one call of OpenSSL that returns 0 for success.
  if (!alpn.empty() &&
      SSL_set_alpn_protos(made.get(), reinterpret_cast<const unsigned char*>(alpn.data()),
                          static_cast<unsigned>(alpn.size())) != 0)
    throw std::bad_alloc();
  return made;
}

task<io::socket> connect_with_tls(std::string host, int port, tls_wish wish) {
  require_no_run("tls_connect", host);
  if (require_fiber("tls_connect").env().simulated())
    raise(errc::invalid_argument, "tls_connect: a simulation has no TLS; use connect");
  if (wish.files.certificate.empty() != wish.files.key.empty())
    raise(errc::invalid_argument, "tls_connect: cert_file and key_file are given together");
  const std::string name = expected_name(wish.name.empty() ? host : wish.name);
  tls_settings_ref settings = known_client_settings(wish.files);
  if (settings == nullptr)
    settings = co_await blocking([&] { return read_client_settings(wish.files); });
  ssl_ref end = client_end(*settings, wish, name);
  io::socket carrier = co_await io::connect(host, port);
  io::socket made(std::make_unique<tls_stream>(std::move(carrier).release_core(),
                                               std::move(settings), std::move(end), name));
  co_await made.handshake();
  co_return made;
}

}  // namespace
}  // namespace detail

namespace io {

task<socket> tls_connect(std::string_view host, int port, tls_options options) {
  return detail::connect_with_tls(std::string(host), port, detail::tls_wish(options));
}

tls_context tls_context::server(std::string_view cert_file, std::string_view key_file,
                                tls_server_options options) {
  return tls_context(std::make_shared<detail::tls_server>(
      std::string(cert_file), std::string(key_file), std::string(options.client_ca),
      std::string(options.alpn)));
}

void tls_context::reload() { core_->reload(); }

}  // namespace io
}  // namespace weir
