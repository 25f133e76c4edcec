# SPDX-License-Identifier: Apache-2.0
# The program of a shared build finds the libraries that are installed with it, wherever that is.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
run(${CMAKE_COMMAND} -S ${ROOT} -B ${WORK_DIR}/build -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER} -D
    CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D CMAKE_BUILD_TYPE=Release -D BUILD_SHARED_LIBS=ON -D BUILD_TESTING=OFF -D
    SEALPOINT_BUILD_EXAMPLES=OFF -D SEALPOINT_BUILD_BENCHMARKS=OFF -D SEALPOINT_WITH_CUDA=OFF)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
file(REMOVE_RECURSE ${WORK_DIR}/installed ${WORK_DIR}/moved)
run(${CMAKE_COMMAND} --install ${WORK_DIR}/build --prefix ${WORK_DIR}/installed)
file(RENAME ${WORK_DIR}/installed ${WORK_DIR}/moved)
run(${WORK_DIR}/moved/bin/ckpt --version)
if(WITH_S3)
  file(GLOB library ${WORK_DIR}/moved/lib*/libsealpoint_s3.so ${WORK_DIR}/moved/lib/*/libsealpoint_s3.so)
  run(ldd ${library})
  if(LAST_OUTPUT MATCHES "not found")
    message(FATAL_ERROR "libsealpoint_s3.so does not find libsealpoint.so beside it")
  endif()
endif()
