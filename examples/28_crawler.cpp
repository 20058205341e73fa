// SPDX-License-Identifier: MIT
// A crawler: follows the links of a (made up) site, three pages at once, ten requests per second.
// The pages to be visited are a queue, the queue is a stream, and fetching is a stage of it.

#include <cstdio>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) {
  std::printf("  %4d ms: %s\n", static_cast<int>(weir::now().time_since_epoch() / 1ms),
              what.c_str());
}

struct page {
  std::string url;
  std::vector<std::string> links;
  std::string error{};
};

/// Every page takes 250 ms; one of them does not exist.
class site {
 public:
  task<page> get(std::string url) {
    say("get " + url);
    co_await weir::sleep(250ms);
    const auto found = pages_.find(url);
    if (found == pages_.end()) throw std::runtime_error("404");
    co_return page{found->first, found->second};
  }

 private:
  std::map<std::string, std::vector<std::string>> pages_{
      {"/", {"/docs", "/blog", "/about"}},         {"/docs", {"/", "/docs/tasks", "/docs/streams"}},
      {"/docs/tasks", {"/docs", "/docs/streams"}}, {"/docs/streams", {"/docs", "/docs/tasks"}},
      {"/blog", {"/", "/blog/1", "/blog/2"}},      {"/blog/1", {"/blog"}},
      {"/blog/2", {"/blog", "/blog/3"}},           {"/about", {"/"}},
  };
};

class crawler {
 public:
  explicit crawler(site& of) : site_(of) {}

  task<> crawl(std::string start) {
    visit(std::move(start));
    auto fetch = rate_.wrap([&](std::string url) { return fetch_or_note(std::move(url)); });
    auto follow = [&](page p) { arrived(p); };
    co_await (frontier_.stream() | weir::map_async_unordered(3, fetch) | weir::for_each(follow));
    say(std::to_string(seen_.size()) + " pages");
  }

 private:
  // A page that cannot be fetched must not end the crawl, so its error becomes part of the result.
  task<page> fetch_or_note(std::string url) {
    std::string error;
    try {
      co_return co_await site_.get(url);
    } catch (const std::runtime_error& e) {
      error = e.what();
    }
    co_return page{url, {}, error};
  }
  void visit(std::string url) {
    if (!seen_.insert(url).second) return;
    ++open_;
    (void)frontier_.try_push(std::move(url));  // unbounded: there is always room
  }
  void arrived(const page& p) {
    say("got " + p.url + (p.error.empty() ? "" : ": " + p.error));
    for (const auto& link : p.links) visit(link);
    if (--open_ == 0) frontier_.close();  // nothing to visit and nothing in flight
  }

  site& site_;
  weir::queue<std::string> frontier_{weir::unbounded, {.name = "frontier"}};
  weir::rate_governor rate_{{.name = "site", .per_second = 10}};
  std::set<std::string> seen_;
  int open_ = 0;
};

task<> program() {
  site s;
  crawler c(s);
  co_await c.crawl("/");
}

}  // namespace

int main() { weir::sim::run({}, program); }
