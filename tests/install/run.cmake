# SPDX-License-Identifier: Apache-2.0
# What the tests of this folder share.
cmake_minimum_required(VERSION 3.25)

# run(<command>...): fails if the command does. LAST_OUTPUT is what it printed.
function(run)
  execute_process(
    COMMAND ${ARGN}
    RESULT_VARIABLE result
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output ECHO_OUTPUT_VARIABLE ECHO_ERROR_VARIABLE)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "Failed (${result}): ${command}")
  endif()
  set(LAST_OUTPUT "${output}" PARENT_SCOPE)
endfunction()

# expect_failure(<regular expression> <command>...): the command must fail and say so. LAST_OUTPUT as above.
function(expect_failure pattern)
  execute_process(
    COMMAND ${ARGN}
    RESULT_VARIABLE result
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  list(JOIN ARGN " " command)
  if(result EQUAL 0)
    message(FATAL_ERROR "Succeeded, but should not have: ${command}")
  endif()
  # CMake breaks the lines of its messages.
  string(REGEX REPLACE "[ \n]+" " " line "${output}")
  if(NOT line MATCHES "${pattern}")
    message(FATAL_ERROR "${command}\nshould have said\n  ${pattern}\nbut said\n${output}")
  endif()
  set(LAST_OUTPUT "${output}" PARENT_SCOPE)
endfunction()

# configure_consumer(<project> <folder> <option>...)
macro(configure_consumer project folder)
  file(REMOVE_RECURSE ${folder})
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/${project} -B ${folder} ${CONSUMER_OPTIONS} ${ARGN})
endmacro()

set(CONSUMER_OPTIONS -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D
                     EXPECTED_VERSION=${VERSION} -D WITH_MPI=${WITH_MPI} -D
                     WITH_S3=${WITH_S3})
