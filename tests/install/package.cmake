# SPDX-License-Identifier: Apache-2.0
# find_package(sealpoint), with the components mpi and s3; each installed header alone.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
set(folder ${WORK_DIR}/package)
set(options -D CMAKE_PREFIX_PATH=${PREFIX} -D WAY=package)
if(NOT SHARED)
  list(APPEND options -D HEADERS=${PREFIX}/include/sealpoint)
endif()
configure_consumer(consumer ${folder} ${options})
run(${CMAKE_COMMAND} --build ${folder})
run(${folder}/consumer)

# Two mistakes. The answer to the first does not depend on whether there is an MPI.
set(component ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/component ${CONSUMER_OPTIONS} ${options})
expect_failure("sealpoint::mpi needs find_package.sealpoint COMPONENTS mpi" ${component} -B ${folder}/none)
expect_failure("the components of sealpoint are mpi, s3, c and fortran, but cuda was asked for" ${component} -B ${folder}/unknown -D
               MISTAKE=unknown)
