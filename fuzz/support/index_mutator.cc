// SPDX-License-Identifier: Apache-2.0
//
// Linked into fuzz_index if libFuzzer runs it.
#include "fuzz/support/table_mutator.h"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  constexpr std::size_t kHeader = 128;
  return sealpoint::fuzz::MutateTables(sealpoint::internal::metadata::MetadataKind::kIndex, kHeader,
                                       {data, size, max_size}, seed);
}
