// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_SHARD_ENCODING_H_
#define SEALPOINT_LIB_TRANSFER_SHARD_ENCODING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "lib/base/checked_math.h"
#include "lib/fingerprint/part.h"
#include "sealpoint/digest.h"
#include "sealpoint/dtype.h"

namespace sealpoint::internal::transfer {

// How a shard's bytes are cut and coded.
struct ShardEncoding {
  std::uint64_t raw_size = 0;
  std::uint64_t chunk_size = 0;
  std::uint32_t element_size = 1;
  Codec codec = Codec::kNone;
  int codec_level = 1;
  // Host memory with the bytes that the base has for this shard; null: there is no base.
  const std::byte* base = nullptr;
  // To compute the fingerprint of a shard of this tensor, see ChunkSink; null: none is wanted.
  std::shared_ptr<const fingerprint::Part> part{};
  std::uint32_t tensor = 0;

  std::uint64_t chunk_count() const { return DivideRoundUp(raw_size, chunk_size); }
  std::uint64_t raw_size_of(std::uint64_t chunk) const {
    return std::min(chunk_size, raw_size - chunk * chunk_size);
  }
};

// A chunk in its stored form: encoded or raw.
struct StoredChunk {
  std::uint64_t stored_size = 0;
  Codec codec = Codec::kNone;
  Digest raw_digest{};     // may be set later
  Digest stored_digest{};  // if it is encoded
};

// Receives the records of chunks from an intake: the table of their file.
class ChunkSink {
 public:
  // The next chunk of the shard begun last. Returns the number of its record.
  virtual std::size_t AddChunk(const StoredChunk& chunk) = 0;
  // Sets the digest of the raw bytes, by the number of the record.
  virtual void SetDigest(std::size_t record, const Digest& raw) = 0;
  // Adds the fingerprint of some elements of a shard of this tensor, in any order.
  virtual void AddFingerprint(std::uint32_t tensor, const Fingerprint& of_elements) = 0;

 protected:
  ~ChunkSink() = default;
};

// Adds the fingerprint of bytes of a shard, from `begin` on, if it is wanted.
inline void AddFingerprint(ChunkSink& sink, const ShardEncoding& encoding, std::uint64_t begin,
                           ByteSpan bytes) {
  if (encoding.part) sink.AddFingerprint(encoding.tensor, encoding.part->Of(begin, bytes));
}

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_SHARD_ENCODING_H_
