# SPDX-License-Identifier: MIT
# Runs PROGRAM with ARGUMENTS and fails unless it exits with 0 and its standard output, kept in
# ACTUAL, is the text in EXPECTED.
# What is long is printed with NOTICE, because FATAL_ERROR breaks its lines.
execute_process(COMMAND ${PROGRAM} ${ARGUMENTS} OUTPUT_FILE ${ACTUAL} RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  file(READ ${ACTUAL} output)
  message(NOTICE "${output}")
  message(FATAL_ERROR "the program ended with ${status}; what it printed is above")
endif()
set(accept "if the new output is right: cp ${ACTUAL} ${EXPECTED}")
if(NOT EXISTS ${EXPECTED})
  message(NOTICE "${accept}")
  message(FATAL_ERROR "the file with the expected output is missing")
endif()
execute_process(COMMAND diff -u ${EXPECTED} ${ACTUAL} RESULT_VARIABLE different)
if(NOT different EQUAL 0)
  message(NOTICE "${accept}")
  message(FATAL_ERROR "the output differs from what is expected (the - lines)")
endif()
