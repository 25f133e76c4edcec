// SPDX-License-Identifier: Apache-2.0
//
// Makes the digests of a damaged container right again, from the inside out, so that the damage
// itself is what a reader has to find.
#ifndef SEALPOINT_TESTS_CONFORMANCE_RESEAL_H_
#define SEALPOINT_TESTS_CONFORMANCE_RESEAL_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/container/mini_container.h"

namespace sealpoint::testing {

// Where the digests of an undamaged container lie. Damage may move or cut what is there: a digest
// that does not lie in its file any more is left alone.
struct Seals {
  struct Blob {
    std::string name;
    internal::format::BlobSections sections;
    std::vector<internal::format::ChunkRecord> records;
    std::uint64_t group_list_pin = 0;  // offsets of the pinned digests in the index file
    std::uint64_t trailer_pin = 0;
  };
  std::string index_name;
  std::vector<Blob> blobs;
};
Seals FindSeals(const MiniContainer& container);

// Which digests to repair; a sum of these.
enum Seal : unsigned {
  kSealChunks = 1,    // in the records: raw digest of plain chunks, stored digest of coded ones
  kSealTable = 2,     // groups in the group list, the group list in the trailer
  kSealManifest = 4,  // in the trailer
  kSealHeaders = 8,   // of blobs and index, and the copy in the trailer
  kSealTrailer = 16,
  kSealPins = 32,   // in the index
  kSealIndex = 64,  // its length and digest in the marker
  kSealMarker = 128,
  kSealAll = 255
};
void Reseal(std::map<std::string, Bytes>& files, const Seals& seals, unsigned which = kSealAll);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CONFORMANCE_RESEAL_H_
