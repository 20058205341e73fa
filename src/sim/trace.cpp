// SPDX-License-Identifier: MIT
#include <weir/sim/trace.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <ostream>
#include <utility>

#include <weir/error.hpp>

namespace weir::sim {

namespace {

constexpr std::string_view head = "weir-trace 1 ";
constexpr std::uint64_t longest = 100'000'000;  // most choices that a text expands to

void append_hex(std::string& out, std::uint64_t value) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, 16).ptr;
  out.append(digits, end);
}

void append_run(std::string& out, const trace::choice& first, std::size_t count) {
  if (first.of == trace::fault) {
    out.append("-").append(std::to_string(count));
  } else {
    out.append(std::to_string(first.of)).append("*").append(std::to_string(count));
  }
}

/// Parses a text from left to right and reports where it is wrong.
class reader {
 public:
  explicit reader(std::string_view text) noexcept : text_(text) {}

  bool at_end() const noexcept { return at_ == text_.size(); }
  bool skip(std::string_view expected) noexcept {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }
  void expect(std::string_view expected) {
    if (!skip(expected)) fail("'" + std::string(expected) + "' is missing");
  }
  void skip_blanks() noexcept {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  template <class Number>
  Number number(int base = 10) {
    Number value{};
    const char* begin = text_.data() + at_;
    const auto [stopped, problem] =
        std::from_chars(begin, text_.data() + text_.size(), value, base);
    if (problem != std::errc()) fail("a number is missing or too large");
    at_ += static_cast<std::size_t>(stopped - begin);
    return value;
  }
  [[noreturn]] void fail(const std::string& what) const {
    detail::raise(errc::invalid_argument, "trace::parse: at character " + std::to_string(at_ + 1) +
                                              ": " + what +
                                              "; give the whole line that was printed");
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

strategy read_strategy(reader& in) {
  if (in.skip("fifo")) return fifo;
  if (in.skip("random")) return random;
  const bool is_pct = in.skip("pct(");
  if (!is_pct && !in.skip("dfs(")) in.fail("a strategy is missing");
  const int depth = in.number<int>();
  in.expect(")");
  if (depth < (is_pct ? 1 : 0) || (is_pct && depth > 1000))
    in.fail("a strategy of depth " + std::to_string(depth));
  return is_pct ? pct(depth) : dfs(depth);
}

void read_choice(reader& in, std::vector<trace::choice>& out) {
  const auto repeat = [&](const trace::choice& c, std::uint64_t count) {
    if (count == 0 || count > longest - out.size()) in.fail("a count out of range");
    out.insert(out.end(), static_cast<std::size_t>(count), c);
  };
  if (in.skip("r")) {
    out.push_back({in.number<std::uint64_t>(16), trace::random_number});
  } else if (in.skip("f")) {
    out.push_back({1, trace::fault});
  } else if (in.skip("-")) {
    repeat({0, trace::fault}, in.number<std::uint64_t>());
  } else {
    const auto first = in.number<std::uint32_t>();
    if (in.skip("*")) {
      if (first < 2) in.fail("a choice among fewer than two");
      repeat({0, first}, in.number<std::uint64_t>());
    } else {
      in.expect("/");
      const auto options = in.number<std::uint32_t>();
      if (first == 0 || first >= options) in.fail("a choice that is not among its options");
      out.push_back({first, options});
    }
  }
}

}  // namespace

std::string to_string(const strategy& s) {
  switch (s.what) {
    case strategy::kind::fifo:
      return "fifo";
    case strategy::kind::random:
      return "random";
    case strategy::kind::pct:
      return "pct(" + std::to_string(s.depth) + ")";
    case strategy::kind::dfs:
      return "dfs(" + std::to_string(s.depth) + ")";
  }
  return "unknown";
}

trace::trace(sim::strategy strategy, std::uint64_t seed, std::vector<choice> choices,
             std::int64_t max_steps)
    : strategy_(strategy),
      seed_(seed),
      max_steps_(max_steps),
      known_(true),
      choices_(std::move(choices)) {}

trace trace::of_seed(sim::strategy strategy, std::uint64_t seed, std::int64_t max_steps) {
  trace made(strategy, seed, {}, max_steps);
  made.known_ = false;
  return made;
}

std::size_t trace::preemptions() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(choices_.begin(), choices_.end(),
                    [](const choice& c) { return c.of != random_number && c.pick != 0; }));
}

std::string trace::text() const {
  std::string out(head);
  out.append(to_string(strategy_)).append(" seed=").append(std::to_string(seed_));
  if (max_steps_ != std::int64_t{unbounded})
    out.append(" steps=").append(std::to_string(max_steps_));
  out.append(known_ ? " :" : " : ?");
  for (std::size_t i = 0; i < choices_.size();) {
    const choice& c = choices_[i];
    out.push_back(' ');
    if (c.of == random_number) {
      append_hex(out.append("r"), c.pick);
      ++i;
    } else if (c.pick == 0) {
      std::size_t end = i;
      while (end < choices_.size() && choices_[end] == c) ++end;
      append_run(out, c, end - i);
      i = end;
    } else {
      if (c.of == fault) {
        out.append("f");
      } else {
        out.append(std::to_string(c.pick)).append("/").append(std::to_string(c.of));
      }
      ++i;
    }
  }
  return out;
}

trace trace::parse(std::string_view text) {
  reader in(text);
  in.skip_blanks();
  in.expect(head);
  const sim::strategy how = read_strategy(in);
  in.expect(" seed=");
  const auto seed = in.number<std::uint64_t>();
  std::int64_t max_steps = unbounded;
  if (in.skip(" steps=")) max_steps = in.number<std::int64_t>();
  if (max_steps <= 0) in.fail("a limit of steps that is not positive");
  in.expect(" :");
  in.skip_blanks();
  if (in.skip("?")) {
    in.skip_blanks();
    if (!in.at_end()) in.fail("something after the end");
    return of_seed(how, seed, max_steps);
  }
  std::vector<choice> choices;
  while (!in.at_end()) {
    read_choice(in, choices);
    const bool blank = in.skip(" ") || in.skip("\n");
    in.skip_blanks();
    if (!blank && !in.at_end()) in.fail("a blank is missing");
  }
  return {how, seed, std::move(choices), max_steps};
}

std::ostream& operator<<(std::ostream& out, const trace& t) { return out << t.text(); }

}  // namespace weir::sim
