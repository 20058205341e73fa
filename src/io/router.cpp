// SPDX-License-Identifier: MIT
// Routes are a tree of segments. A node has the handlers of the patterns that end there, by method.
#include <weir/http/router.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <weir/error.hpp>

#include "io/http_exchange.hpp"

namespace weir::detail {

namespace {

/// A handler, and what its pattern calls the params on the way to it.
struct route {
  std::string method;
  std::vector<std::string> names;
  std::shared_ptr<http_handler> handler;
};

}  // namespace

struct route_node {
  std::map<std::string, std::unique_ptr<route_node>, std::less<>> literals;
  std::unique_ptr<route_node> param;
  std::unique_ptr<route_node> rest;
  std::vector<route> routes;
};

namespace {

std::unique_ptr<route_node> copy_of(const route_node& from) {
  auto to = std::make_unique<route_node>();
  for (const auto& [text, node] : from.literals) to->literals.emplace(text, copy_of(*node));
  if (from.param != nullptr) to->param = copy_of(*from.param);
  if (from.rest != nullptr) to->rest = copy_of(*from.rest);
  to->routes = from.routes;
  return to;
}

[[noreturn]] void refuse_pattern(std::string_view pattern, const std::string& why) {
  throw error(errc::invalid_argument, "route '" + std::string(pattern) + "': " + why);
}

const route* route_of(const route_node& node, std::string_view method) noexcept {
  if (method == "HEAD") method = "GET";
  for (const route& r : node.routes)
    if (r.method == method) return &r;
  return nullptr;
}

/// Looks for the route of a request, depth first, in the order of precedence. Collects the methods
/// of all patterns that fit the path on its way.
class route_search {
 public:
  route_search(const http_exchange& x) : segments_(x.segments), method_(x.head.method) {}

  const route* find(const route_node& node, std::size_t at) {
    if (at == segments_.size()) return end_at(node);
    const std::string segment = percent_decoded(segments_[at]).value_or("");
    if (const auto literal = node.literals.find(segment); literal != node.literals.end())
      if (const route* found = find(*literal->second, at + 1)) return found;
    if (node.param != nullptr && !segment.empty()) {
      values.push_back(segment);
      if (const route* found = find(*node.param, at + 1)) return found;
      values.pop_back();
    }
    if (node.rest == nullptr) return nullptr;
    std::string tail = segment;
    for (std::size_t i = at + 1; i < segments_.size(); ++i)
      tail.append("/").append(percent_decoded(segments_[i]).value_or(""));
    values.push_back(std::move(tail));
    if (const route* found = end_at(*node.rest)) return found;
    values.pop_back();
    return nullptr;
  }

  std::vector<std::string> values;
  std::vector<std::string_view> methods;  // of the patterns that fit the path

 private:
  const route* end_at(const route_node& node) {
    for (const route& r : node.routes)
      if (std::find(methods.begin(), methods.end(), r.method) == methods.end())
        methods.push_back(r.method);
    return route_of(node, method_);
  }

  const std::vector<std::string_view>& segments_;
  std::string_view method_;
};

std::string allowed(const std::vector<std::string_view>& methods) {
  std::string list;
  for (const std::string_view method : methods) {
    list.append(method).append(", ");
    if (method == "GET") list += "HEAD, ";
  }
  return list += "OPTIONS";
}

void collect_methods(const route_node& node, std::vector<std::string_view>& into) {
  for (const route& r : node.routes)
    if (std::find(into.begin(), into.end(), r.method) == into.end()) into.push_back(r.method);
  for (const auto& [text, below] : node.literals) collect_methods(*below, into);
  if (node.param != nullptr) collect_methods(*node.param, into);
  if (node.rest != nullptr) collect_methods(*node.rest, into);
}

task<http::response> ready_answer(http::response r) { co_return r; }

route_node& child_of(std::unique_ptr<route_node>& place) {
  if (place == nullptr) place = std::make_unique<route_node>();
  return *place;
}

/// The node of a segment of a pattern, below `node`.
route_node& descend(route_node& node, std::string_view segment, route& r, std::string_view pattern,
                    bool last) {
  if (segment.find_first_of("{}") == segment.npos)
    return child_of(node.literals[std::string(segment)]);
  if (segment.size() < 3 || segment.front() != '{' || segment.back() != '}' ||
      segment.substr(1, segment.size() - 2).find_first_of("{}") != segment.npos)
    refuse_pattern(pattern, "a param is a whole segment, as {name}");
  std::string_view name = segment.substr(1, segment.size() - 2);
  const bool rest = name.ends_with("...");
  if (rest) name.remove_suffix(3);
  if (name.empty()) refuse_pattern(pattern, "a param has a name");
  if (rest && !last) refuse_pattern(pattern, "{" + std::string(name) + "...} comes last");
  if (std::find(r.names.begin(), r.names.end(), name) != r.names.end())
    refuse_pattern(pattern, "two params are called '" + std::string(name) + "'");
  r.names.emplace_back(name);
  return child_of(rest ? node.rest : node.param);
}

}  // namespace

}  // namespace weir::detail

namespace weir::http {

router::router() : root_(std::make_unique<detail::route_node>()) {}
router::router(const router& other) : root_(detail::copy_of(*other.root_)) {}
router::router(router&&) noexcept = default;
router& router::operator=(router other) noexcept {
  root_.swap(other.root_);
  return *this;
}
router::~router() = default;

void router::insert(std::string_view method, std::string_view pattern,
                    std::shared_ptr<detail::http_handler> handler) {
  if (!pattern.starts_with('/')) detail::refuse_pattern(pattern, "a pattern begins with /");
  detail::route r{std::string(method), {}, std::move(handler)};
  detail::route_node* node = root_.get();
  for (std::string_view rest = pattern.substr(1);;) {
    const std::size_t slash = rest.find('/');
    const bool last = slash == rest.npos;
    node = &detail::descend(*node, rest.substr(0, slash), r, pattern, last);
    if (last) break;
    rest.remove_prefix(slash + 1);
  }
  for (const detail::route& known : node->routes)
    if (known.method == method)
      detail::refuse_pattern(pattern, "there is a route for this pattern and " + r.method);
  node->routes.push_back(std::move(r));
}

task<response> router::operator()(request& r) const {
  detail::http_exchange& x = r.exchange();
  detail::route_search search(x);
  if (const detail::route* found = x.path == "*" ? nullptr : search.find(*root_, 0)) {
    for (std::size_t i = 0; i < found->names.size(); ++i)
      x.params.emplace_back(found->names[i], std::move(search.values[i]));
    return found->handler->handle(r);
  }
  if (x.path == "*") detail::collect_methods(*root_, search.methods);
  if (search.methods.empty() && x.path != "*")
    return detail::ready_answer(response(404, "not found\n"));
  const std::string allow = detail::allowed(search.methods);
  if (x.head.method == "OPTIONS") return detail::ready_answer(response(204).set("allow", allow));
  return detail::ready_answer(response(405, "method not allowed\n").set("allow", allow));
}

}  // namespace weir::http
