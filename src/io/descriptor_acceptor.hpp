// SPDX-License-Identifier: MIT
// A listening socket of the system.
#pragma once

#include <memory>
#include <string>

#include <weir/io/listener.hpp>

#include "io/reactor.hpp"
#include "io/system.hpp"

namespace weir::detail {

class tls_server;

class descriptor_acceptor final : public acceptor_core, private reactor_entry {
 public:
  /// `file`: the path of a Unix socket whose file is removed with it; empty: none.
  /// `tls`: what connections are encrypted with; null: nothing.
  descriptor_acceptor(owned_descriptor descriptor, std::string file,
                      std::shared_ptr<tls_server> tls = nullptr);
  ~descriptor_acceptor() override;

  accepted accept() override;
  bool has_connection() noexcept override;
  void close() noexcept override;
  io::endpoint local() const noexcept override { return local_; }
  int native_handle() const noexcept override { return descriptor_.get(); }

 private:
  int watch(io_side side) noexcept override;
  void unwatch(io_side side) noexcept override;
  void happened(reactor& from, std::uint32_t events) noexcept override;
  void remove_file() noexcept;

  owned_descriptor descriptor_;
  io::endpoint local_;
  std::string file_;
  std::shared_ptr<tls_server> tls_;
  unsigned long file_device_ = 0;
  unsigned long file_number_ = 0;
};

}  // namespace weir::detail
