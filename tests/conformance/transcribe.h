// SPDX-License-Identifier: Apache-2.0
//
// Takes a good index or manifest apart into plain values that can be damaged and encoded again.
#ifndef SEALPOINT_TESTS_CONFORMANCE_TRANSCRIBE_H_
#define SEALPOINT_TESTS_CONFORMANCE_TRANSCRIBE_H_

#include <functional>

#include "tests/support/container/hostile_index.h"

namespace sealpoint::testing {

// `buffer` is a FlatBuffer that the library accepts. Of blob ids only the first byte is kept, of
// pinned digests nothing.
HostileMetadata TranscribeIndex(ByteSpan buffer);
HostileMetadata TranscribeManifest(ByteSpan buffer);

// Ids and digests of the blobs, which an encoded HostileMetadata lacks, from the good index: each
// from the blob whose id begins with the same byte.
void CopyPins(ByteSpan good, Bytes& buffer);

using MetadataChange = std::function<void(HostileMetadata&)>;
// For MiniHooks::index_bytes: the index of a spec encoded field by field, so that it can hold what
// no encoder writes.
std::function<void(Bytes&)> EditIndex(const MetadataChange& change);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CONFORMANCE_TRANSCRIBE_H_
