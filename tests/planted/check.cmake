# SPDX-License-Identifier: MIT
# Shows that the simulation finds a defect of the library: plants the one of PATCH into a copy of
# the sources, compiles what has changed, links probe.cpp with it, and fails unless the probe
# complains. Without PATCH it fails unless the probe is content with the library as it is.
#
# The text before the diff says what is planted, and in lines of its own `EXPECT: text`, what the
# probe must say. A probe that dies or hangs has found something only if there is a line
# `DIES: yes`, because the defect leads to undefined behaviour or is one that only threads show.
#
# PROBE is the probe's source, LIBRARY what is changed by the patches, and MORE what else is linked.
set(probe_object ${WORK_DIR}/../probe.o)
unset(ENV{WEIR_SIM_SEED})
unset(ENV{WEIR_SIM_RUNS})
set(run_limit_s 100)

function(run what)
  execute_process(
    COMMAND ${ARGN}
    WORKING_DIRECTORY ${WORK_DIR}
    RESULT_VARIABLE status
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(NOTICE "${output}")
    message(FATAL_ERROR "${what}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# compile(<object> <source> <root>): with the headers below <root>.
function(compile object source root)
  run("${source} does not compile" ${COMPILER} ${FLAGS} -std=c++20 -I${root}/include -I${root}/src
      -I${SOURCE_DIR}/tests -c ${source} -o ${object})
endfunction()

if(NOT EXISTS ${LIBRARY})
  message(FATAL_ERROR "${LIBRARY} is not there; build it first")
endif()
separate_arguments(FLAGS UNIX_COMMAND "${FLAGS}")
separate_arguments(MORE UNIX_COMMAND "${MORE}")
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})

set(objects)
if(PATCH)
  file(COPY ${SOURCE_DIR}/src ${SOURCE_DIR}/include DESTINATION ${WORK_DIR})
  # The work directory may lie inside of weir's repository, which has nothing to do with it.
  get_filename_component(above ${WORK_DIR} DIRECTORY)
  run("${PATCH} does not apply any more: the code that it breaks has changed; plant the defect anew"
      ${CMAKE_COMMAND} -E env GIT_CEILING_DIRECTORIES=${above} git apply -v ${PATCH})
  file(STRINGS ${PATCH} changed REGEX "^\\+\\+\\+ b/")
  foreach(line IN LISTS changed)
    string(REGEX REPLACE "^\\+\\+\\+ b/([^\t]*).*" "\\1" file "${line}")
    # Only these may differ from the library's: a change of a header would be one of all objects.
    if(NOT file MATCHES "^src/.*\\.cpp$")
      message(FATAL_ERROR "${PATCH} changes ${file}; a planted defect is in a .cpp file of src/")
    endif()
    get_filename_component(name ${file} NAME)
    compile(${WORK_DIR}/${name}.o ${WORK_DIR}/${file} ${WORK_DIR})
    list(APPEND objects ${name}.o)
  endforeach()
else()
  compile(${probe_object} ${PROBE} ${SOURCE_DIR})
endif()

# An object of the archive is linked only if something in it is still undefined, so the changed ones
# take the place of their namesakes. The list of what was linked (-t twice: with the members of
# archives) shows it.
run("the probe does not link" ${COMPILER} ${FLAGS} ${probe_object} ${objects} ${LIBRARY} ${MORE}
    -pthread -Wl,-t,-t -o probe)
if(NOT output MATCHES "\\.a[()][a-z_]+\\.cpp\\.o")
  message(FATAL_ERROR "the linker does not say which members of ${LIBRARY} it has taken")
endif()
foreach(object IN LISTS objects)
  string(REPLACE "." "\\." pattern ${object})
  if(output MATCHES "\\.a[()]${pattern}")
    message(FATAL_ERROR "the library's own ${object} was linked instead of the changed one")
  endif()
endforeach()

execute_process(
  COMMAND ${WORK_DIR}/probe
  TIMEOUT ${run_limit_s}
  RESULT_VARIABLE status
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)
message(NOTICE "${output}")
if(NOT PATCH)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "the probe complains about the library as it is (${status})")
  endif()
  return()
endif()

file(STRINGS ${PATCH} dies REGEX "^DIES: yes$")
if(status EQUAL 0)
  message(FATAL_ERROR "the planted defect was not found")
elseif(status EQUAL 2 AND NOT dies)
  message(FATAL_ERROR "the probe only died or hung; nothing was found by the simulation")
elseif(NOT status EQUAL 1 AND NOT status EQUAL 2)
  message(FATAL_ERROR "the probe itself failed (${status})")
endif()
file(STRINGS ${PATCH} expected REGEX "^EXPECT: ")
if(NOT expected)
  message(FATAL_ERROR "${PATCH} has no `EXPECT: text` line")
endif()
foreach(line IN LISTS expected)
  string(REPLACE "EXPECT: " "" text "${line}")
  string(FIND "${output}" "${text}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "the probe does not say '${text}'")
  endif()
endforeach()
