// SPDX-License-Identifier: MIT
// Every kind of temporary: X(name, expression). In scope are the items `v` and `w`, which may be
// moved from, and the bool `yes`, which is true.
#pragma once

// clang-format off
#define PLAIN_KINDS(X) \
  X(constructed, item(1)) \
  X(constructed_with_braces, item{1}) \
  X(cast, static_cast<item>(1)) \
  X(converted, static_cast<item>(converts{})) \
  X(returned, make(1)) \
  X(copied, v) \
  X(moved, std::move(w)) \
  X(passed_through, same(item(1))) \
  X(bound_to_a_reference, refer(item(1))) \
  X(member_of_a_temporary, wrapped(item(1)).a) \
  X(after_a_comma, ((void)yes, item(1))) \
  X(assigned, (w = item(1))) \
  X(concatenated, item(1) + item(2) + v) \
  X(chained, item(1).with(item(2)).with(v)) \
  X(default_argument, plain_default()) \
  X(subscripted, two()[1]) \
  X(new_expression, std::unique_ptr<item>(new item(1))) \
  X(optional, std::optional<item>{item(1)}) \
  X(pair_with_braces, (std::pair<item, int>{item(1), 2})) \
  X(tuple, std::make_tuple(item(1), 2)) \
  X(vector, std::vector<item>(2, item(1))) \
  X(exchanged, std::exchange(w, item(1))) \
  X(from_an_await, (co_await give(1)).with(item(2))) \
  X(from_two_awaits, same(co_await give(1)) + co_await give(2)) \
  X(logical_and, (number(item(1)) && number(item(2))))

#define CLOSURE_KINDS(X) \
  X(closure, [v] { return *v.value; }) \
  X(closure_with_init, [x = item(1)] { return *x.value; }) \
  X(closure_with_move, [x = std::move(w)] { return *x.value; }) \
  X(closure_with_default_copy, [=] { return *v.value; }) \
  X(closure_with_shared, [p = std::make_shared<item>(1)] { return *p->value; }) \
  X(closure_mutable, [x = v]() mutable { return ++*x.value; }) \
  X(closure_passed_through, same([v] { return *v.value; })) \
  X(closure_as_function, std::function<int()>([v] { return *v.value; })) \
  X(closure_into_a_function, take_function([v] { return *v.value; })) \
  X(closure_called, [v] { return item(*v.value); }()) \
  X(closure_with_an_await, [x = co_await give(1)] { return *x.value; }) \
  X(closure_by_reference, [&] { return *v.value; }) \
  X(closure_by_reference_called, [&] { return item(*v.value); }()) \
  X(closure_with_a_number, [yes] { return yes ? 1 : 2; }) \
  X(closure_without_captures, [] { return 1; })

#define AGGREGATE_KINDS(X) \
  X(aggregate, (pair{item(1), 2})) \
  X(aggregate_of_a_copy, (pair{v, 2})) \
  X(aggregate_of_a_move, (pair{std::move(w), 2})) \
  X(aggregate_designated, (pair{.a = item(1), .b = 2})) \
  X(aggregate_with_parentheses, pair(item(1), 2)) \
  X(aggregate_empty, pair{}) \
  X(aggregate_nested, (nested{pair{item(1), 2}, 3})) \
  X(aggregate_without_inner_braces, (nested{item(1), 2, 3})) \
  X(aggregate_of_defaults, with_default{}) \
  X(aggregate_deduced, (deduced{item(1), 2})) \
  X(aggregate_array, (std::array<item, 2>{item(1), item(2)})) \
  X(aggregate_braces_for_a_parameter, take_pair({item(1), 2})) \
  X(aggregate_as_default_argument, pair_default()) \
  X(aggregate_new, (std::unique_ptr<pair>(new pair{item(1), 2}))) \
  X(aggregate_member, (pair{item(1), 2}.a)) \
  X(aggregate_for_a_constructor, (wrapped(pair{item(1), 2}))) \
  X(aggregate_passed_through, (same(pair{item(1), 2}))) \
  X(aggregate_in_a_capture, [x = pair{item(1), 2}] { return *x.a.value; }) \
  X(aggregate_with_an_await, (pair{co_await give(1), 2})) \
  X(aggregate_in_a_function, [&] { return pair{item(1), 2}; }()) \
  X(aggregate_value_initialised, with_default()) \
  X(aggregate_with_base, (with_base{item(1), 2})) \
  X(aggregate_trivial, trivial{2})

