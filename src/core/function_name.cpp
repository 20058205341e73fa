// SPDX-License-Identifier: MIT
#include "core/function_name.hpp"

#include <algorithm>
#include <cstddef>

namespace weir::detail {

namespace {

constexpr std::size_t longest = 120;

bool is_opening(char c) noexcept { return c == '<' || c == '(' || c == '[' || c == '{'; }
bool is_closing(char c) noexcept { return c == '>' || c == ')' || c == ']' || c == '}'; }
bool is_word(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// The length of `operator<`, `operator()`, ... at `at`; 0 if there is none. Brackets in operator
/// names do not nest.
std::size_t operator_length(std::string_view text, std::size_t at) noexcept {
  constexpr std::string_view word = "operator";
  if (text.substr(at, word.size()) != word || (at > 0 && is_word(text[at - 1]))) return 0;
  std::size_t end = at + word.size();
  if (text.substr(end, 2) == "()" || text.substr(end, 2) == "[]") return word.size() + 2;
  while (end < text.size() &&
         std::string_view("<>=-!+*/%&|^~,").find(text[end]) != std::string_view::npos)
    ++end;
  return end == at + word.size() ? 0 : end - at;
}

/// The position after the bracket pair that opens at `at`.
std::size_t behind_bracket(std::string_view text, std::size_t at) noexcept {
  std::size_t depth = 0;
  for (std::size_t i = at; i < text.size();) {
    if (const std::size_t skipped = operator_length(text, i)) {
      i += skipped;
      continue;
    }
    if (text.substr(i, 2) == "->") {
      i += 2;
      continue;
    }
    if (is_opening(text[i])) ++depth;
    if (is_closing(text[i]) && --depth == 0) return i + 1;
    ++i;
  }
  return text.size();
}

/// Where the qualified name begins, after the return type: behind the last space outside brackets
/// that precedes the parameters.
std::size_t begin_of_name(std::string_view text) noexcept {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t skipped = operator_length(text, i)) {
      i += skipped;
    } else if (text[i] == '(' && text.substr(i, 11) != "(anonymous " && i > begin) {
      return begin;
    } else if (is_opening(text[i])) {
      i = behind_bracket(text, i);
    } else {
      if (text[i] == ' ' || text[i] == '*' || text[i] == '&') begin = i + 1;
      ++i;
    }
  }
  return begin;
}

/// The replacement of a top-level bracket.
std::string_view meaning_of(std::string_view bracket) noexcept {
  if (bracket.starts_with("<lambda") || bracket.starts_with("(lambda") ||
      bracket == "(anonymous class)")
    return "lambda";
  if (bracket.starts_with("<unnamed") || bracket.starts_with("(anonymous") ||
      bracket.starts_with("{anonymous") || bracket.starts_with("(unnamed") ||
      bracket.starts_with("{unnamed"))
    return "(anonymous)";
  return bracket.front() == '(' ? "()" : "";
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

std::string without_brackets(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t length = operator_length(text, i)) {
      out.append(text.substr(i, length));
      i += length;
    } else if (is_opening(text[i])) {
      const std::size_t end = behind_bracket(text, i);
      out.append(meaning_of(text.substr(i, end - i)));
      i = end;
    } else {
      out.push_back(text[i++]);
    }
  }
  return out;
}

std::string bounded(std::string text) {
  if (text.size() <= longest) return text;
  return "..." + text.substr(text.size() - longest + 3);
}

}  // namespace

std::string short_function_name(std::string_view pretty) {
  std::string text = without_brackets(pretty.substr(begin_of_name(pretty)));
  replace_all(text, "(anonymous)::", "");
  replace_all(text, "lambda::operator()()", "lambda");
  replace_all(text, "() const", "()");
  replace_all(text, "std::__cxx11::", "std::");
  // Cuts what follows the last function or lambda: noexcept, mutable, &&.
  std::size_t end = 0;
  for (const std::string_view last : {"()", "lambda"})
    if (const std::size_t at = text.rfind(last); at != std::string::npos)
      end = std::max(end, at + last.size());
  if (end > 0) text.resize(end);
  return bounded(std::move(text));
}

std::string short_type_name(std::string_view pretty) {
  std::string text = without_brackets(pretty);
  replace_all(text, "(anonymous)::", "");
  replace_all(text, "std::__cxx11::", "std::");
  return bounded(std::move(text));
}

bool is_own_function(std::string_view pretty) noexcept {
  return pretty.substr(begin_of_name(pretty)).starts_with("weir::");
}

}  // namespace weir::detail
