# SPDX-License-Identifier: Apache-2.0
# The component c of find_package(sealpoint), and pkg-config, from projects in C.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
configure_consumer(consumer_c ${WORK_DIR}/package -D CMAKE_C_COMPILER=${C_COMPILER} -D CMAKE_PREFIX_PATH=${PREFIX})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/package)
run(${WORK_DIR}/package/consumer_c)

file(GLOB_RECURSE pc ${PREFIX}/*/sealpoint-c.pc)
get_filename_component(pc_folder "${pc}" DIRECTORY)
get_filename_component(library_folder "${pc_folder}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${pc_folder})
set(ENV{LD_LIBRARY_PATH} ${library_folder})
run(pkg-config --exact-version=${VERSION} sealpoint-c)
run(pkg-config --cflags --libs sealpoint-c)
separate_arguments(flags UNIX_COMMAND "${LAST_OUTPUT}")
run(${C_COMPILER} -std=c99 ${CMAKE_CURRENT_LIST_DIR}/consumer_c/consumer.c ${flags} -o ${WORK_DIR}/consumer_pc)
run(${WORK_DIR}/consumer_pc)
