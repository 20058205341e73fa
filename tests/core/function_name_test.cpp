// SPDX-License-Identifier: MIT
// Names of functions as g++-12 and clang-19 write them become the same short names.
#include "core/function_name.hpp"

#include "support/test_support.hpp"

using weir::detail::is_own_function;
using weir::detail::short_function_name;
using weir::detail::short_type_name;

namespace {

struct form {
  const char* gcc;
  const char* clang;
  const char* brief;
};

constexpr form forms[] = {
    {"probe {anonymous}::anon(int)", "probe (anonymous namespace)::anon(int)", "anon()"},
    {"probe {anonymous}::local::m(std::string) const",
     "probe (anonymous namespace)::local::m(std::string) const", "local::m()"},
    {"probe {anonymous}::local::t(T, std::vector<T>) & [with T = std::map<int, "
     "std::__cxx11::basic_string<char> >]",
     "probe (anonymous namespace)::local::t(T, std::vector<T>) & [T = std::map<int, "
     "std::basic_string<char>>]",
     "local::t()"},
    {"probe {anonymous}::local::operator()(int) const",
     "probe (anonymous namespace)::local::operator()(int) const", "local::operator()()"},
    {"{anonymous}::local::operator<(int) const::<lambda()>",
     "auto (anonymous namespace)::local::operator<(int)::(anonymous class)::operator()() const",
     "local::operator<()::lambda"},
    {"static probe shop::box<A, B>::make(A, B) [with A = int; B = std::vector<int, "
     "std::allocator<int> >]",
     "static probe shop::box<int>::make(A, B) [A = int, B = std::vector<int>]",
     "shop::box::make()"},
    {"probe shop::box<A, B>::operator->*(int) [with A = int; B = std::vector<int>]",
     "probe shop::box<int>::operator->*(int) [A = int, B = std::vector<int>]",
     "shop::box::operator->*()"},
    {"weir::task<T> shop::gt() [with bool B = true]", "weir::task<T> shop::gt() [B = (3 > 2)]",
     "shop::gt()"},
    {"main()::<lambda(auto:11, int)> [with auto:11 = std::__cxx11::basic_string<char>]",
     "auto main()::(anonymous class)::operator()(auto, int) const [x:auto = "
     "std::basic_string<char>]",
     "main()::lambda"},
    {"main()::<lambda(auto:11, int)>::<lambda(std::string)>",
     "auto main()::(anonymous class)::operator()(std::basic_string<char>, int)::(anonymous "
     "class)::operator()(std::string) const",
     "main()::lambda::lambda"},
    {"main()::<lambda(int)> mutable", "auto main()::(anonymous class)::operator()(int)",
     "main()::lambda"},
    {"probe main()::inside::go()", "probe main()::inside::go()", "main()::inside::go()"},
    {"const std::vector<int>& shop::all(int (*)(int))",
     "const std::vector<int> &shop::all(int (*)(int))", "shop::all()"},
};

}  // namespace

TEST(function_name, both_compilers_give_the_same_short_name) {
  for (const form& f : forms) {
    EXPECT_EQ(short_function_name(f.gcc), f.brief) << f.gcc;
    EXPECT_EQ(short_function_name(f.clang), f.brief) << f.clang;
  }
}

TEST(function_name, only_functions_of_weir_are_its_own) {
  EXPECT_TRUE(is_own_function("weir::task<> weir::detail::run_remote(remote_run)"));
  EXPECT_TRUE(is_own_function(
      "static task<> weir::detail::for_all_items<weir::detail::map_stage<(lambda at "
      "pipe.cpp:23:44)>>::run(weir::pipeline<S> &, F &) [S = int]"));
  EXPECT_TRUE(is_own_function("weir::with_scope(F&&)::<lambda(weir::scope&)>"));
  for (const form& f : forms) {
    EXPECT_FALSE(is_own_function(f.gcc)) << f.gcc;
    EXPECT_FALSE(is_own_function(f.clang)) << f.clang;
  }
  EXPECT_FALSE(is_own_function("weir::task<T> shop::check(weir::stream<T>) [T = weir::unit]"));
}

// Whatever a compiler writes: no crash, and a bound.
TEST(function_name, odd_texts_are_cut_and_bounded) {
  for (const char* odd : {"", "(", "<", ">", ")))", "operator", "a<b(c", "operator<", "[", "f() ["})
    EXPECT_LE(short_function_name(odd).size(), 120u) << odd;
  const std::string name(500, 'x');
  EXPECT_EQ(short_function_name("void " + name + "()").size(), 120u);
  EXPECT_EQ(short_type_name("std::vector<std::pair<int, char>>::iterator"),
            "std::vector::iterator");
}
