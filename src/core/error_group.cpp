// SPDX-License-Identifier: MIT
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <cxxabi.h>

#include <weir/error.hpp>

#include "core/error.hpp"
#include "core/error_notes.hpp"
#include "core/function_name.hpp"

namespace weir {

namespace {

/// The group inside an exception; null if it is something else.
std::shared_ptr<const error_group> as_group(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const error_group& group) {
    return std::make_shared<const error_group>(group);
  } catch (...) {
    return nullptr;
  }
}

std::string type_of(const std::exception_ptr& error) {
  const std::type_info* type = error.__cxa_exception_type();
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), std::free);
  return readable == nullptr ? type->name() : readable.get();
}

std::string text_of(const std::exception_ptr& error) {
  if (error == nullptr) return "no error";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return detail::what_of(e);
  } catch (const std::string& text) {
    return text;
  } catch (const char* text) {
    return text;
  } catch (...) {
    return "an exception of type " + detail::short_type_name(type_of(error));
  }
}

}  // namespace

// Groups and causes nest as deep as scopes do. Errors released by the destruction of another error
// are queued and destroyed one after the other, so that the stack does not grow with the depth.
void detail::bury(std::vector<std::exception_ptr> dying) noexcept {
  static thread_local std::vector<std::exception_ptr>* graves = nullptr;
  if (graves != nullptr) {
    for (auto& e : dying) graves->push_back(std::move(e));
    return;
  }
  graves = &dying;
  while (!dying.empty()) {
    std::exception_ptr last = std::move(dying.back());
    dying.pop_back();
    last = nullptr;  // may add to the list
  }
  graves = nullptr;
}

void detail::bury(std::exception_ptr&& dying) noexcept {
  if (dying == nullptr) return;
  std::vector<std::exception_ptr> one;
  one.push_back(std::move(dying));
  bury(std::move(one));
}

/// Shared by all copies of a group.
struct error_group::node {
  explicit node(std::vector<std::exception_ptr> given) : errors(std::move(given)) {}
  node(const node&) = delete;
  node& operator=(const node&) = delete;
  ~node() { detail::bury(std::move(errors)); }

  std::vector<std::exception_ptr> errors;
  std::string heading;
  std::once_flag text_made;
  std::string text;
};

error_group::error_group(std::vector<std::exception_ptr> errors)
    : error(errc::group), node_(std::make_shared<node>(std::move(errors))) {}
error_group::error_group(errc code, std::string heading, std::vector<std::exception_ptr> errors)
    : error(code), node_(std::make_shared<node>(std::move(errors))) {
  node_->heading = std::move(heading);
}

const std::vector<std::exception_ptr>& error_group::errors() const noexcept {
  return node_->errors;
}

std::vector<std::exception_ptr> error_group::flatten() const {
  std::vector<std::exception_ptr> leaves;
  std::vector<std::exception_ptr> open(node_->errors.rbegin(), node_->errors.rend());
  while (!open.empty()) {
    const std::exception_ptr next = std::move(open.back());
    open.pop_back();
    if (const auto group = as_group(next)) {
      open.insert(open.end(), group->errors().rbegin(), group->errors().rend());
    } else {
      leaves.push_back(next);
    }
  }
  return leaves;
}

const char* error_group::what() const noexcept {
  try {
    std::call_once(node_->text_made, [this] {
      const auto leaves = flatten();
      std::string text = node_->heading;
      if (!text.empty()) text.append("; ");
      text.append(std::to_string(leaves.size())).append(leaves.size() == 1 ? " error" : " errors");
      if (leaves.empty()) return void(node_->text = std::move(text));
      const std::string first = text_of(leaves.front());
      const std::string last = text_of(leaves.back());
      if (leaves.size() == 1) {
        text.append(": ").append(first);
      } else if (leaves.size() == 2) {
        text.append(": ").append(first).append("; ").append(last);
      } else if (first == last) {
        text.append(", the first and the last: ").append(first);
      } else {
        text.append(", the first: ").append(first).append("; the last: ").append(last);
      }
      node_->text = std::move(text);
    });
    return node_->text.c_str();
  } catch (...) {
    return "several errors";
  }
}

