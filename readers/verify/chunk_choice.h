// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_CHUNK_CHOICE_H_
#define SEALPOINT_READERS_VERIFY_CHUNK_CHOICE_H_

#include <cstdint>
#include <utility>

#include "readers/verify/record_walker.h"
#include "readers/verify/verified_chunks.h"
#include "sealpoint/verify.h"

namespace sealpoint::internal::verify {

// The part (of `count`, from 0) of the chunk that begins at `offset` of the blob. Each part is one
// range of the chunk area, so it is read at full speed. The blob's id determines which range is the
// first part; otherwise all blobs with a single chunk would be in the first part.
std::uint32_t PartOf(const metadata::BlobPin& pin, std::uint64_t offset, std::uint32_t count);

// Which chunks of a blob are read, and where it is noted that they are good. Thread safety: all
// functions.
class ChunkChoice {
 public:
  // `verified` may be null, and outlives the object.
  ChunkChoice(const BlobKey& blob, const VerifyPart& part, VerifiedChunksImpl* verified)
      : blob_(blob),
        part_(part),
        verified_(verified),
        known_(verified == nullptr ? ByteRanges() : verified->KnownOf(blob)) {}

  enum class Kind : std::uint8_t { kToRead, kKnown, kOfAnotherPart };
  // The same for all of its time.
  Kind KindOf(const WalkedChunk& chunk) const;

  // Records that the chunk was read and is intact, and so is the data before it from `begin` on.
  void NoteGood(std::uint64_t begin, const WalkedChunk& chunk) const {
    if (verified_ != nullptr) verified_->Add(blob_, begin, chunk.end());
  }

 private:
  const BlobKey blob_;
  const VerifyPart part_;
  VerifiedChunksImpl* const verified_;
  const ByteRanges known_;
};

}  // namespace sealpoint::internal::verify

#endif  // SEALPOINT_READERS_VERIFY_CHUNK_CHOICE_H_
