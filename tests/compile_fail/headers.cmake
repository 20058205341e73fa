# SPDX-License-Identifier: MIT
# Precompiles weir.hpp with COMPILER into the folder HEADERS, in the form in which it looks for it.
file(MAKE_DIRECTORY ${HEADERS})
file(WRITE ${HEADERS}/weir.hpp "#include <weir/weir.hpp>\n")
get_filename_component(compiler_name ${COMPILER} NAME)
set(output ${HEADERS}/weir.hpp.gch)
if(compiler_name MATCHES "^clang")
  set(output ${HEADERS}/weir.pch)
endif()
execute_process(
  COMMAND ${COMPILER} -std=c++20 -I${INCLUDE} -x c++-header ${HEADERS}/weir.hpp -o ${output}
  RESULT_VARIABLE status
  ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${COMPILER} does not compile weir.hpp:\n${errors}")
endif()
