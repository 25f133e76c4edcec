# SPDX-License-Identifier: Apache-2.0
# Two interface targets carry how our own code is compiled:
#   sealpoint_headers   C++20, the include folders, threads; what every module and test needs
#   sealpoint_warnings  the warnings; linked privately, so that no user inherits them
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

add_library(sealpoint_warnings INTERFACE)
target_compile_options(
  sealpoint_warnings
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wsign-conversion
            -Wold-style-cast
            -Wcast-align
            -Wcast-qual
            -Wdouble-promotion
            -Wextra-semi
            -Wformat=2
            -Wimplicit-fallthrough
            -Wnon-virtual-dtor
            -Woverloaded-virtual
            -Wundef
            -Wunused
            # Options are aggregates for designated initialisers: what is left out has its default.
            -Wno-missing-field-initializers)
if(SEALPOINT_WERROR)
  target_compile_options(sealpoint_warnings INTERFACE -Werror)
endif()

# Sanitizers hold for the whole build or not at all: mixing instrumented and plain objects hides errors.
if(SEALPOINT_SANITIZE)
  list(JOIN SEALPOINT_SANITIZE "," sealpoint_sanitizers)
  add_compile_options(-fsanitize=${sealpoint_sanitizers} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${sealpoint_sanitizers})
  if("undefined" IN_LIST SEALPOINT_SANITIZE)
    add_compile_options(-fno-sanitize-recover=all)
  endif()
endif()
if(SEALPOINT_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "SEALPOINT_BUILD_FUZZERS needs clang (libFuzzer); use the preset fuzz or asan-ubsan")
  endif()
  # For what is fuzzed: sealpoint_add_module() and fuzz/. Tests guide no fuzzer, and would take longer to compile.
  set(sealpoint_fuzzed_options -fsanitize=fuzzer-no-link)
endif()
