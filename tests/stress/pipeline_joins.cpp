// SPDX-License-Identifier: MIT
// Operators of random pipelines: those of several streams.
#include "stress/pipeline_world.hpp"

namespace fuzz {

items build_joined(world& w, const node& n) {
  items a = build(w, n.inputs[0]);
  items b = build(w, n.inputs[1]);
  const auto first = [](const auto& both) { return item(std::get<0>(both).value()); };
  switch (n.what) {
    case op::merge:
      if (n.inputs.size() == 2) return weir::merge(std::move(a), std::move(b));
      return weir::merge(std::move(a), std::move(b), build(w, n.inputs[2]));
    case op::concat:
      if (n.inputs.size() == 2) return weir::concat(std::move(a), std::move(b));
      return weir::concat(std::move(a), std::move(b), build(w, n.inputs[2]));
    case op::zip:
      return weir::zip(std::move(a), std::move(b)) | weir::map(first);
    case op::combine_latest:
      if (n.a == 0) return weir::combine_latest(std::move(a), std::move(b)) | weir::map(first);
      return weir::combine_latest(std::move(a), std::move(b)) |
             weir::map([](const auto& both) { return item(std::get<1>(both).value()); });
    case op::race_streams:
      return weir::race_streams(std::move(a), std::move(b));
    default:
      return std::move(a) | weir::with_latest_from(std::move(b)) | weir::map(first);
  }
}

}  // namespace fuzz
