// SPDX-License-Identifier: MIT
// What the tests of TLS share: a small certificate authority, made by OpenSSL in a folder of its
// own, servers on loopback, and OpenSSL itself as a foreign peer on the same thread.
#pragma once

#include <weir/io/tls.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "io_support.hpp"

namespace weir_test {

struct openssl_end {
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(SSL_CTX* p) const { SSL_CTX_free(p); }
  void operator()(SSL* p) const { SSL_free(p); }
  void operator()(std::FILE* p) const { std::fclose(p); }
};
template <class T>
using openssl_ref = std::unique_ptr<T, openssl_end>;

/// What a certificate is issued for. Times are seconds from now.
struct certificate_wish {
  std::string names = "DNS:localhost,IP:127.0.0.1";  // empty: no alternative names
  std::string common_name = "test";
  long from = -3600;
  long until = 3600;
};

/// A certificate authority, with its certificate in the file `ca.pem`.
class authority : public scratch_folder {
 public:
  authority() : key_(EVP_EC_gen("P-256")) {
    ca_ = issue({.names = "", .common_name = *this / "ca"}, key_.get(), true);
    write_certificate("ca", *ca_);
  }

  /// Makes `name`.pem and `name`.key.
  void make(const std::string& name, const certificate_wish& wish = {}) const {
    const openssl_ref<EVP_PKEY> key(EVP_EC_gen("P-256"));
    write_certificate(name, *issue(wish, key.get(), false));
    const openssl_ref<std::FILE> file(std::fopen((*this / (name + ".key")).c_str(), "w"));
    PEM_write_PrivateKey(file.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  }
  io::tls_context server(const std::string& name, io::tls_server_options options = {}) const {
    return io::tls_context::server(*this / (name + ".pem"), *this / (name + ".key"), options);
  }

 private:
  openssl_ref<X509> issue(const certificate_wish& wish, EVP_PKEY* key, bool is_ca) const {
    openssl_ref<X509> made(X509_new());
    X509* const x = made.get();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(x), wish.from);
    X509_gmtime_adj(X509_getm_notAfter(x), wish.until);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(wish.common_name.c_str()), -1,
                               -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(is_ca ? x : ca_.get()));
    X509_set_pubkey(x, key);
    if (is_ca) extend(x, NID_basic_constraints, "critical,CA:TRUE");
    if (!wish.names.empty()) extend(x, NID_subject_alt_name, wish.names);
    EXPECT_GT(X509_sign(x, key_.get(), EVP_sha256()), 0);
    return made;
  }
  static void extend(X509* x, int kind, const std::string& value) {
    X509_EXTENSION* const e = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
    ASSERT_NE(e, nullptr) << value;
    X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
  }
  void write_certificate(const std::string& name, X509& certificate) const {
    const openssl_ref<std::FILE> file(std::fopen((*this / (name + ".pem")).c_str(), "w"));
    PEM_write_X509(file.get(), &certificate);
  }

  openssl_ref<EVP_PKEY> key_;
  openssl_ref<X509> ca_;
  mutable long serial_ = 0;
};

/// An authority, and the certificate `srv` for localhost.
struct localhost_authority : authority {
  localhost_authority() { make("srv"); }
  const std::string root = *this / "ca.pem";
};

inline task<> tls_echo(io::socket& c) {
  std::array<std::byte, 4096> buffer;
  while (const std::size_t n = co_await c.read_some(buffer))
    co_await c.write_all(std::span(buffer).first(n));
}

/// Serves with TLS while `body(port)` runs.
template <class Handler, class Body>
void while_serving_tls(io::tls_context context, Handler handler, Body body,
                       io::serve_options options = {.drain = 0ms}) {
  auto program = [&]() -> task<> {
    auto l = co_await io::listen({.tls = &context});
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto serve = [&]() -> task<> { co_await io::serve(l, handler, options); };
      s.background(serve);
      co_await body(l.port());
    });
  };
  weir::run(program);
  EXPECT_EQ(ERR_peek_error(), 0U);  // nothing is left for the next user of OpenSSL
}

