// SPDX-License-Identifier: MIT
// Fetching pages in parallel: all at once in one scope, but few at a time from each host, by a
// governor of its own. The first page that is missing cancels the others; when the scope has ended
// no request is under way, and every connection is given back.
#include <weir/io.hpp>
#include <weir/weir.hpp>

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace std::chrono_literals;
namespace http = weir::http;

/// How many requests a host handles, and what the largest number was.
struct load {
  int now = 0;
  int highest = 0;
};

/// A host: pages need a moment, "slow" ones an hour, "missing" ones are not there.
http::router make_host(load& l) {
  http::router pages;
  pages.get("/{page}", [&](http::request& r) -> weir::task<http::response> {
    l.highest = std::max(l.highest, ++l.now);
    auto left = weir::scope_exit([&] { --l.now; });  // also if the client has gone away
    if (r.param("page") == "missing") co_return http::response(404);
    co_await weir::sleep(r.param("page") == "slow" ? 1h : 5ms);
    co_return http::response(200, std::string(r.param("page")));
  });
  return pages;
}

class fetcher {
 public:
  /// The pages in the order of the URLs, or the first error; the others are cancelled then.
  weir::task<std::vector<std::string>> fetch_all(std::vector<std::string> urls) {
    auto all = [&](weir::scope& s) -> weir::task<std::vector<std::string>> {
      std::vector<weir::child<std::string>> pages;
      for (const std::string& url : urls) pages.push_back(s.spawn(fetch(url), {.name = "page"}));
      std::vector<std::string> texts;
      for (auto& page : pages) texts.push_back(co_await page);
      co_return texts;
    };
    co_return co_await weir::with_scope({.name = "fetch"}, all);
  }

 private:
  weir::task<std::string> fetch(std::string url) {
    auto permit = co_await governor_of(url).acquire();  // given back on every way out
    http::response page = co_await client_.get(url);
    page.raise_for_status();
    co_return std::move(page).body();
  }
  weir::counting_governor& governor_of(const std::string& url) {
    const std::string host = url.substr(0, url.find('/', std::string("http://").size()));
    return per_host_.try_emplace(host, 2).first->second;  // two at a time
  }

  http::client client_;
  std::map<std::string, weir::counting_governor> per_host_;
};

weir::task<> fetch_pages(std::string one, std::string two) {
  fetcher f;
  const std::vector<std::string> good{one + "/a", one + "/b", one + "/c", one + "/d", two + "/e"};
  for (const std::string& text : co_await f.fetch_all(good)) std::cout << text << " ";
  std::cout << "\n";
  const std::vector<std::string> bad{one + "/slow", one + "/missing", two + "/slow"};
  try {
    co_await f.fetch_all(bad);
  } catch (const http::status_error& e) {
    std::cout << "status " << e.status() << ", and nothing is left behind\n";
  }
}

weir::task<> program() {
  load loads[2];
  auto first = co_await weir::io::listen();
  auto second = co_await weir::io::listen();
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.background(http::serve(first, make_host(loads[0]), {.drain = 0ms}));
    s.background(http::serve(second, make_host(loads[1]), {.drain = 0ms}));
    co_await fetch_pages("http://127.0.0.1:" + std::to_string(first.port()),
                         "http://127.0.0.1:" + std::to_string(second.port()));
  });
  std::cout << "at most " << loads[0].highest << " at once, " << loads[0].now + loads[1].now
            << " left\n";
}

int main() { weir::run(program()); }
