// SPDX-License-Identifier: Apache-2.0
//
// Damages an index or manifest through its tables, so that it stays well-formed and can be wrong in
// its meaning only.
#ifndef SEALPOINT_FUZZ_SUPPORT_EDIT_METADATA_H_
#define SEALPOINT_FUZZ_SUPPORT_EDIT_METADATA_H_

#include <optional>

#include "fuzz/support/target.h"
#include "tests/support/container/hostile_index.h"

namespace sealpoint::fuzz {

// One change, chosen by the input: a field, an entry added, lost, doubled or moved.
void EditMetadata(InputReader& input, testing::HostileMetadata& metadata);

// The numbers to repair after the changes, so that the checks that come last are reached, too; a
// sum of these.
enum Mend : unsigned {
  kMendRawBytes = 1,  // the sum over tensors and objects
  kMendCounts = 2,    // shards of each blob
  kMendOrder = 4,     // names sorted
};
void MendMetadata(unsigned which, testing::HostileMetadata& metadata);

// The tables of a FlatBuffer, which is 8-byte aligned; nothing if it is not well-formed or has
// more entries than are worth taking apart.
std::optional<testing::HostileMetadata> TryTranscribeIndex(ByteSpan buffer);
std::optional<testing::HostileMetadata> TryTranscribeManifest(ByteSpan buffer);

}  // namespace sealpoint::fuzz

#endif  // SEALPOINT_FUZZ_SUPPORT_EDIT_METADATA_H_
