// SPDX-License-Identifier: Apache-2.0
//
// A mutator of libFuzzer for inputs that end in an index or manifest: half of the time the tables
// are changed, else the bytes.
#ifndef SEALPOINT_FUZZ_SUPPORT_TABLE_MUTATOR_H_
#define SEALPOINT_FUZZ_SUPPORT_TABLE_MUTATOR_H_

#include <cstddef>
#include <cstdint>

#include "lib/metadata/metadata.h"

namespace sealpoint::fuzz {

struct MutableInput {
  std::uint8_t* data = nullptr;
  std::size_t size = 0;
  std::size_t size_max = 0;
};

// Changes the input, whose FlatBuffer begins at `offset`, and returns its new size.
std::size_t MutateTables(internal::metadata::MetadataKind kind, std::size_t offset,
                         const MutableInput& input, unsigned seed);

}  // namespace sealpoint::fuzz

#endif  // SEALPOINT_FUZZ_SUPPORT_TABLE_MUTATOR_H_
