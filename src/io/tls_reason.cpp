// SPDX-License-Identifier: MIT
#include "io/tls_reason.hpp"

#include <openssl/err.h>
#include <openssl/x509v3.h>

namespace weir::detail {

namespace {

std::string verification_problem(SSL* ssl, const std::string& name) {
  const long result = SSL_get_verify_result(ssl);
  switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "its certificate has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "its certificate is not valid yet";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return "its certificate is from an unknown authority; if it is to be trusted, name the "
             "authority's file";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "its certificate is not for '" + name + "'";
    default:
      return std::string("its certificate was refused: ") + X509_verify_cert_error_string(result);
  }
}

std::string alert_text(int alert) {
  switch (alert) {
    case SSL_AD_NO_APPLICATION_PROTOCOL:
      return "it speaks none of the application protocols that were offered (alpn)";
    case TLS13_AD_CERTIFICATE_REQUIRED:
      return "it requires a certificate; give cert_file and key_file";
    case SSL_AD_PROTOCOL_VERSION:
      return "it speaks no version of TLS that is allowed here (1.2 and 1.3)";
    default:
      return std::string("it has refused with the alert '") + SSL_alert_desc_string_long(alert) +
             "'";
  }
}

bool is_no_tls(int reason) noexcept {
  switch (reason) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_UNKNOWN_PROTOCOL:
    case SSL_R_BAD_RECORD_TYPE:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_RECORD_LENGTH_MISMATCH:
    case SSL_R_RECORD_TOO_SMALL:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string first_openssl_error() {
  const unsigned long code = ERR_peek_error();
  const char* const reason = ERR_reason_error_string(code);
  if (reason != nullptr) return reason;
  return code == 0 ? "it does not contain what it must" : "error " + std::to_string(code);
}

std::string tls_reason(SSL* ssl, const std::string& name, bool during_handshake) {
  // The protocol's own error comes last, after those of what it has called.
  const unsigned long code = ERR_peek_last_error();
  if (ERR_GET_LIB(code) != ERR_LIB_SSL) return first_openssl_error();
  const int reason = ERR_GET_REASON(code);
  if (reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256)
    return alert_text(reason - SSL_AD_REASON_OFFSET);
  if (during_handshake && is_no_tls(reason)) return "it does not speak TLS";
  switch (reason) {
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
      return verification_problem(ssl, name);
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "it has sent no certificate, and the server requires one";
    case SSL_R_NO_APPLICATION_PROTOCOL:
      return "it offers no application protocol of this server (alpn)";
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
      return "it speaks no version of TLS that is allowed here (1.2 and 1.3)";
    default:
      return first_openssl_error();
  }
}

}  // namespace weir::detail
