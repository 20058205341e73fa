// SPDX-License-Identifier: MIT
#include "io/tls_settings.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>

#include "io/system.hpp"
#include "io/tls_reason.hpp"
#include "io/tls_stream.hpp"

namespace weir::detail {

namespace {

/// OpenSSL's queue of errors is empty before and after.
class clean_errors {
 public:
  clean_errors() noexcept { ERR_clear_error(); }
  clean_errors(const clean_errors&) = delete;
  clean_errors& operator=(const clean_errors&) = delete;
  ~clean_errors() { ERR_clear_error(); }
};

[[noreturn]] void refuse_file(const std::string& what, const std::string& path) {
  raise(errc::bad_data, "tls: " + what + " '" + path + "': " + first_openssl_error());
}

/// OpenSSL does not say reliably why it could not open a file.
void require_readable(const std::string& what, const std::string& path) {
  if (::access(path.c_str(), R_OK) != 0) raise_system(errno, "tls: " + what + " '" + path + "'");
}

/// Without it OpenSSL would ask for the passphrase of a key on the terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

ssl_context_ref new_context(const SSL_METHOD* method) {
  ssl_context_ref made(SSL_CTX_new(method));
  if (made == nullptr) throw std::bad_alloc();
  SSL_CTX* const c = made.get();
  SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
  SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // A record is offered again from another place, and idle connections hold no buffers.
  SSL_CTX_set_mode(c, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(c, 1);
  // Tickets need no memory of the server. Sessions of clients are not used again.
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_default_passwd_cb(c, no_passphrase);
  return made;
}

void load_identity(SSL_CTX* c, const std::string& certificate, const std::string& key) {
  require_readable("certificate", certificate);
  require_readable("key", key);
  if (SSL_CTX_use_certificate_chain_file(c, certificate.c_str()) != 1)
    refuse_file("certificate", certificate);
  // The key is compared with the certificate as it is read.
  if (SSL_CTX_use_PrivateKey_file(c, key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(c) != 1)
    refuse_file("key of certificate '" + certificate + "',", key);
}

void load_authorities(SSL_CTX* c, const std::string& file) {
  require_readable("authorities", file);
  if (SSL_CTX_load_verify_file(c, file.c_str()) != 1) refuse_file("authorities", file);
}

/// The first of the server's protocols that the client offers.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* size,
                    const unsigned char* offered, unsigned offered_size, void* wanted) {
  const auto& mine = *static_cast<const std::string*>(wanted);
  unsigned char* chosen = nullptr;
  const int found =
      SSL_select_next_proto(&chosen, size, reinterpret_cast<const unsigned char*>(mine.data()),
                            static_cast<unsigned>(mine.size()), offered, offered_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// ------------------------------------------------------------------ files that may have changed

/// What changes when a file is written or replaced, or a folder gets another entry.
struct file_stamp {
  explicit file_stamp(const std::string& path) noexcept {
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0) return;
    parts = {static_cast<long long>(found.st_dev),
             static_cast<long long>(found.st_ino),
             static_cast<long long>(found.st_size),
             found.st_mtim.tv_sec,
             found.st_mtim.tv_nsec,
             found.st_ctim.tv_sec,
             found.st_ctim.tv_nsec};
  }
  friend bool operator==(const file_stamp&, const file_stamp&) = default;
  std::array<long long, 7> parts{};
};

std::string place_of_roots(const char* variable, const char* otherwise) {
  const char* const set = std::getenv(variable);
  return set != nullptr ? set : otherwise;
}

std::vector<file_stamp> stamps_of(const tls_client_files& files) {
  std::vector<file_stamp> found;
  if (files.ca.empty()) {
    found.emplace_back(
        place_of_roots(X509_get_default_cert_file_env(), X509_get_default_cert_file()));
    found.emplace_back(
        place_of_roots(X509_get_default_cert_dir_env(), X509_get_default_cert_dir()));
  } else {
    found.emplace_back(files.ca);
  }
  if (!files.certificate.empty()) {
    found.emplace_back(files.certificate);
    found.emplace_back(files.key);
  }
  return found;
}

/// Parsing the authorities takes far longer than a handshake, so the settings of clients are kept.
class client_settings_cache {
 public:
  static client_settings_cache& instance() {
    // Not destroyed: at the end of the process OpenSSL may have cleaned up before.
    static client_settings_cache& cache = *new client_settings_cache;
    return cache;
  }

  tls_settings_ref find(const tls_client_files& files, const std::vector<file_stamp>& stamps) {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(entries_.begin(), entries_.end(),
                                 [&](const entry& e) { return e.files == files; });
    if (at == entries_.end() || at->stamps != stamps) return nullptr;
    std::rotate(entries_.begin(), at, at + 1);
    return entries_.front().settings;
  }

  void put(const tls_client_files& files, std::vector<file_stamp> stamps, tls_settings_ref made) {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const entry& e) { return e.files == files; });
    if (entries_.size() == most) entries_.pop_back();
    entries_.insert(entries_.begin(), entry{files, std::move(stamps), std::move(made)});
  }

 private:
  static constexpr std::size_t most = 16;
  struct entry {
    tls_client_files files;
    std::vector<file_stamp> stamps;
    tls_settings_ref settings;
  };

  std::mutex mutex_;
  std::vector<entry> entries_;  // the last used first
};

}  // namespace

std::string alpn_as_sent(std::string_view list, const char* whose) {
  std::string sent;
  if (list.empty()) return sent;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string_view name = list.substr(at, end - at);
    if (name.empty() || name.size() > 255)
      raise(errc::invalid_argument,
            std::string(whose) + ": alpn '" + std::string(list) +
                "': the names of protocols have 1 to 255 bytes, and commas between them");
    sent += static_cast<char>(name.size());
    sent += name;
    at = end + 1;
  }
  if (sent.size() > 65535) raise(errc::invalid_argument, std::string(whose) + ": alpn is too long");
  return sent;
}

