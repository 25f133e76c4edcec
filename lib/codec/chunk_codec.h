// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_CODEC_CHUNK_CODEC_H_
#define SEALPOINT_LIB_CODEC_CHUNK_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "lib/codec/change_list.h"
#include "sealpoint/bytes.h"
#include "sealpoint/dtype.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::codec {

// Encodes and decodes single chunks (rules R-COD-*: one zstd frame, content size declared, window
// at most the chunk, no dictionary, nothing after the frame, smaller than the raw bytes). The
// encoder does not write zstd's own checksum. One instance per thread: it keeps the zstd contexts
// and a scratch buffer for the byte split, so that later chunks of the same size allocate nothing.
// After a move only destruction and assignment are allowed.
class ChunkCodec {
 public:
  ChunkCodec();
  ~ChunkCodec();
  ChunkCodec(ChunkCodec&&) noexcept;
  ChunkCodec& operator=(ChunkCodec&&) noexcept;

  // The largest number of bytes that Encode may need for `raw_size_bytes`.
  static std::size_t EncodedSizeBound(std::size_t raw_size_bytes);

  // InvalidArgument, with both bounds, unless zstd has this level.
  static Status CheckLevel(int level);

  // Encodes `raw` into `out` (at least EncodedSizeBound) at zstd level `level`. Returns the stored
  // length (kByteSplitZstd at level 1 has parameters of its own); a length >= raw.size() means that
  // the caller stores the chunk raw with Codec::kNone. `element_size` in bytes, at least 1, is used
  // by kByteSplitZstd. The same arguments give the same bytes with the same zstd. Precondition:
  // codec is kZstd or kByteSplitZstd. Errors: InvalidArgument (level), Io (out of memory).
  Result<std::size_t> Encode(Codec codec, int level, std::uint32_t element_size, ByteSpan raw,
                             MutableByteSpan out);

  // Decodes `stored`, after the caller has checked its digest, into exactly `raw`; kNone copies.
  // Never writes past `raw`. Allocates by the size of `raw`, never by the size declared in the
  // frame, and only after checking the frame's header and length. `raw` is unspecified after an
  // error. Precondition: element_size >= 1. Errors: Corrupt with the broken rule of
  // spec/container.md; Unsupported for an unknown codec; Io (out of memory).
  Status Decode(Codec codec, std::uint32_t element_size, ByteSpan stored, MutableByteSpan raw);

  // Encodes the changes of `raw` against `base`, of equal sizes, into `out` (at least raw.size()).
  // Returns the stored length: 0 if nothing changed; raw.size() if the changes take no less than
  // the raw bytes, so that the caller stores the chunk in another way. Errors: Io (out of memory).
  // `visit` gets the blocks of `raw`.
  Result<std::size_t> EncodeChanges(std::uint32_t element_size, ByteSpan raw, ByteSpan base,
                                    MutableByteSpan out, const VisitBlock& visit = {});
  // Makes the changes that `stored`, whose digest the caller has checked, has for `bytes`, which
  // holds the base bytes; `visit` gets its blocks once they are changed. As Decode in all else.
  // Errors: Corrupt (R-DLT-07, R-COD-*); Io.
  Status ApplyChanges(std::uint32_t element_size, ByteSpan stored, MutableByteSpan bytes,
                      const VisitBlock& visit = {});

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
};

// The byte split alone: plane p of `out` holds byte p of each element, in element order; bytes
// after the last whole element follow unchanged. Preconditions: equal sizes, element_size >= 1.
void SplitBytes(std::uint32_t element_size, ByteSpan raw, MutableByteSpan out);
void JoinBytes(std::uint32_t element_size, ByteSpan split, MutableByteSpan raw);
// The name of the vector instructions that both use, "NEON". Static text.
std::string_view ByteSplitInstructions();

}  // namespace sealpoint::internal::codec

#endif  // SEALPOINT_LIB_CODEC_CHUNK_CODEC_H_
