# SPDX-License-Identifier: Apache-2.0
# What the library needs, and the two optional neighbours. Each test or program folder looks for its own tools itself.
if(NOT PROJECT_IS_TOP_LEVEL)
  # A project that adds this one links our targets in its own folders, where it must see what they link.
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
  set(SEALPOINT_TARGETS_GLOBAL GLOBAL)
endif()
find_package(Threads REQUIRED)
find_package(xxHash REQUIRED)
find_package(zstd CONFIG REQUIRED)
# The configuration file has changed its case over time.
find_package(FlatBuffers NAMES flatbuffers FlatBuffers CONFIG REQUIRED)

include(SealpointZstd)
if(NOT TARGET sealpoint::zstd)
  message(FATAL_ERROR "zstd was found, but none of its targets: zstd::libzstd_shared, zstd::libzstd, zstd::libzstd_static")
endif()

add_library(sealpoint_headers INTERFACE)
target_compile_features(sealpoint_headers INTERFACE cxx_std_20)
target_include_directories(sealpoint_headers INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(sealpoint_headers INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
if(BUILD_SHARED_LIBS)
  target_compile_definitions(sealpoint_headers INTERFACE SEALPOINT_SHARED)
endif()

include(SealpointSchema)

# MPI is used by tests, examples and benchmarks; the library links none (the adapter is a header).
if(NOT SEALPOINT_WITH_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX TRUE)
  if(SEALPOINT_WITH_MPI STREQUAL "ON")
    find_package(MPI REQUIRED COMPONENTS CXX)
  else()
    find_package(MPI QUIET COMPONENTS CXX)
  endif()
endif()
if(MPI_CXX_FOUND AND NOT SEALPOINT_WITH_MPI STREQUAL "OFF")
  set(SEALPOINT_HAVE_MPI ON)
else()
  set(SEALPOINT_HAVE_MPI OFF)
endif()

if(NOT SEALPOINT_WITH_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit QUIET)
  if(SEALPOINT_WITH_CUDA STREQUAL "ON" AND NOT CUDAToolkit_FOUND)
    message(FATAL_ERROR "SEALPOINT_WITH_CUDA is ON, but no CUDA Toolkit was found")
  endif()
endif()
if(CUDAToolkit_FOUND AND NOT SEALPOINT_WITH_CUDA STREQUAL "OFF")
  set(SEALPOINT_HAVE_CUDA ON)
else()
  set(SEALPOINT_HAVE_CUDA OFF)
endif()

message(STATUS "Sealpoint: MPI ${SEALPOINT_HAVE_MPI}, CUDA Toolkit ${SEALPOINT_HAVE_CUDA}")