// Iterative: each open group collects the two halves of its members, and hands its own halves to
// the enclosing group after its last member.
std::pair<std::optional<error_group>, std::optional<error_group>> error_group::split_by(
    bool (*matches)(void*, const std::exception_ptr&), void* predicate) const {
  struct open_group {
    std::vector<std::exception_ptr> members;
    std::size_t next = 0;
    std::vector<std::exception_ptr> matching;
    std::vector<std::exception_ptr> rest;
  };
  std::vector<open_group> open;
  open.push_back({node_->errors, 0, {}, {}});
  for (;;) {
    open_group& top = open.back();
    if (top.next < top.members.size()) {
      const std::exception_ptr member = top.members[top.next++];
      if (const auto group = as_group(member)) {
        open.push_back({group->errors(), 0, {}, {}});
      } else {
        (matches(predicate, member) ? top.matching : top.rest).push_back(member);
      }
      continue;
    }
    std::optional<error_group> matching;
    std::optional<error_group> rest;
    if (!top.matching.empty()) matching.emplace(std::move(top.matching));
    if (!top.rest.empty()) rest.emplace(std::move(top.rest));
    open.pop_back();
    if (open.empty()) return {std::move(matching), std::move(rest)};
    if (matching) open.back().matching.push_back(std::make_exception_ptr(*std::move(matching)));
    if (rest) open.back().rest.push_back(std::make_exception_ptr(*std::move(rest)));
  }
}

// ------------------------------------------------------------------ describe

namespace {

constexpr std::size_t max_indent = 32;  // keeps the text of deep trees readable and linear in size

void add_line(std::string& out, std::size_t depth, std::string_view text) {
  out.append(2 * std::min(depth, max_indent), ' ').append(text).push_back('\n');
}

void add_notes(std::string& out, std::size_t depth, const std::exception_ptr& error) {
  for (const detail::error_note& note : detail::notes_of(error)) {
    if (note.what == detail::error_note::kind::fiber) {
      const std::string as = note.name.empty() ? "" : " as '" + note.name + "'";
      add_line(out, depth, "spawned at " + detail::text_of(note.where) + as);
      continue;
    }
    const bool awaited = note.where.line() != 0;
    const char* const at = !awaited      ? ", which begins at "
                           : note.thrown ? ", after its await at "
                                         : " at ";
    add_line(out, depth,
             (note.thrown ? "thrown in " : "awaited in ") +
                 detail::short_function_name(note.function.function_name()) + at +
                 detail::text_of(awaited ? note.where : note.function));
  }
}

/// The text of a tree with repeated neighbours folded into one.
class folded_text {
 public:
  void add(std::size_t depth, std::string part) {
    if (depth == depth_ && part == last_) return void(++repeats_);
    flush();
    out_.append(part);
    last_ = std::move(part);
    depth_ = depth;
  }
  std::string take() {
    flush();
    return std::move(out_);
  }

 private:
  void flush() {
    if (repeats_ > 0)
      add_line(out_, depth_, "... and " + std::to_string(repeats_) + " more like it");
    repeats_ = 0;
  }
  std::string out_;
  std::string last_;
  std::size_t depth_ = 0;
  std::size_t repeats_ = 0;
};

}  // namespace

std::string describe(const std::exception_ptr& error) {
  if (error == nullptr) return "no error";
  struct item {
    std::exception_ptr error;
    std::size_t depth;
  };
  folded_text out;
  std::vector<item> open{{error, 0}};
  while (!open.empty()) {
    item next = std::move(open.back());
    open.pop_back();
    auto group = as_group(next.error);
    std::size_t collapsed = 0;
    while (group != nullptr && group->errors().size() == 1 && group->node_->heading.empty()) {
      next.error = group->errors().front();  // a chain of one-member groups is one line
      group = as_group(next.error);
      ++collapsed;
    }
    const std::string nested = collapsed > 1    ? " (in " + std::to_string(collapsed) + " groups)"
                               : collapsed == 1 ? " (in a group)"
                                                : "";
    std::string part;
    if (group == nullptr) {
      const std::string type = detail::short_type_name(type_of(next.error));
      add_line(part, next.depth, text_of(next.error) + " [" + type + "]" + nested);
    } else {
      const std::size_t count = group->errors().size();
      const std::string& heading = group->node_->heading;
      add_line(part, next.depth,
               heading + (heading.empty() ? "" : "; ") + std::to_string(count) +
                   (count == 1 ? " error" : " errors") + nested);
    }
    add_notes(part, next.depth + 1, next.error);
    out.add(next.depth, std::move(part));
    if (group == nullptr) continue;
    for (auto e = group->errors().rbegin(); e != group->errors().rend(); ++e)
      open.push_back({*e, next.depth + 1});
  }
  return out.take();
}

}  // namespace weir
