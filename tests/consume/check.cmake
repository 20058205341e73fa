# SPDX-License-Identifier: MIT
# Uses weir as a stranger would: configures, builds and runs the project in the directory HOW with
# COMPILER, from scratch in WORK_DIR, either on an installed copy (find_package, components) or on the
# sources (add_subdirectory).
function(run_or_fail what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(NOTICE "${command}\n${output}")
    message(FATAL_ERROR "${what} failed (${status})")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
if(NOT HOW STREQUAL "add_subdirectory")
  set(how_option -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
  run_or_fail("install" ${CMAKE_COMMAND} --install ${WEIR_BINARY_DIR} --prefix ${WORK_DIR}/prefix)
  if(TOOL)
    run_or_fail("the installed tool" ${WORK_DIR}/prefix/bin/weir --version)
  endif()
else()
  # Several sources as one, because that takes a quarter of the time; the stage debug is where
  # each is compiled alone.
  set(how_option -DWEIR_SOURCE_DIR=${WEIR_SOURCE_DIR} -DWEIR_UNITY=ON)
endif()

run_or_fail("configuring" ${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR}/${HOW} -B
            ${WORK_DIR}/build -DCMAKE_CXX_COMPILER=${COMPILER} ${how_option})
if(HOW STREQUAL "components")
  return()  # it looks at the package only
endif()
run_or_fail("building" ${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run_or_fail("running" ${WORK_DIR}/build/answer)
foreach(program IN ITEMS durable_answer io_answer)
  if(EXISTS ${WORK_DIR}/build/${program})
    run_or_fail("running" ${WORK_DIR}/build/${program})
  endif()
endforeach()
