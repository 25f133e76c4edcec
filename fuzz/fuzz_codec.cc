// SPDX-License-Identifier: Apache-2.0
//
// Proves that no stored bytes make the decoder crash, write past the chunk or blame anything but
// the bytes, whatever length the record declares; and that what is encoded decodes to the same.
#include <algorithm>
#include <memory>

#include "fuzz/support/target.h"
#include "lib/codec/chunk_codec.h"
#include "lib/codec/frame_header.h"

namespace sealpoint::fuzz {
namespace {

using internal::codec::ChunkCodec;

constexpr std::uint64_t kRawMax = 1 * kMiB;

bool IsCoded(Codec codec) { return codec == Codec::kZstd || codec == Codec::kByteSplitZstd; }

// A codec that chunks of all kinds have passed through.
ChunkCodec& UsedCodec() {
  static ChunkCodec codec;
  return codec;
}

// Decodes into memory of exactly that size, so that a sanitizer sees a byte too many.
Status Decode(ChunkCodec& codec, Codec id, std::uint32_t element_size, ByteSpan stored,
              MutableByteSpan raw) {
  const Status status = codec.Decode(id, element_size, stored, raw);
  if (!status.ok()) RequireAnswer(status);
  return status;
}

// A frame of anything, with the length that it declares or another one.
void CheckDecoding(InputReader& input) {
  const auto id = static_cast<Codec>(input.Take8() % 4);
  const std::uint32_t element_size = static_cast<std::uint32_t>(input.TakeIn(1, 256));
  const bool as_declared = input.TakeBool();
  std::uint64_t raw_size = input.Take32() % (kRawMax + 1);
  const ByteSpan stored = input.rest();
  const auto header = internal::codec::ParseFrameHeader(stored);
  if (!header.ok()) RequireAnswer(header.error());
  if (as_declared && header.ok() && header->content_size_bytes.value_or(kRawMax + 1) <= kRawMax) {
    raw_size = *header->content_size_bytes;
  }
  const auto raw = std::make_unique<std::byte[]>(raw_size);
  const MutableByteSpan bytes(raw.get(), raw_size);
  if (!Decode(UsedCodec(), id, element_size, stored, bytes).ok()) return;
  if (IsCoded(id)) {
    Require(stored.size() < raw_size && header.ok(), "a frame that no record allows");
    Require(header->content_size_bytes == raw_size, "a frame of another length");
  }
  // A codec that has decoded before, and one that has not, agree.
  Bytes again(raw_size);
  ChunkCodec fresh;
  Require(Decode(fresh, id, element_size, stored, again).ok() && std::ranges::equal(again, bytes),
          "decoded twice, to different bytes");
}

// Half of the bytes are noise, so that the chunk is worth encoding and not trivial.
Bytes TakeRaw(InputReader& input) {
  const std::uint64_t size = input.Take32() % (32 * kKiB);
  const ByteSpan pattern = input.rest();
  Bytes raw(size);
  for (std::size_t i = 0; i < size && !pattern.empty(); ++i) {
    raw[i] = pattern[i % pattern.size()] ^ static_cast<std::byte>(i / pattern.size() * (i % 3));
  }
  return raw;
}

void CheckRoundTrip(InputReader& input) {
  const Codec id = input.TakeBool() ? Codec::kZstd : Codec::kByteSplitZstd;
  const std::uint32_t element_size = static_cast<std::uint32_t>(input.TakeIn(1, 256));
  const int level = static_cast<int>(input.TakeBelow(12)) - 4;
  const unsigned damage = input.Take8();
  const std::uint32_t damage_at = input.Take32();
  const Bytes raw = TakeRaw(input);

  Bytes split(raw.size());
  Bytes joined(raw.size());
  internal::codec::SplitBytes(element_size, raw, split);
  internal::codec::JoinBytes(element_size, split, joined);
  Require(joined == raw, "splitting is not undone by joining");

  ChunkCodec& codec = UsedCodec();
  Bytes stored(ChunkCodec::EncodedSizeBound(raw.size()));
  const Result<std::size_t> size = codec.Encode(id, level, element_size, raw, stored);
  Require(size.ok() && *size <= stored.size(), "a chunk is not encoded");
  stored.resize(*size);
  Bytes decoded(raw.size());
  const Status status = Decode(codec, id, element_size, stored, decoded);
  Require(status.ok() == (stored.size() < raw.size()), "a chunk is refused: " + status.ToString());
  if (!status.ok()) return Require(status.place().rule == "R-COD-08", "refused by another rule");
  Require(decoded == raw, "a chunk comes back changed");

  if (damage % 4 == 0) {
    Bytes repeated(ChunkCodec::EncodedSizeBound(raw.size()));
    repeated.resize(ChunkCodec().Encode(id, level, element_size, raw, repeated).value());
    Require(repeated == stored, "the same chunk is encoded in two ways");
  }
  stored[damage_at % stored.size()] ^= static_cast<std::byte>(damage);
  static_cast<void>(Decode(codec, id, element_size, stored, decoded));
}

}  // namespace
}  // namespace sealpoint::fuzz

// The first byte chooses between a stored chunk to decode and one to encode.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sealpoint;
  fuzz::InputReader input(fuzz::AsInput(data, size));
  if (input.TakeBool()) {
    fuzz::CheckRoundTrip(input);
  } else {
    fuzz::CheckDecoding(input);
  }
  return 0;
}
