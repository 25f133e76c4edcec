# SPDX-License-Identifier: Apache-2.0
# sealpoint_add_fuzz_target(<name> SOURCES <file>... [INPUTS <folder>...] [LINK <target>...])
# Makes fuzz_<name> with libFuzzer's main, listed in the target fuzzers. ctest runs it once over the committed INPUTS.
add_custom_target(fuzzers)
function(sealpoint_add_fuzz_target name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;INPUTS;LINK")
  set(target fuzz_${name})
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE sealpoint_warnings sealpoint_headers sealpoint_whole ${arg_LINK})
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  add_dependencies(fuzzers ${target})
  # Where scripts/fuzz.sh finds what to start from.
  list(JOIN arg_INPUTS "\n" inputs)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/fuzz/${target}.inputs CONTENT "${inputs}\n")
  if(SEALPOINT_BUILD_TESTS)
    add_test(NAME fuzz.${name} COMMAND ${target} -runs=0 ${arg_INPUTS})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 120 SKIP_REGULAR_EXPRESSION "is skipped: ")
    # As its replay, which stands in for it where there is no libFuzzer.
    sealpoint_label_nightly(fuzz.${name} conformance.replay_${name})
  endif()
endfunction()
