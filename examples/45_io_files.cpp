// SPDX-License-Identifier: MIT
// A configuration file that is replaced atomically, read line by line, and read again on SIGHUP;
// and a log that is appended to.
#include <weir/io.hpp>
#include <weir/weir.hpp>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <string>

using namespace std::chrono_literals;

weir::task<int> sum_of(std::string path) {
  int sum = 0;
  auto lines = weir::io::lines(path);
  while (auto line = co_await lines.next()) sum += std::stoi(*line);
  co_return sum;
}

weir::task<> reload(std::string path, int times) {
  auto hangups = weir::io::signals(SIGHUP);  // in force from here
  std::raise(SIGHUP);
  for (int i = 0; i < times; ++i) {
    co_await hangups.next();
    std::cout << "sum " << co_await sum_of(path) << "\n";
    co_await weir::io::write_file(path, "1\n2\n39\n");  // readers see the old file or the new
    std::raise(SIGHUP);
  }
}

weir::task<> write_log(std::string path) {
  auto log = co_await weir::io::file::open(path, weir::io::mode::append);
  co_await log.append("started\n");
  co_await log.append("stopped\n");
  co_await log.sync();
  std::cout << co_await log.size() << " bytes\n";
  co_await log.close();
  std::cout << co_await weir::io::read_file(path);
}

weir::task<> program(std::string folder) {
  co_await weir::io::write_file(folder + "/numbers", "1\n2\n3\n");
  co_await reload(folder + "/numbers", 2);
  co_await write_log(folder + "/log");
  try {
    co_await weir::io::read_file(folder + "/log", 10);
  } catch (const weir::error& e) {
    std::cout << (e.code() == weir::errc::too_large ? "too large\n" : e.what());
  }
}

int main() {
  const auto folder = std::filesystem::temp_directory_path() / "weir_example_files";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  weir::run(program(folder.string()));
  std::filesystem::remove_all(folder);
}
