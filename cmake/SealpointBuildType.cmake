# SPDX-License-Identifier: Apache-2.0
# Build type and compiler launcher. Only for a build of Sealpoint itself: a project that includes it decides alone.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# What is built to be used is compiled in one piece per module and program (SealpointUnity.cmake), which takes less than half as
# long: reading headers takes most of it. -D CMAKE_UNITY_BUILD=OFF compiles each source alone.
if(NOT DEFINED CMAKE_UNITY_BUILD AND CMAKE_BUILD_TYPE STREQUAL "Release")
  set(CMAKE_UNITY_BUILD ON)
endif()
if(NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)
endif()

find_program(SEALPOINT_CCACHE ccache)
mark_as_advanced(SEALPOINT_CCACHE)
if(SEALPOINT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SEALPOINT_CCACHE})
endif()

# Tests are hundreds of megabytes to link; a quicker linker than the compiler's own, if it is there.
set(SEALPOINT_LINKER "" CACHE STRING "Linker to use if there is one of this name (gold, lld); empty: that of the compiler")
if(SEALPOINT_LINKER)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=${SEALPOINT_LINKER} SEALPOINT_HAVE_LINKER_${SEALPOINT_LINKER})
  if(SEALPOINT_HAVE_LINKER_${SEALPOINT_LINKER})
    add_link_options(-fuse-ld=${SEALPOINT_LINKER})
  endif()
endif()
