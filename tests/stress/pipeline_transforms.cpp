// SPDX-License-Identifier: MIT
// Operators of random pipelines: those that wait for nothing but their source, and batches.
#include "stress/pipeline_world.hpp"

namespace fuzz {

namespace {

items build_limit(const node& n, items in) {
  switch (n.what) {
    case op::take:
      return std::move(in) | weir::take(n.a);
    case op::take_while:
      return std::move(in) |
             weir::take_while([k = n.a](const item& i) { return early(i.value(), k); });
    case op::take_until:
      return std::move(in) | weir::take_until(weir::sleep(ms(5 * n.a)));
    case op::drop:
      return std::move(in) | weir::drop(n.a);
    case op::drop_while:
      return std::move(in) |
             weir::drop_while([k = n.a](const item& i) { return early(i.value(), k); });
    case op::take_last:
      return std::move(in) | weir::take_last(n.a);
    default:
      return std::move(in) | weir::skip_last(n.a);
  }
}

}  // namespace

items build_transform(world& w, const node& n, items in) {
  (void)w;
  switch (n.what) {
    case op::map:
      return std::move(in) | weir::map([](const item& i) { return item(mapped(i.value())); });
    case op::filter:
      return std::move(in) | weir::filter([k = n.a](const item& i) { return kept(i.value(), k); });
    case op::filter_map:
      return std::move(in) | weir::filter_map([k = n.a](item i) -> std::optional<item> {
               if (!kept(i.value(), k)) return std::nullopt;
               return i;
             });
    case op::scan:
      return std::move(in) |
             weir::scan(item(0), [](const item&, const item& i) { return item(i.value()); });
    case op::enumerate:
      return std::move(in) | weir::enumerate() |
             weir::map([](auto p) { return item(std::get<1>(p).value()); });
    case op::tap:
      return std::move(in) | weir::tap([](const item&) {});
    case op::dedup:
      return std::move(in) | weir::dedup();
    case op::distinct:
      return std::move(in) | weir::distinct(1000);
    case op::start_with:
      return std::move(in) | weir::start_with(item(extra_item));
    default:
      return build_limit(n, std::move(in));
  }
}

items build_batch(world& w, const node& n, items in) {
  (void)w;
  auto flat = weir::flat_map([](auto batch) { return weir::from(std::move(batch)); });
  switch (n.what) {
    case op::chunks:
      return std::move(in) | weir::chunks(n.b) | flat;
    case op::timed_chunks:
      return std::move(in) | weir::chunks(n.b, ms(n.c + 1)) | flat;
    case op::ready_chunks:
      return std::move(in) | weir::ready_chunks(n.b) | flat;
    case op::sliding:
      return std::move(in) | weir::sliding(n.b) |
             weir::map([](auto window) { return item(window.front().value()); });
    default:
      return std::move(in) | weir::group_by([](const item& i) { return i.value() / 3; }) |
             weir::flat_map([](auto group) { return weir::from(std::move(group.second)); });
  }
}

}  // namespace fuzz
