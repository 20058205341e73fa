// SPDX-License-Identifier: MIT
// What connections of TLS share: certificates, keys and authorities, as OpenSSL's contexts.
//
// Invariants:
// 1. A context is complete before a connection uses it, and is not changed afterwards: so loops
//    share it without a lock, and a reload replaces it as a whole.
// 2. A connection keeps the settings that it began with.
// 3. No function here leaves an entry in OpenSSL's queue of errors, which belongs to the thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include <openssl/ssl.h>

#include <weir/detail/io/stream_core.hpp>

namespace weir::detail {

struct openssl_delete {
  void operator()(SSL_CTX* p) const noexcept { SSL_CTX_free(p); }
  void operator()(SSL* p) const noexcept { SSL_free(p); }
};
using ssl_context_ref = std::unique_ptr<SSL_CTX, openssl_delete>;
using ssl_ref = std::unique_ptr<SSL, openssl_delete>;

struct tls_settings {
  ssl_context_ref context;
  std::string alpn;  // of a server, as in a handshake
};
using tls_settings_ref = std::shared_ptr<const tls_settings>;

/// The protocols of a comma-separated list, as in a handshake: each after its length. Throws
/// errc::invalid_argument.
std::string alpn_as_sent(std::string_view list, const char* whose);

/// The files of a client. Empty names: none, or the authorities of the system.
struct tls_client_files {
  std::string ca;
  std::string certificate;
  std::string key;

  friend bool operator==(const tls_client_files&, const tls_client_files&) = default;
};
/// The settings of these files if they were read before and have not changed; otherwise null. The
/// last few are remembered for all threads.
tls_settings_ref known_client_settings(const tls_client_files& files);
/// Reads the files, which blocks. Throws weir::error.
tls_settings_ref read_client_settings(const tls_client_files& files);

/// The state of a tls_context. Threads: any.
class tls_server {
 public:
  tls_server(std::string certificate, std::string key, std::string client_ca, std::string alpn);
  tls_server(const tls_server&) = delete;
  tls_server& operator=(const tls_server&) = delete;

  void reload();
  /// The server's end of an accepted connection, before its handshake. Throws std::bad_alloc.
  std::unique_ptr<stream_core> encrypt(std::unique_ptr<stream_core> below);

 private:
  tls_settings_ref read() const;

  const std::string certificate_;
  const std::string key_;
  const std::string client_ca_;
  const std::string alpn_;
  std::mutex mutex_;
  tls_settings_ref settings_;
};

}  // namespace weir::detail
