# SPDX-License-Identifier: Apache-2.0
# The options of docs/start/install.md: with BUILD_TESTING off nothing that only tests need is looked for; without tools, examples
# and benchmarks only what the library needs is; warnings are errors in our presets alone.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
set(folder ${WORK_DIR}/options)
set(without "")
foreach(package GTest rapidcheck benchmark CLI11 fmt nlohmann_json MPI CUDAToolkit)
  list(APPEND without -D CMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()
file(REMOVE_RECURSE ${folder})
run(${CMAKE_COMMAND} -S ${ROOT} -B ${folder} -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER} ${without} -D
    BUILD_TESTING=OFF -D SEALPOINT_BUILD_TOOLS=OFF -D SEALPOINT_BUILD_EXAMPLES=OFF -D SEALPOINT_BUILD_BENCHMARKS=OFF)
load_cache(${folder} READ_WITH_PREFIX found_ SEALPOINT_WERROR SEALPOINT_INSTALL BUILD_SHARED_LIBS)
foreach(expected SEALPOINT_WERROR=OFF SEALPOINT_INSTALL=ON BUILD_SHARED_LIBS=OFF)
  string(REGEX MATCH "^(.*)=(.*)$" matched ${expected})
  if(NOT found_${CMAKE_MATCH_1} STREQUAL CMAKE_MATCH_2)
    message(FATAL_ERROR "${CMAKE_MATCH_1} is ${found_${CMAKE_MATCH_1}}, expected ${CMAKE_MATCH_2}")
  endif()
endforeach()
run(${CMAKE_COMMAND} --build ${folder} --target help)
if(LAST_OUTPUT MATCHES "(unit_[a-z]+|[ \n]ckpt[:\n]|train_char_lm|bench_[a-z]+)")
  message(FATAL_ERROR "${CMAKE_MATCH_1} is built though it is switched off")
endif()

# Parts of the library.
set(core ${CMAKE_COMMAND} -S ${ROOT} -B ${folder}_core -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER} ${without} -D BUILD_TESTING=OFF
         -D SEALPOINT_BUILD_EXAMPLES=OFF)
expect_failure("need all of SEALPOINT_COMPONENTS" ${core} -D SEALPOINT_COMPONENTS=core -D SEALPOINT_BUILD_TOOLS=ON)
expect_failure("SEALPOINT_COMPONENTS is \"ops\", expected core" ${core} -D SEALPOINT_COMPONENTS=ops -D SEALPOINT_BUILD_TOOLS=OFF)
run(${core} -D SEALPOINT_COMPONENTS=core -D SEALPOINT_BUILD_TOOLS=OFF)
run(${CMAKE_COMMAND} --build ${folder}_core --target help)
if(LAST_OUTPUT MATCHES "sealpoint_(interop|repack|compare)_objects")
  message(FATAL_ERROR "${CMAKE_MATCH_1} is built without its part of the library")
endif()

# What a machine with Python but without its headers says.
expect_failure("Debian has the headers in python3-dev" ${CMAKE_COMMAND} -S ${ROOT} -B ${folder} -G ${GENERATOR} -D
               SEALPOINT_BUILD_PYTHON=ON -D CMAKE_DISABLE_FIND_PACKAGE_Python=ON)

# What a build for another system says.
expect_failure("Sealpoint runs on Linux.*this is a build for Generic.*readers/reference/README.md" ${CMAKE_COMMAND} -S ${ROOT} -B
               ${folder}_elsewhere -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_SYSTEM_NAME=Generic)
