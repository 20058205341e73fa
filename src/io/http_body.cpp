// SPDX-License-Identifier: MIT
#include "io/http_body.hpp"

#include <algorithm>

namespace weir::detail {

void http_body_reader::begin(http_framing framing, std::uint64_t length) {
  left_ = framing == http_framing::length ? length : 0;
  extra_ = fields_ = 0;
  digits_ = 0;
  line_.clear();
  switch (framing) {
    case http_framing::none:
      phase_ = phase::ended;
      break;
    case http_framing::length:
      phase_ = length == 0 ? phase::ended : phase::counted;
      break;
    case http_framing::chunked:
      phase_ = phase::size;
      break;
    case http_framing::until_close:
      phase_ = phase::open;
      break;
  }
}

http_body_reader::piece http_body_reader::read(std::string_view input) {
  std::size_t at = 0;
  while (at < input.size() && phase_ != phase::ended) {
    if (phase_ == phase::open) return {input.size(), input.substr(at), {}};
    if (phase_ == phase::counted || phase_ == phase::data) {
      piece found =
          take_data(input.substr(at), phase_ == phase::data ? phase::data_cr : phase::ended);
      found.consumed += at;
      return found;
    }
    if (const http_fault bad = step(input[at])) return {at, {}, bad};
    ++at;
  }
  return {at, {}, {}};
}

http_body_reader::piece http_body_reader::take_data(std::string_view input, phase next) {
  const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size()));
  left_ -= n;
  if (left_ == 0) phase_ = next;
  return {n, input.substr(0, n), {}};
}

bool http_body_reader::end_of_input() noexcept {
  if (phase_ == phase::open) phase_ = phase::ended;
  return phase_ == phase::ended;
}

http_fault http_body_reader::step(char c) {
  switch (phase_) {
    case phase::size:
      return step_size(c);
    case phase::extension:
      if (++extra_ > limits_.max_head) return {400, "the extensions of chunks are too long"};
      if (c == '\r') {
        phase_ = phase::size_end;
      } else if (!is_http_value({&c, 1})) {
        return {400, "the extension of a chunk has a control character"};
      }
      return {};
    case phase::size_end:
      if (c != '\n') return {400, "the size of a chunk does not end with CR LF"};
      phase_ = left_ == 0 ? phase::trailer : phase::data;
      digits_ = 0;
      if (left_ == 0) extra_ = 0;
      return {};
    case phase::data_cr:
      if (c != '\r') return {400, "a chunk is longer than its size"};
      phase_ = phase::data_end;
      return {};
    case phase::data_end:
      if (c != '\n') return {400, "a chunk does not end with CR LF"};
      phase_ = phase::size;
      return {};
    default:
      return step_trailer(c);
  }
}

http_fault http_body_reader::step_size(char c) {
  if (digits_ > 0 && c == '\r') {
    phase_ = phase::size_end;
    return {};
  }
  if (digits_ > 0 && c == ';') {
    phase_ = phase::extension;
    return {};
  }
  const int digit = http_hex_digit(c);
  if (digit < 0) return {400, "the size of a chunk is not hexadecimal"};
  if (++digits_ > 16) return {400, "the size of a chunk has more than 16 digits"};
  left_ = left_ * 16 + static_cast<unsigned>(digit);
  return {};
}

http_fault http_body_reader::step_trailer(char c) {
  if (++extra_ > limits_.max_head) return {431, "the trailers are longer than the limit"};
  if (c != '\n') {
    line_ += c;
    return {};
  }
  if (line_.empty() || line_.back() != '\r') return {400, "a line does not end with CR LF"};
  line_.pop_back();
  if (line_.empty()) {
    phase_ = phase::ended;
    return {};
  }
  if (++fields_ > limits_.max_fields) return {431, "the trailers have too many fields"};
  http_field ignored;
  const http_fault bad = read_field(line_, ignored);
  line_.clear();
  return bad;
}

}  // namespace weir::detail
