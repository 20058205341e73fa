// SPDX-License-Identifier: MIT
// Why TLS has failed, in words. Read from OpenSSL's queue of errors, which is not changed.
#pragma once

#include <string>

#include <openssl/ssl.h>

namespace weir::detail {

/// Of a handshake or a record. `name`: whose certificate was expected.
std::string tls_reason(SSL* ssl, const std::string& name, bool during_handshake);
/// What OpenSSL says about its first error.
std::string first_openssl_error();

}  // namespace weir::detail
