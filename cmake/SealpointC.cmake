# SPDX-License-Identifier: Apache-2.0
# Tests and examples of the C API are in C; the library itself needs no C compiler. It is that of the C++ compiler, so that
# both know the same sanitizers.
if(NOT SEALPOINT_BUILD_C OR NOT (SEALPOINT_BUILD_TESTS OR SEALPOINT_BUILD_EXAMPLES))
  return()
endif()
if(NOT CMAKE_C_COMPILER AND NOT DEFINED ENV{CC})
  string(REGEX REPLACE "clang\\+\\+([^/]*)$" "clang\\1" compiler ${CMAKE_CXX_COMPILER})
  string(REGEX REPLACE "g\\+\\+([^/]*)$" "gcc\\1" compiler ${compiler})
  if(NOT compiler STREQUAL CMAKE_CXX_COMPILER AND EXISTS ${compiler})
    set(CMAKE_C_COMPILER ${compiler} CACHE FILEPATH "C compiler")
  endif()
endif()
if(SEALPOINT_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${SEALPOINT_CCACHE})
endif()
enable_language(C)

# The Fortran module, for its test and its example. Not for another processor, whose compiler is not looked for.
set(SEALPOINT_HAVE_FORTRAN OFF)
if(SEALPOINT_HAVE_MPI AND NOT SEALPOINT_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  include(CheckLanguage)
  check_language(Fortran)
  if(CMAKE_Fortran_COMPILER)
    enable_language(Fortran)
    find_package(MPI QUIET COMPONENTS Fortran)
    set(SEALPOINT_HAVE_FORTRAN ${MPI_Fortran_HAVE_F08_MODULE})
  endif()
endif()
