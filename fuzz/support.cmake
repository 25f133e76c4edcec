# SPDX-License-Identifier: Apache-2.0
# What the fuzz targets and their replay under every compiler share:
#   SEALPOINT_FUZZ_TARGETS  fuzz/fuzz_<target>.cc; without SEALPOINT_NIGHTLY_TESTS the one that stands for all
#   sealpoint_corpus        the checkpoints of the conformance corpus
#   sealpoint_fuzz_support  what the targets need beside: fuzz/support
#   fuzz_seeds              writes the inputs to start from into ${SEALPOINT_FUZZ_SEEDS}/<target>; without
#                           SEALPOINT_NIGHTLY_TESTS there are none but the regressions
include_guard(GLOBAL)
set(support ${PROJECT_SOURCE_DIR}/tests/support)
set(conformance ${PROJECT_SOURCE_DIR}/tests/conformance)
set(fuzz ${PROJECT_SOURCE_DIR}/fuzz)
# In the cache, because the folder that comes first includes this file for all.
set(targets foreign)
if(SEALPOINT_NIGHTLY_TESTS)
  list(APPEND targets marker index manifest blob container open plan codec writer safetensors differential)
endif()
set(SEALPOINT_FUZZ_TARGETS ${targets} CACHE INTERNAL "")
set(SEALPOINT_FUZZ_SEEDS ${PROJECT_BINARY_DIR}/fuzz/seeds CACHE INTERNAL "")

# Names of their own that others have, too; and what sealpoint_test_support has as well, so that a program that links both
# takes it once.
set_source_files_properties(
  ${conformance}/corpus_bad_files.cc ${conformance}/corpus_coded.cc ${fuzz}/support/damage.cc
  ${support}/container/mini_container.cc ${support}/storage/reading_storage.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

add_library(
  sealpoint_corpus STATIC EXCLUDE_FROM_ALL
  ${conformance}/corpus.cc
  ${conformance}/corpus_bad_blob.cc
  ${conformance}/corpus_bad_files.cc
  ${conformance}/corpus_bad_index.cc
  ${conformance}/corpus_coded.cc
  ${conformance}/corpus_damage.cc
  ${conformance}/corpus_deltas.cc
  ${conformance}/corpus_features.cc
  ${conformance}/corpus_good.cc
  ${conformance}/corpus_limits.cc
  ${conformance}/corpus_several.cc
  ${conformance}/load_all.cc
  ${conformance}/reseal.cc
  ${conformance}/stored_chunks.cc
  ${conformance}/transcribe.cc
  ${support}/container/hostile_index.cc
  ${support}/container/mini_container.cc)
target_link_libraries(sealpoint_corpus PUBLIC sealpoint_headers sealpoint_whole sealpoint_schema
                                       PRIVATE sealpoint_warnings)

add_library(sealpoint_fuzz_support STATIC EXCLUDE_FROM_ALL ${fuzz}/support/stored_zip.cc ${fuzz}/support/target.cc)
target_link_libraries(sealpoint_fuzz_support PUBLIC sealpoint_corpus PRIVATE sealpoint_warnings)
if(NOT SEALPOINT_NIGHTLY_TESTS)
  file(MAKE_DIRECTORY ${SEALPOINT_FUZZ_SEEDS}/foreign)
  add_custom_target(fuzz_seeds)
  return()
endif()
target_sources(
  sealpoint_fuzz_support
  PRIVATE ${fuzz}/support/container.cc
          ${fuzz}/support/damage.cc
          ${fuzz}/support/edit_metadata.cc
          ${fuzz}/support/check_directory.cc
          ${fuzz}/support/take_layout.cc
          ${fuzz}/support/walk_metadata.cc
          ${fuzz}/support/write_state.cc
          ${support}/storage/reading_storage.cc)

# What single targets need beside.
find_package(nlohmann_json REQUIRED)
add_library(sealpoint_fuzz_differential OBJECT EXCLUDE_FROM_ALL ${fuzz}/support/second_reader.cc)
target_link_libraries(sealpoint_fuzz_differential PRIVATE sealpoint_headers sealpoint_warnings
                                                          nlohmann_json::nlohmann_json)
target_compile_definitions(sealpoint_fuzz_differential
                           PRIVATE SEALPOINT_SECOND_READER="${PROJECT_SOURCE_DIR}/readers/reference")

add_executable(write_seeds ${fuzz}/write_seeds.cc ${fuzz}/support/foreign_seeds.cc)
target_link_libraries(write_seeds PRIVATE sealpoint_warnings sealpoint_fuzz_support)
# g++ 12 falsely warns of sums of strings at -O3.
target_compile_options(write_seeds PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
add_custom_command(
  OUTPUT ${SEALPOINT_FUZZ_SEEDS}/stamp
  COMMAND write_seeds ${SEALPOINT_FUZZ_SEEDS}
  COMMAND ${CMAKE_COMMAND} -E touch ${SEALPOINT_FUZZ_SEEDS}/stamp
  DEPENDS write_seeds
  COMMENT "Writing the seeds of the fuzz targets"
  VERBATIM)
add_custom_target(fuzz_seeds DEPENDS ${SEALPOINT_FUZZ_SEEDS}/stamp)
