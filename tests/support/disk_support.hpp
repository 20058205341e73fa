// SPDX-License-Identifier: MIT
// Small things that the tests of disks need: a seeded host for a simulated disk, text in and out of
// files, and questions about the errors of a call.
#pragma once

#include <weir/sim/disk.hpp>
#include <weir/sim/sim_disk.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace disk_support {

using weir::disk;
using weir::disk_file;
using weir::open_mode;
using names = std::vector<std::string>;

/// splitmix64: small, good enough, and the same on every machine.
class generator {
 public:
  explicit generator(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) noexcept { return next() % n; }
  bool chance(double rate) noexcept { return static_cast<double>(next() >> 11) * 0x1p-53 < rate; }

 private:
  std::uint64_t state_;
};

class seeded_host final : public weir::detail::disk_host {
 public:
  explicit seeded_host(std::uint64_t seed = 0) : random_(seed) {}

  bool chance(double rate) override {
    ++draws;
    return random_.chance(rate);
  }
  std::uint64_t below(std::uint64_t n) override {
    ++draws;
    return random_.below(n);
  }
  std::uint32_t owner() const noexcept override { return who; }
  bool dead() const noexcept override { return is_dead; }

  std::uint32_t who = 1;
  bool is_dead = false;
  int draws = 0;

 private:
  generator random_;
};

/// A simulated disk with a host of its own.
struct rig {
  explicit rig(std::uint64_t seed = 0) : host(seed), disk(host) {}

  seeded_host host;
  weir::sim::simulated_disk disk;
};

inline std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline void put(disk_file& file, std::string_view text, std::uint64_t offset = 0) {
  weir::write_all(file, bytes(text), offset);
}

inline std::string get(disk_file& file) {
  std::string text(file.size(), '?');
  weir::read_exactly(file, std::as_writable_bytes(std::span(text)), 0);
  return text;
}

inline std::string get(disk& from, const std::string& path) {
  return get(*from.open(path, open_mode::read));
}

/// A file whose content and name last.
inline std::unique_ptr<disk_file> durable_file(disk& on, const std::string& path,
                                               std::string_view text) {
  auto file = on.open(path, open_mode::create);
  put(*file, text);
  file->sync();
  on.sync_directory("/");
  return file;
}

/// The code that a call fails with; a default one if it does not.
template <class F>
std::error_code code_of_failure(F&& call) {
  try {
    (void)call();
  } catch (const std::system_error& e) {
    return e.code();
  }
  return {};
}

template <class F>
std::string text_of(F&& call) {
  try {
    (void)call();
  } catch (const std::system_error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace disk_support
