// SPDX-License-Identifier: MIT
//
// Clients of the TLS servers: OpenSSL over blocking sockets, on one thread. Each round sends on all
// connections and then reads the answers. The certificate is made here; servers find it in the
// folder that the environment names.
#pragma once

#include <openssl/ssl.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "io/clients.hpp"

namespace bench {

struct ssl_end {
  void operator()(SSL_CTX* p) const { SSL_CTX_free(p); }
  void operator()(SSL* p) const { SSL_free(p); }
};

/// A folder with a certificate for this machine; servers inherit its name.
class tls_folder {
 public:
  tls_folder() {
    std::string name = "/tmp/weir-bench-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) give_up("no folder");
    path_ = name;
    const std::string command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=bench"
        " -addext subjectAltName=IP:127.0.0.1 -keyout " +
        path_ + "/key.pem -out " + path_ + "/cert.pem 2>/dev/null";
    if (std::system(command.c_str()) != 0) give_up("the program openssl is missing");
    setenv("WEIR_BENCH_TLS", path_.c_str(), 1);
  }
  tls_folder(const tls_folder&) = delete;
  tls_folder& operator=(const tls_folder&) = delete;
  ~tls_folder() { (void)!std::system(("rm -r " + path_).c_str()); }
  std::string certificate() const { return path_ + "/cert.pem"; }

 private:
  std::string path_;
};

class tls_clients {
 public:
  tls_clients(const tls_folder& folder, int port, std::size_t message)
      : port_(port),
        message_(message, 'x'),
        answer_(message, '\0'),
        context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_load_verify_file(context_.get(), folder.certificate().c_str());
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  }
  ~tls_clients() {
    while (!all_.empty()) close_last();
  }
  tls_clients(const tls_clients&) = delete;
  tls_clients& operator=(const tls_clients&) = delete;

  void open(std::int64_t count) {
    while (std::int64_t(all_.size()) < count) add();
  }
  void run(std::int64_t trips) {
    for (std::int64_t done = 0; done < trips; done += std::int64_t(all_.size())) {
      for (const connection& c : all_)
        if (SSL_write(c.ssl.get(), message_.data(), int(message_.size())) <= 0)
          give_up("cannot send");
      for (const connection& c : all_) read_answer(*c.ssl);
    }
  }
  /// Each with a connection of its own, which ends with it.
  void shake_hands(std::int64_t times) {
    for (std::int64_t i = 0; i < times; ++i) {
      add();
      close_last();
    }
  }

 private:
  struct connection {
    int descriptor;
    std::unique_ptr<SSL, ssl_end> ssl;
  };

  void add() {
    connection made{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                    std::unique_ptr<SSL, ssl_end>(SSL_new(context_.get()))};
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port_));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(made.descriptor, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
      give_up("cannot connect");
    const int on = 1;
    ::setsockopt(made.descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    SSL_set_fd(made.ssl.get(), made.descriptor);
    if (SSL_connect(made.ssl.get()) != 1) give_up("the handshake has failed");
    all_.push_back(std::move(made));
  }
  void close_last() {
    SSL_shutdown(all_.back().ssl.get());
    ::close(all_.back().descriptor);
    all_.pop_back();
  }
  void read_answer(SSL& from) {
    for (std::size_t got = 0; got < answer_.size();) {
      const int n = SSL_read(&from, answer_.data() + got, int(answer_.size() - got));
      if (n <= 0) give_up("a connection has ended");
      got += std::size_t(n);
    }
    if (answer_ != message_) give_up("not the answer");
  }

  int port_;
  std::string message_;
  std::string answer_;
  std::unique_ptr<SSL_CTX, ssl_end> context_;
  std::vector<connection> all_;
};

}  // namespace bench
