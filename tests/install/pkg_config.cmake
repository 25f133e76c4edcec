# SPDX-License-Identifier: Apache-2.0
# pkg-config and a compiler, without CMake.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
file(GLOB_RECURSE pc ${PREFIX}/*/sealpoint.pc)
get_filename_component(pc_folder "${pc}" DIRECTORY)
get_filename_component(library_folder "${pc_folder}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${pc_folder})
set(ENV{LD_LIBRARY_PATH} ${library_folder})
run(pkg-config --exact-version=${VERSION} sealpoint)

# flags(<variable> <option>...): what pkg-config prints, as a list.
macro(flags variable)
  run(pkg-config ${ARGN} sealpoint)
  separate_arguments(${variable} UNIX_COMMAND "${LAST_OUTPUT}")
endmacro()
flags(plain --cflags --libs)
set(source ${CMAKE_CURRENT_LIST_DIR}/consumer/consumer.cc)
run(${COMPILER} -std=c++20 ${source} ${plain} -o ${WORK_DIR}/consumer_pc)
run(${WORK_DIR}/consumer_pc)
if(WITH_S3)
  run(pkg-config --cflags --libs sealpoint-s3)
  separate_arguments(with_s3 UNIX_COMMAND "${LAST_OUTPUT}")
  run(${COMPILER} -std=c++20 ${CMAKE_CURRENT_LIST_DIR}/consumer/consumer_s3.cc ${with_s3} -o ${WORK_DIR}/consumer_s3_pc)
  run(${WORK_DIR}/consumer_s3_pc)
endif()

if(SHARED)
  # The shared library brings its own, and its headers must know what it is.
  if(NOT "-DSEALPOINT_SHARED" IN_LIST plain OR "-lzstd" IN_LIST plain)
    message(FATAL_ERROR "For the shared library pkg-config gives: ${plain}")
  endif()
else()
  if("-DSEALPOINT_SHARED" IN_LIST plain)
    message(FATAL_ERROR "For the static library pkg-config gives: ${plain}")
  endif()
  # A program without any shared library.
  flags(static --static --cflags --libs)
  run(${COMPILER} -std=c++20 -static ${source} ${static} -o ${WORK_DIR}/consumer_static)
  run(${WORK_DIR}/consumer_static)
  configure_consumer(
    consumer ${WORK_DIR}/static -D CMAKE_PREFIX_PATH=${PREFIX} -D WAY=package -D STATIC_PROGRAM=ON -D
    SEALPOINT_USE_STATIC_LIBS=ON -D WITH_MPI=OFF -D WITH_S3=OFF)
  run(${CMAKE_COMMAND} --build ${WORK_DIR}/static)
  run(${WORK_DIR}/static/consumer)
endif()