tls_settings_ref known_client_settings(const tls_client_files& files) {
  return client_settings_cache::instance().find(files, stamps_of(files));
}

tls_settings_ref read_client_settings(const tls_client_files& files) {
  const clean_errors clean;
  // Before reading: a file that is replaced meanwhile is read again next time.
  std::vector<file_stamp> stamps = stamps_of(files);
  auto made = std::make_shared<tls_settings>();
  made->context = new_context(TLS_client_method());
  if (files.ca.empty()) {
    SSL_CTX_set_default_verify_paths(made->context.get());
  } else {
    load_authorities(made->context.get(), files.ca);
  }
  if (!files.certificate.empty()) load_identity(made->context.get(), files.certificate, files.key);
  client_settings_cache::instance().put(files, std::move(stamps), made);
  return made;
}

// ------------------------------------------------------------------ servers

tls_server::tls_server(std::string certificate, std::string key, std::string client_ca,
                       std::string alpn)
    : certificate_(std::move(certificate)),
      key_(std::move(key)),
      client_ca_(std::move(client_ca)),
      alpn_(std::move(alpn)),
      settings_(read()) {}

tls_settings_ref tls_server::read() const {
  const clean_errors clean;
  auto made = std::make_shared<tls_settings>();
  made->context = new_context(TLS_server_method());
  SSL_CTX* const c = made->context.get();
  load_identity(c, certificate_, key_);
  // The streams send them, see tls_stream.hpp.
  SSL_CTX_set_num_tickets(c, 0);
  // Sessions of clients with certificates cannot be resumed without it.
  constexpr std::string_view session_kind = "weir";
  SSL_CTX_set_session_id_context(c, reinterpret_cast<const unsigned char*>(session_kind.data()),
                                 session_kind.size());
  if (!client_ca_.empty()) {
    load_authorities(c, client_ca_);
    STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(client_ca_.c_str());
    if (names == nullptr) refuse_file("authorities", client_ca_);
    SSL_CTX_set_client_CA_list(c, names);
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  made->alpn = alpn_as_sent(alpn_, "tls_context::server");
  if (!made->alpn.empty()) SSL_CTX_set_alpn_select_cb(c, choose_protocol, &made->alpn);
  return made;
}

void tls_server::reload() {
  tls_settings_ref fresh = read();
  const std::lock_guard lock(mutex_);
  settings_.swap(fresh);
}

std::unique_ptr<stream_core> tls_server::encrypt(std::unique_ptr<stream_core> below) {
  tls_settings_ref now;
  {
    const std::lock_guard lock(mutex_);
    now = settings_;
  }
  ssl_ref made(SSL_new(now->context.get()));
  if (made == nullptr) throw std::bad_alloc();
  SSL_set_accept_state(made.get());
  return std::make_unique<tls_stream>(std::move(below), std::move(now), std::move(made), "");
}

}  // namespace weir::detail
