// SPDX-License-Identifier: MIT
// The system's addresses and errors as weir's.
#pragma once

#include <cerrno>
#include <string>
#include <utility>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <weir/error.hpp>
#include <weir/io/endpoint.hpp>

namespace weir::detail {

/// A descriptor with an owner.
class owned_descriptor {
 public:
  owned_descriptor() noexcept = default;
  explicit owned_descriptor(int number) noexcept : number_(number) {}
  owned_descriptor(owned_descriptor&& other) noexcept : number_(other.release()) {}
  owned_descriptor& operator=(owned_descriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~owned_descriptor() { reset(); }

  int get() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }
  int release() noexcept { return std::exchange(number_, -1); }
  void reset(int number = -1) noexcept {
    if (number_ >= 0) ::close(number_);
    number_ = number;
  }

 private:
  int number_ = -1;
};

/// Throws a weir::error with the system's code; the text is `what` and what the system says.
[[noreturn]] void raise_system(int error, const std::string& what);

/// A socket address as the system wants it.
struct system_address {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;

  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
};
system_address to_system(const io::endpoint& e) noexcept;
io::endpoint from_system(const system_address& a) noexcept;
io::endpoint local_of(int descriptor) noexcept;
io::endpoint peer_of(int descriptor) noexcept;

/// A port of a caller. Outside of 0 to 65535: errc::invalid_argument.
void require_port(int port, const char* what);

}  // namespace weir::detail
