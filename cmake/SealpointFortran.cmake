# SPDX-License-Identifier: Apache-2.0
# Defines the library behind sealpoint::fortran: the module, compiled with the Fortran compiler of the program. For the build and
# for the installed package, since the files of modules are those of one compiler. `sealpoint_fortran_dir` has the sources.
if(NOT TARGET sealpoint_fortran)
  set(sealpoint_fortran_include ${CMAKE_CURRENT_BINARY_DIR}/sealpoint_fortran)
  add_library(sealpoint_fortran STATIC EXCLUDE_FROM_ALL ${sealpoint_fortran_dir}/sealpoint.f90
                                                        ${sealpoint_fortran_dir}/sealpoint_fortran.c)
  set_target_properties(sealpoint_fortran PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF C_STANDARD 99
                                                     Fortran_MODULE_DIRECTORY ${sealpoint_fortran_include})
  target_include_directories(sealpoint_fortran PUBLIC ${sealpoint_fortran_include})
  target_link_libraries(sealpoint_fortran PUBLIC sealpoint_c_mpi)
  if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
    # The C compiler may be another one than gcc, and then does not find this header of gfortran.
    execute_process(COMMAND ${CMAKE_Fortran_COMPILER} -print-file-name=include/ISO_Fortran_binding.h
                    OUTPUT_VARIABLE sealpoint_binding OUTPUT_STRIP_TRAILING_WHITESPACE)
    file(COPY ${sealpoint_binding} DESTINATION ${sealpoint_fortran_include})
  endif()
endif()
