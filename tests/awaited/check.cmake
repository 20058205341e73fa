# SPDX-License-Identifier: MIT
# Compiles matrix.cpp with COMPILER and AddressSanitizer, runs it, and compares the cells that went
# wrong with those in the file EXPECTED (none if it is empty). If a compiler behaves differently,
# better or worse, docs/compilers.md and the file must say so.
file(MAKE_DIRECTORY ${WORK_DIR})
execute_process(
  COMMAND ${COMPILER} -std=c++20 -O0 -fsanitize=address -w ${CMAKE_CURRENT_LIST_DIR}/matrix.cpp -o
          ${WORK_DIR}/matrix
  RESULT_VARIABLE status
  ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${COMPILER} does not compile matrix.cpp:\n${errors}")
endif()

# Hundreds of reports are expected from g++-12; looking up their symbols takes most of the time.
set(ENV{ASAN_OPTIONS} symbolize=0:detect_leaks=0)
execute_process(COMMAND ${WORK_DIR}/matrix RESULT_VARIABLE status OUTPUT_VARIABLE wrong)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the matrix ended with ${status}")
endif()
set(expected "")
if(EXPECTED)
  file(READ ${EXPECTED} expected)
endif()
if(NOT wrong STREQUAL expected)
  file(WRITE ${WORK_DIR}/wrong "${wrong}")
  message(FATAL_ERROR "other cells go wrong than those in '${EXPECTED}': see ${WORK_DIR}/wrong")
endif()