/// Both ends of a TLS connection, with a handshake made.
inline task<socket_pair> tls_pair(const localhost_authority& ca, io::tls_server_options server = {},
                                  io::tls_options client = {}) {
  io::tls_context context = ca.server("srv", server);
  auto l = co_await io::listen({.tls = &context});
  client.ca_file = ca.root;
  socket_pair made;
  auto accept = [&]() -> task<> {
    made.b = co_await l.accept();
    co_await made.b.handshake();
  };
  auto connect = [&]() -> task<> {
    made.a = co_await io::tls_connect("localhost", l.port(), client);
  };
  co_await weir::all(accept, connect);
  co_return made;
}

/// Passes bytes on between a client, which connects to `port()`, and a server. After `limit` bytes
/// of the server it ends both connections.
class relay {
 public:
  relay(int to, std::size_t limit) : to_(to), limit_(limit) {}
  task<> listen() { listener_ = co_await io::listen(); }
  int port() const { return listener_.port(); }
  /// One connection.
  task<> run() {
    client_ = co_await listener_.accept();
    server_ = co_await io::connect("127.0.0.1", to_);
    auto up = [this]() -> task<> { co_await pass(client_, server_, -1UL); };
    auto down = [this]() -> task<> { co_await pass(server_, client_, limit_); };
    co_await weir::race(up, down);
    // What was not read would reset the connection, which is another error than its end.
    client_.shutdown_write();
    (void)co_await attempt([this] { return read_all(client_); });
  }

 private:
  static task<> pass(io::socket& from, io::socket& to, std::size_t limit) {
    std::array<std::byte, 512> buffer;
    while (limit > 0) {
      const std::size_t n =
          co_await from.read_some(std::span(buffer).first(std::min(limit, buffer.size())));
      if (n == 0) co_return;
      co_await to.write_all(std::span(buffer).first(n));
      limit -= n;
    }
  }

  int to_;
  std::size_t limit_;
  io::listener listener_;
  io::socket client_;
  io::socket server_;
};

/// OpenSSL over a plain socket, driven by hand: `step` moves what can be moved.
class openssl_peer {
 public:
  openssl_peer(int port, int version) : context_(SSL_CTX_new(TLS_client_method())) {
    socket_ = plain_socket::dial(port);
    SSL_CTX_set_min_proto_version(context_.get(), version);
    SSL_CTX_set_max_proto_version(context_.get(), version);
    ssl_.reset(SSL_new(context_.get()));
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(in_, -1);
    SSL_set_bio(ssl_.get(), in_, out_);
    SSL_set_connect_state(ssl_.get());
  }
  ~openssl_peer() { ERR_clear_error(); }

  SSL* ssl() { return ssl_.get(); }
  plain_socket& socket() { return socket_; }
  /// What was decrypted until now.
  const std::string& received() const { return received_; }
  /// Why a read has failed.
  const std::string& failure() const { return failure_; }
  bool failed() const { return !failure_.empty(); }

  void write(std::string_view text) {
    SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size()));
    step();
  }
  void step() {
    if (!ended_) receive();
    std::array<char, 4096> piece;
    for (;;) {
      const int n = SSL_read(ssl_.get(), piece.data(), static_cast<int>(piece.size()));
      if (n <= 0 && SSL_get_error(ssl_.get(), n) == SSL_ERROR_SSL && failure_.empty())
        failure_ = ERR_reason_error_string(ERR_peek_error());
      if (n <= 0) break;
      received_.append(piece.data(), static_cast<std::size_t>(n));
    }
    send();
    ERR_clear_error();
  }
  /// Steps until `done()`, while the loop runs.
  template <class F>
  task<> until(F done) {
    for (step(); !done(); step()) co_await weir::yield();
  }
  task<> shake_hands() {
    co_await until([this] {
      SSL_do_handshake(ssl_.get());
      return SSL_is_init_finished(ssl_.get()) != 0;
    });
    step();
  }

 private:
  void receive() {
    const std::string came = socket_.arrived();
    ended_ = came == "(end)" || came == "(error)";
    if (!ended_ && !came.empty()) BIO_write(in_, came.data(), static_cast<int>(came.size()));
  }
  void send() {
    char* bytes = nullptr;
    const long n = BIO_get_mem_data(out_, &bytes);
    if (n > 0) socket_.send(std::string_view(bytes, static_cast<std::size_t>(n)));
    (void)BIO_reset(out_);
  }

  openssl_ref<SSL_CTX> context_;
  openssl_ref<SSL> ssl_;
  BIO* in_;
  BIO* out_;
  plain_socket socket_;
  std::string received_;
  std::string failure_;
  bool ended_ = false;
};

}  // namespace weir_test
