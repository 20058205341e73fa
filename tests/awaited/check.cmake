# SPDX-License-Identifier: MIT
# Compiles PROGRAM.cpp with COMPILER and AddressSanitizer, runs it, and compares the cells that went
# wrong with those in the file EXPECTED (none if it is empty). If a compiler behaves differently,
# better or worse, docs/compilers.md and the file must say so.
file(MAKE_DIRECTORY ${WORK_DIR})
execute_process(
  COMMAND ${COMPILER} -std=c++20 -O0 -fsanitize=address -w
          ${CMAKE_CURRENT_LIST_DIR}/${PROGRAM}.cpp -o ${WORK_DIR}/${PROGRAM}
  RESULT_VARIABLE status
  ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${COMPILER} does not compile ${PROGRAM}.cpp:\n${errors}")
endif()

# Hundreds of reports are expected from g++-12; looking up their symbols takes most of the time.
set(ENV{ASAN_OPTIONS} symbolize=0:detect_leaks=0)
execute_process(COMMAND ${WORK_DIR}/${PROGRAM} RESULT_VARIABLE status OUTPUT_VARIABLE wrong)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${status}")
endif()
set(expected "")
if(EXPECTED)
  file(READ ${EXPECTED} expected)
endif()
if(NOT wrong STREQUAL expected)
  file(WRITE ${WORK_DIR}/${PROGRAM}.wrong "${wrong}")
  message(FATAL_ERROR "other cells go wrong than those in '${EXPECTED}': see ${WORK_DIR}/${PROGRAM}.wrong")
endif()