#define CONDITIONAL_KINDS(X) \
  X(conditional, yes ? item(1) : item(2)) \
  X(conditional_second, !yes ? item(1) : item(2)) \
  X(conditional_of_calls, yes ? make(1) : make(2)) \
  X(conditional_of_named_and_temporary, yes ? v : item(2)) \
  X(conditional_of_optional_and_nullopt, yes ? std::optional<item>(v) : std::nullopt) \
  X(conditional_of_pointer_and_null, yes ? std::make_unique<item>(1) : nullptr) \
  X(conditional_converted, yes ? item(1) : 2) \
  X(conditional_or_throw, yes ? item(1) : throw 3) \
  X(conditional_nested, yes ? (yes ? item(1) : item(2)) : item(3)) \
  X(conditional_passed_through, same(yes ? item(1) : item(2))) \
  X(conditional_for_a_constructor, wrapped(yes ? item(1) : item(2))) \
  X(conditional_as_operand, item(1) + (yes ? item(1) : item(2))) \
  X(conditional_bound_to_a_reference, refer(yes ? item(1) : item(2))) \
  X(conditional_member, *(yes ? item(1) : item(2)).value) \
  X(conditional_as_default_argument, choice_default()) \
  X(conditional_on_an_await, co_await one() ? item(1) : item(2)) \
  X(conditional_of_awaits, yes ? co_await give(1) : co_await give(2)) \
  X(conditional_of_names, yes ? v : w) \
  X(conditional_of_moves, yes ? std::move(v) : std::move(w)) \
  X(conditional_of_numbers, item(yes ? number(item(1)) : number(item(2)))) \
  X(conditional_in_a_function, [&] { return yes ? item(1) : item(2); }())

/// Statements that are no calls: S(name, statement). An initializer with an await in it is such a
/// full-expression as well.
#define STATEMENTS(S) \
  S(variable_of_class, wrapped i{co_await give(1)}) \
  S(variable_of_pair, std::pair<item, int> i{co_await give(1), co_await one()}) \
  S(variable_of_trivial_aggregate, trivial i{co_await one()}) \
  S(variable_of_awaited_values, item a = co_await give(1); const pair p{std::move(a), 2}) \
  S(variable_of_aggregate, const pair p{co_await give(1), 2}) \
  S(variable_of_aggregate_and_number, const pair p{v, co_await one()}) \
  S(variable_of_array, const item all[] = {co_await give(1), item(2)}) \
  S(variable_of_conditional, const item i = co_await one() ? item(1) : item(2)) \
  S(variable_of_closure, auto f = [v, k = co_await one()] { return k; }; n += f()) \
  S(variable_of_number, const int i = co_await one() ? 1 : 2; n += i) \
  S(assigned_members, pair p; p.a = co_await give(1); p.b = co_await one()) \
  S(assigned_braces, pair p; p = {co_await give(1), 2}) \
  S(pushed_value, std::vector<item> all; all.push_back(co_await give(1))) \
  S(pushed_braces, std::vector<pair> all; all.push_back({co_await give(1), 2})) \
  S(returned_braces, const pair p = co_await return_braces(); n += p.b) \
  S(returned_braces_with_an_await, const pair p = co_await return_awaited_braces(); n += p.b) \
  S(returned_conditional, const item i = co_await return_conditional(yes); n += *i.value)
// clang-format on

#define ALL_KINDS(X) PLAIN_KINDS(X) CLOSURE_KINDS(X) AGGREGATE_KINDS(X) CONDITIONAL_KINDS(X)
/// One of each family, for every position.
#define SOME_KINDS(X, position)                  \
  X(position, constructed, item(1))              \
  X(position, closure, [v] { return *v.value; }) \
  X(position, aggregate, (pair{item(1), 2}))     \
  X(position, conditional, (yes ? item(1) : item(2)))
