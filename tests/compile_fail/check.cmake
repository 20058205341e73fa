# SPDX-License-Identifier: MIT
# Fails unless COMPILER refuses SOURCE as SOURCE announces in its comments:
#   // EXPECT: text      an error says this, within the first ten lines of the compiler's output
#   // NOT: text         the output does not say this
#   // ERRORS: n         so many errors at most; 1 unless it is given
#   // COMPILER: g++     the other compiler takes it
# A mistake that compiles, or that is refused with pages of template errors but without a sentence
# for the reader, is a defect of weir.
set(lines_max 10)

# announced(<key> <variable>): the texts of the comments with this key, as a list.
function(announced key variable)
  file(STRINGS ${SOURCE} lines REGEX "^// ${key}: ")
  list(TRANSFORM lines REPLACE "^// ${key}: " "")
  set(${variable} "${lines}" PARENT_SCOPE)
endfunction()
announced(EXPECT expected)
announced(NOT unwanted)
announced(ERRORS errors_max)
announced(COMPILER only)
if(NOT expected)
  message(FATAL_ERROR "${SOURCE} has no `// EXPECT: text` line")
endif()
if(NOT errors_max)
  set(errors_max 1)
endif()

get_filename_component(compiler_name ${COMPILER} NAME)
set(precompiled)
if(HEADERS AND compiler_name MATCHES "^clang")
  set(precompiled -include-pch ${HEADERS}/weir.pch)
elseif(HEADERS)
  set(precompiled -include ${HEADERS}/weir.hpp)
endif()
execute_process(
  COMMAND ${COMPILER} -std=c++20 -fsyntax-only -fdiagnostics-color=never ${precompiled}
          -I${INCLUDE} ${SOURCE}
  RESULT_VARIABLE status
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)
string(FIND "${compiler_name}" "${only}" place)
if(only AND NOT place EQUAL 0)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${SOURCE} is right for this compiler, but is refused:\n${output}")
  endif()
  return()
endif()
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles, but must not")
endif()

function(complain text)
  message(NOTICE "${output}")
  message(FATAL_ERROR "${COMPILER}: ${text}")
endfunction()

# Compilers quote the source below an error, so a text counts only in the error itself.
string(REPLACE ";" "," errors "${output}")
string(REGEX MATCHALL "[^\n]*error: [^\n]*" errors "${errors}")
list(LENGTH errors errors_count)
if(errors_count GREATER errors_max)
  complain("${errors_count} errors; ${errors_max} are announced")
endif()
set(beginning "")
set(rest "${output}")
foreach(number RANGE 1 ${lines_max})
  string(FIND "${rest}" "\n" end)
  if(end LESS 0)
    break()
  endif()
  math(EXPR end "${end} + 1")
  string(SUBSTRING "${rest}" 0 ${end} line)
  string(SUBSTRING "${rest}" ${end} -1 rest)
  string(APPEND beginning "${line}")
endforeach()
foreach(text IN LISTS expected)
  string(REGEX REPLACE "([][+.*()^$?|\\])" "\\\\\\1" pattern "${text}")
  if(NOT beginning MATCHES "error: [^\n]*${pattern}")
    complain("no error in the first ${lines_max} lines says '${text}'")
  endif()
endforeach()
foreach(text IN LISTS unwanted)
  string(FIND "${output}" "${text}" place)
  if(NOT place LESS 0)
    complain("the output says '${text}'")
  endif()
endforeach()
