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
# A job of MPI loads no client of HTTP unless S3 was asked for.
file(GLOB library ${library_folder}/libsealpoint_c.so)
run(${READELF} --dynamic --wide ${library})
string(REGEX MATCHALL "Shared library: \\[lib(curl|crypto|ssl|expat)[^]]*\\]" found "${LAST_OUTPUT}")
if(C_HAS_S3 AND NOT found)
  message(FATAL_ERROR "${library} needs no client of S3, but was built with SEALPOINT_C_WITH_S3")
elseif(found AND NOT C_HAS_S3)
  message(FATAL_ERROR "${library} needs ${found}")
endif()
set(ENV{LD_LIBRARY_PATH} ${library_folder})
run(pkg-config --exact-version=${VERSION} sealpoint-c)
run(pkg-config --cflags --libs sealpoint-c)
separate_arguments(flags UNIX_COMMAND "${LAST_OUTPUT}")
run(${C_COMPILER} -std=c99 ${CMAKE_CURRENT_LIST_DIR}/consumer_c/consumer.c ${flags} -o ${WORK_DIR}/consumer_pc)
run(${WORK_DIR}/consumer_pc)

# MPI and Fortran: by CMake, and by hand as docs/guides/c.md says.
if(WITH_MPI)
  set(ranks ${WORK_DIR}/ranks)
  configure_consumer(consumer_ranks ${ranks} -D CMAKE_C_COMPILER=${C_COMPILER} -D CMAKE_PREFIX_PATH=${PREFIX} -D
                     WITH_FORTRAN=${WITH_FORTRAN})
  run(${CMAKE_COMMAND} --build ${ranks})
  # Open MPI refuses root otherwise.
  set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
  set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
  run(${ranks}/consumer_c_mpi)
  if(WITH_FORTRAN)
    run(${ranks}/consumer_fortran)
  endif()
  # The lines of the guide.
  file(READ ${ROOT}/docs/guides/c.md guide)
  string(REGEX MATCH "\nprintf [^`]*" lines "${guide}")
  file(MAKE_DIRECTORY ${WORK_DIR}/by_hand)
  file(COPY ${CMAKE_CURRENT_LIST_DIR}/consumer_ranks/consumer.c DESTINATION ${WORK_DIR}/by_hand)
  file(RENAME ${WORK_DIR}/by_hand/consumer.c ${WORK_DIR}/by_hand/program.c)
  run(sh -e -c "cd ${WORK_DIR}/by_hand && ${lines}")
  run(${WORK_DIR}/by_hand/program)
endif()
