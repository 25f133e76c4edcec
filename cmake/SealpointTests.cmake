# SPDX-License-Identifier: Apache-2.0
# How a test is declared. Each function makes one executable and its ctest entries; names are <kind>.<name>, the label is the kind.
find_package(GTest CONFIG REQUIRED)
find_package(rapidcheck CONFIG REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set_property(TARGET Python3::Interpreter PROPERTY CROSSCOMPILING_EMULATOR "") # it is this machine's

# Most of the build time goes into the code of test macros, which gains nothing from being optimised; what is tested
# is optimised. Property tests run thousands of generated cases, and what tests share is run by many, so these get a little.
add_library(sealpoint_test_flags INTERFACE)
# tests/support/googletest/gtest/internal/custom is where GoogleTest looks for printers of the project's own.
target_include_directories(sealpoint_test_flags INTERFACE ${PROJECT_SOURCE_DIR}/tests/support/googletest)
target_link_libraries(sealpoint_test_flags INTERFACE sealpoint_warnings sealpoint_headers)
if(SEALPOINT_SANITIZE)
  target_compile_definitions(sealpoint_test_flags INTERFACE SEALPOINT_TEST_SANITIZED)
endif()
target_compile_options(
  sealpoint_test_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:-O$<IF:$<BOOL:$<TARGET_PROPERTY:SEALPOINT_OPTIMISED_TEST>>,1,0>>)

# Half of the time of compiling a test goes into reading these. The program carries them; g++ takes them only if the
# optimisation is the same, and ccache needs CCACHE_SLOPPINESS (scripts/test.sh). Off in the presets for development, in
# which a test must include what it uses.
if(SEALPOINT_FAST_TESTS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled/main.cc CONTENT "int main() {}\n")
  add_executable(sealpoint_test_headers ${PROJECT_BINARY_DIR}/precompiled/main.cc)
  set_target_properties(sealpoint_test_headers PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(sealpoint_test_headers PRIVATE sealpoint_test_flags GTest::gmock)
  target_compile_options(sealpoint_test_headers PRIVATE -fpch-preprocess)
  target_precompile_headers(
    sealpoint_test_headers
    PRIVATE
    <gmock/gmock.h>
    <gtest/gtest.h>
    <algorithm>
    <array>
    <atomic>
    <chrono>
    <cstdint>
    <filesystem>
    <functional>
    <map>
    <memory>
    <set>
    <span>
    <string>
    <thread>
    <utility>
    <vector>)
endif()
function(sealpoint_use_precompiled_headers target)
  if(TARGET sealpoint_test_headers)
    target_compile_options(${target} PRIVATE -fpch-preprocess)
    target_precompile_headers(${target} REUSE_FROM sealpoint_test_headers)
  endif()
endfunction()

# tests/support; before the library, from which its archives want something.
set(SEALPOINT_TEST_LIBRARIES sealpoint_test_flags sealpoint_test_support sealpoint_test_threads)

# sealpoint_tests_<kind> builds all executables of a kind; sealpoint_tests_threaded those worth a run under ThreadSanitizer;
# sealpoint_tests_single_process those that need no launcher and no installed program; sealpoint_tests_product those of all
# kinds but the ones that go through many states, faults or processes (SEALPOINT_DEEP_KINDS of CMakePresets.json).
function(sealpoint_collect_test kind target)
  set(collections ${kind})
  if(NOT kind MATCHES "^(${SEALPOINT_DEEP_KINDS}|single_process|threaded)$")
    list(APPEND collections product)
  endif()
  foreach(collection IN LISTS collections)
    if(NOT TARGET sealpoint_tests_${collection})
      add_custom_target(sealpoint_tests_${collection})
    endif()
    add_dependencies(sealpoint_tests_${collection} ${target})
  endforeach()
endfunction()

# The tests that tests/nightly.txt names are there only with SEALPOINT_NIGHTLY_TESTS, and have the label nightly, too: what runs
# per commit does not even build them.
set(nightly_list ${PROJECT_SOURCE_DIR}/tests/nightly.txt)
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${nightly_list})
file(STRINGS ${nightly_list} nightly_names REGEX "^[a-z]")
list(TRANSFORM nightly_names REPLACE " .*" "")
# sealpoint_is_left_out(<variable> <test>): whether this build does not declare the test.
function(sealpoint_is_left_out variable test)
  set(${variable} OFF PARENT_SCOPE)
  if(test IN_LIST nightly_names AND NOT SEALPOINT_NIGHTLY_TESTS)
    set(${variable} ON PARENT_SCOPE)
  endif()
endfunction()
# sealpoint_label_nightly(<test> [<name in the list, if it is another one>])
function(sealpoint_label_nightly test)
  if(test IN_LIST nightly_names OR "${ARGN}" IN_LIST nightly_names)
    set_property(TEST ${test} APPEND PROPERTY LABELS nightly)
  endif()
endfunction()

# sealpoint_program(<variable> <target>): the path by which a script runs the program, through the emulator if it is for another
# processor.
function(sealpoint_program variable target)
  set(${variable} $<TARGET_FILE:${target}> PARENT_SCOPE)
  if(CMAKE_CROSSCOMPILING_EMULATOR)
    set(script ${CMAKE_CURRENT_BINARY_DIR}/emulated/${target})
    list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
    file(GENERATE OUTPUT ${script} CONTENT "#!/bin/sh\nexec ${emulator} $<TARGET_FILE:${target}> \"$@\"\n"
         FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
    set(${variable} ${script} PARENT_SCOPE)
  endif()
endfunction()

# Adds the executable <target> to ctest as <kind>.<name>. Further arguments are more labels.
function(sealpoint_register_test kind name target)
  add_test(NAME ${kind}.${name} COMMAND ${target})
  set_tests_properties(${kind}.${name} PROPERTIES LABELS "${kind};${ARGN}" TIMEOUT 600)
  sealpoint_label_nightly(${kind}.${name})
  foreach(label IN LISTS kind ARGN)
    sealpoint_collect_test(${label} ${target})
  endforeach()
  if(kind MATCHES "^(unit|property|conformance)$")
    sealpoint_collect_test(single_process ${target})
  endif()
endfunction()

# Whoever links one of these modules has threads.
function(sealpoint_threaded_label variable objects)
  set(${variable} "" PARENT_SCOPE)
  foreach(module storage device pipeline comm)
    if(sealpoint_${module}_objects IN_LIST objects)
      set(${variable} threaded PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# sealpoint_add_unit_test(<module> SOURCES <file>... [EXTRA_MODULES <module>...] [LINK <target>...])
# The binary holds the objects of the module and of what it may include, nothing else: a forbidden edge fails to link.
function(sealpoint_add_unit_test module)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;EXTRA_MODULES;LINK")
  sealpoint_module_closure(objects ${module} ${arg_EXTRA_MODULES})
  add_executable(unit_${module} ${arg_SOURCES})
  target_link_libraries(unit_${module} PRIVATE ${arg_LINK} ${SEALPOINT_TEST_LIBRARIES} ${objects} GTest::gmock
                                               GTest::gtest_main)
  sealpoint_use_precompiled_headers(unit_${module})
  sealpoint_threaded_label(label "${objects}")
  sealpoint_register_test(unit ${module} unit_${module} ${label})
endfunction()

# sealpoint_add_property_test(<name> SOURCES <file>... [MODULES <module>...] [LINK <target>...])
# Without MODULES the whole library is linked.
function(sealpoint_add_property_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;MODULES;LINK")
  sealpoint_is_left_out(is_left_out property.${name})
  if(is_left_out)
    return()
  endif()
  if(arg_MODULES)
    sealpoint_module_closure(objects ${arg_MODULES})
  else()
    set(objects sealpoint_whole)
  endif()
  add_executable(property_${name} ${arg_SOURCES})
  set_target_properties(property_${name} PROPERTIES SEALPOINT_OPTIMISED_TEST ON)
  target_link_libraries(property_${name} PRIVATE ${arg_LINK} ${SEALPOINT_TEST_LIBRARIES} ${objects} rapidcheck
                                                 rapidcheck_gtest GTest::gmock GTest::gtest_main)
  sealpoint_threaded_label(label "${objects}")
  sealpoint_register_test(property ${name} property_${name} ${label})
endfunction()

# sealpoint_add_gtest(<kind> <name> [THREADED] SOURCES <file>... [LINK <target>...])
# A test of any other kind, with the whole library. THREADED: also run it under ThreadSanitizer.
function(sealpoint_add_gtest kind name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "THREADED" "" "SOURCES;LINK")
  sealpoint_is_left_out(is_left_out ${kind}.${name})
  if(is_left_out)
    return()
  endif()
  set(label "")
  if(arg_THREADED)
    set(label threaded)
  endif()
  add_executable(${kind}_${name} ${arg_SOURCES})
  target_link_libraries(${kind}_${name} PRIVATE ${arg_LINK} ${SEALPOINT_TEST_LIBRARIES} sealpoint_whole GTest::gmock
                                                GTest::gtest_main)
  sealpoint_use_precompiled_headers(${kind}_${name})
  sealpoint_register_test(${kind} ${name} ${kind}_${name} ${label})
endfunction()

# More ranks than cores, as root, on shared memory only, without the kernel's cross-memory copy (containers forbid it); where
# one rank is killed, the others are, and not after a second in which they could end by themselves.
set(SEALPOINT_MPI_ENVIRONMENT
    OMPI_ALLOW_RUN_AS_ROOT=1
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1
    OMPI_MCA_hwloc_base_binding_policy=none
    OMPI_MCA_mpi_yield_when_idle=1
    OMPI_MCA_btl=self,vader
    OMPI_MCA_btl_vader_single_copy_mechanism=none
    OMPI_MCA_odls_base_sigkill_timeout=0)

# sealpoint_add_mpi_test(<name> [SOURCES <file>...] RANKS <count>... [LINK <target>...])
# main() and WithRanks() are those over MPI. One ctest entry mpi.<name>.np<count> per rank count; nothing where MPI is off.
function(sealpoint_add_mpi_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;RANKS;LINK")
  if(NOT SEALPOINT_HAVE_MPI)
    return()
  endif()
  add_executable(mpi_${name} ${arg_SOURCES})
  target_link_libraries(mpi_${name} PRIVATE sealpoint_test_flags ${arg_LINK} sealpoint_test_mpi
                                            sealpoint_test_support sealpoint_whole sealpoint_mpi GTest::gmock GTest::gtest)
  if(arg_SOURCES)
    sealpoint_use_precompiled_headers(mpi_${name})
  endif()
  sealpoint_register_mpi_test(${name} mpi_${name} ${arg_RANKS})
endfunction()

# sealpoint_register_mpi_test(<name> <target> <count>...)
function(sealpoint_register_mpi_test name target)
  sealpoint_collect_test(mpi ${target})
  foreach(ranks IN LISTS ARGN)
    set(test mpi.${name}.np${ranks})
    add_test(NAME ${test} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${MPIEXEC_PREFLAGS}
                                  ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${target}> ${MPIEXEC_POSTFLAGS})
    set_tests_properties(${test} PROPERTIES LABELS mpi TIMEOUT 300 PROCESSORS ${ranks} ENVIRONMENT
                                            "${SEALPOINT_MPI_ENVIRONMENT}")
  endforeach()
endfunction()
