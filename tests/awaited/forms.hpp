// SPDX-License-Identifier: MIT
// Every way to use an await in a condition or a logical expression: X(position, expression). ASK(c)
// asks a question and gives the next answer of the script, `on` is a bool, `mark(c)` writes a
// letter, `enough()` is true after some marks, `letters` is a text. RETURN leaves the function.
#pragma once

// clang-format off
#define EXPRESSIONS(X, position) \
  X(position, alone, ASK('a')) \
  X(position, negated, !ASK('a')) \
  X(position, compared, ASK('a') == on) \
  X(position, left_of_and, ASK('a') && on) \
  X(position, left_of_or, !ASK('a') || on) \
  X(position, right_of_and, on && ASK('a')) \
  X(position, right_of_and_negated, on && !ASK('a')) \
  X(position, right_of_or, on || ASK('a')) \
  X(position, right_of_or_negated, on || !ASK('a')) \
  X(position, right_of_and_compared, on && ASK('a') == on) \
  X(position, right_of_and_in_a_call, on && same(ASK('a'))) \
  X(position, on_both_sides, ASK('a') && ASK('b')) \
  X(position, in_an_arm, on ? ASK('a') : !on)

#define AT_if(e) if (e) mark('x'); mark('y')
#define AT_if_else(e) if (e) mark('x'); else mark('y')
#define AT_if_return(e) if (e) RETURN 1; mark('y')
#define AT_if_await(e) if (e) { (void)ASK('c'); RETURN 1; } mark('y')
#define AT_while(e) while (e) mark('x')
#define AT_while_await(e) while (e) (void)ASK('c')
#define AT_while_continue(e) while (e) { mark('x'); if (enough()) continue; mark('z'); }
#define AT_for(e) for (; e;) mark('x')
#define AT_for_continue(e) for (; e;) { mark('x'); if (enough()) continue; mark('z'); }
#define AT_do(e) do { mark('x'); } while (e)
#define AT_do_continue(e) do { mark('x'); if (enough()) continue; mark('z'); } while (e)
#define AT_do_break(e) do { mark('x'); if (enough()) break; mark('z'); } while (e)
#define AT_switch(e) switch (e) { case 0: mark('x'); break; default: mark('y'); }
#define AT_return(e) RETURN e
#define AT_argument(e) mark(letter(e))
#define AT_assignment(e) on = e; mark(letter(on))
#define AT_initializer(e) const bool it = e; mark(letter(it))
#define AT_if_declaration(e) if (const bool it = e) mark(letter(it)); mark('y')
#define AT_while_declaration(e) while (const bool it = e) mark(letter(it))
#define AT_for_variable(e) for (int k = 0; e; ++k) mark('x')
#define AT_range_for(e) for (const char c : letters) { mark(c); if (e) RETURN 1; mark('y'); }
#define AT_inner_block(e) { const bool it = enough(); mark(letter(it)); } if (e) RETURN 1; mark('y')
#define AT_later_block(e) if (e) { const bool it = enough(); mark(letter(it)); RETURN 1; } mark('y')
#define AT_block_with_a_local(e) \
  for (;;) { const bool it = enough(); if (e) RETURN 1; if (it) RETURN 2; mark('y'); }

#define FLOWS(X) \
  X(if) X(if_else) X(if_return) X(if_await) X(while) X(while_await) X(while_continue) X(for) \
  X(for_continue) X(do) X(do_continue) X(do_break) X(switch) X(return) X(argument) X(assignment) \
  X(initializer) X(if_declaration) X(while_declaration) X(for_variable) X(range_for) \
  X(inner_block) X(later_block) X(block_with_a_local)
// clang-format on
