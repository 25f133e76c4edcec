# SPDX-License-Identifier: Apache-2.0
# Kernels for CUDA devices: compiled into one image that is embedded as bytes and loaded at run time. nvcc is called directly,
# since CMake before 3.26 does not know CUDA with C++20 and nothing here needs another part of that language.

if(SEALPOINT_HAVE_CUDA AND CUDAToolkit_NVCC_EXECUTABLE)
  set(SEALPOINT_HAVE_KERNELS ON)
else()
  set(SEALPOINT_HAVE_KERNELS OFF)
endif()

# Code for the first of each generation runs on all of it; PTX is for devices that have none of these.
set(SEALPOINT_CUDA_ARCHITECTURES 75 80 90 100 110 120)

# sealpoint_embed_kernels(<variable> <source.cu> HEADER <file> FUNCTION <qualified name> INCLUDE <folder> DEPENDS <file>...)
# Sets the variable to a source that defines `sealpoint::ByteSpan FUNCTION()`, which HEADER declares.
function(sealpoint_embed_kernels variable source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "HEADER;FUNCTION;INCLUDE" "DEPENDS")
  execute_process(COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} --list-gpu-code OUTPUT_VARIABLE known)
  set(code "")
  foreach(architecture IN LISTS SEALPOINT_CUDA_ARCHITECTURES)
    if(known MATCHES "sm_${architecture}\n")
      list(APPEND code -gencode arch=compute_${architecture},code=sm_${architecture})
    endif()
  endforeach()
  get_filename_component(name ${source} NAME_WE)
  set(fatbin ${CMAKE_CURRENT_BINARY_DIR}/${name}.fatbin)
  set(image ${CMAKE_CURRENT_BINARY_DIR}/${name}_image.cc)
  set(embed ${PROJECT_SOURCE_DIR}/cmake/EmbedBytes.cmake)
  add_custom_command(
    OUTPUT ${image}
    COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} --fatbin -Xfatbin -compress-all ${code} -gencode
            arch=compute_75,code=compute_75 -std=c++17 -I ${arg_INCLUDE} ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${fatbin}
    COMMAND ${CMAKE_COMMAND} -D INPUT=${fatbin} -D OUTPUT=${image} -D HEADER=${arg_HEADER} -D FUNCTION=${arg_FUNCTION} -P
            ${embed}
    DEPENDS ${source} ${arg_DEPENDS} ${embed}
    COMMENT "Compiling ${source}"
    VERBATIM)
  set(${variable} ${image} PARENT_SCOPE)
endfunction()
