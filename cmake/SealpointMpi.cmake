# SPDX-License-Identifier: Apache-2.0
# Defines the libraries behind sealpoint::mpi and, where sealpoint::c is, sealpoint::c_mpi: the adapters, compiled once, with the
# MPI that was found. For the build and for the installed package, since each program brings its own MPI.
if(NOT TARGET sealpoint_mpi)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/sealpoint_mpi/mpi_communicator.cc CONTENT
       "#include <sealpoint/mpi_communicator_impl.h>\n")
  add_library(sealpoint_mpi STATIC EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/sealpoint_mpi/mpi_communicator.cc)
  set_target_properties(sealpoint_mpi PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(sealpoint_mpi PUBLIC sealpoint::sealpoint MPI::MPI_CXX)
endif()
if(TARGET sealpoint::c AND NOT TARGET sealpoint_c_mpi)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/sealpoint_mpi/c_mpi.cc CONTENT "#include <sealpoint_mpi_impl.h>\n")
  add_library(sealpoint_c_mpi STATIC EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/sealpoint_mpi/c_mpi.cc)
  set_target_properties(sealpoint_c_mpi PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(sealpoint_c_mpi PUBLIC sealpoint::c sealpoint_mpi)
endif()
