# SPDX-License-Identifier: MIT
# Fails unless COMPILER refuses SOURCE and says every text that SOURCE announces in a line of the
# form `// EXPECT: text`. A mistake that compiles, or that is refused with pages of template errors
# but without a sentence for the reader, is a defect of weir.
file(STRINGS ${SOURCE} lines REGEX "^// EXPECT: ")
if(NOT lines)
  message(FATAL_ERROR "${SOURCE} has no `// EXPECT: text` line")
endif()

execute_process(
  COMMAND ${COMPILER} -std=c++20 -fsyntax-only -fdiagnostics-color=never -I${INCLUDE} ${SOURCE}
  RESULT_VARIABLE status
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles, but must not")
endif()

foreach(line IN LISTS lines)
  string(REPLACE "// EXPECT: " "" expected "${line}")
  string(REGEX REPLACE "([][+.*()^$?|\\])" "\\\\\\1" pattern "${expected}")
  # Compilers quote the source below an error, so the text counts only in the error itself.
  if(NOT output MATCHES "error: [^\n]*${pattern}")
    message(NOTICE "${output}")
    message(FATAL_ERROR "no error of ${COMPILER} says '${expected}'")
  endif()
endforeach()
