// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>

#include "lib/codec/chunk_codec.h"

namespace sealpoint::internal {
namespace {

// A chunk of any kind: noise, few values, or elements of which only the low bytes are noise.
Bytes AnyChunk(std::uint32_t element_size) {
  const auto size = *rc::gen::inRange<std::size_t>(0, 70000);
  const auto kind = *rc::gen::inRange(0, 3);
  std::mt19937 engine(*rc::gen::arbitrary<std::uint32_t>());
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto noise = static_cast<std::uint32_t>(engine());
    const bool high_byte = i % element_size == element_size - 1;
    bytes[i] = static_cast<std::byte>(kind == 0                ? noise
                                      : kind == 1 || high_byte ? noise & 3
                                                               : noise);
  }
  return bytes;
}

std::uint32_t AnyElementSize() { return *rc::gen::element<std::uint32_t>(1, 2, 3, 4, 8, 16); }
Codec AnyCodec() { return *rc::gen::element(Codec::kZstd, Codec::kByteSplitZstd); }

Bytes Encoded(codec::ChunkCodec& codec, Codec id, std::uint32_t element_size, const Bytes& raw) {
  Bytes stored(codec::ChunkCodec::EncodedSizeBound(raw.size()));
  const int level = *rc::gen::element(-3, 1, 3, 9);
  const auto size = codec.Encode(id, level, element_size, raw, stored);
  RC_ASSERT(size.ok());
  stored.resize(*size);
  return stored;
}

RC_GTEST_PROP(ByteSplit, JoinUndoesSplit, ()) {
  const auto element_size = *rc::gen::inRange<std::uint32_t>(1, 40);
  const Bytes raw = AnyChunk(element_size);
  Bytes split(raw.size());
  Bytes joined(raw.size());
  codec::SplitBytes(element_size, raw, split);
  codec::JoinBytes(element_size, split, joined);
  RC_ASSERT(joined == raw);
}

// What is not smaller is refused by R-COD-08 and would be stored raw.
RC_GTEST_PROP(ChunkCodec, DecodeUndoesEncode, ()) {
  const std::uint32_t element_size = AnyElementSize();
  const Codec id = AnyCodec();
  const Bytes raw = AnyChunk(element_size);
  codec::ChunkCodec codec;
  const Bytes stored = Encoded(codec, id, element_size, raw);
  Bytes decoded(raw.size());
  const Status status = codec.Decode(id, element_size, stored, decoded);
  if (stored.size() >= raw.size()) {
    RC_ASSERT(status.place().rule == "R-COD-08");
  } else {
    RC_ASSERT(status == Status());
    RC_ASSERT(decoded == raw);
  }
}

// In real life the digest of the stored bytes is checked first. Without it a decoder cannot find
// every change, but it must survive each, say Corrupt with a rule, and stay within the chunk.
RC_GTEST_PROP(ChunkCodec, AnyChangeOfAStoredChunkIsRefusedOrStaysWithinTheChunk, ()) {
  const std::uint32_t element_size = AnyElementSize();
  const Codec id = AnyCodec();
  const Bytes raw = AnyChunk(element_size);
  codec::ChunkCodec codec;
  Bytes stored = Encoded(codec, id, element_size, raw);
  const auto changes = *rc::gen::inRange(1, 5);
  for (int i = 0; i < changes; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, stored.size());
    stored[at] ^= static_cast<std::byte>(*rc::gen::inRange(1, 256));
  }
  constexpr std::size_t kGuard = 64;
  Bytes decoded(raw.size() + kGuard, std::byte{0xee});
  const Status status =
      codec.Decode(id, element_size, stored, MutableByteSpan(decoded).first(raw.size()));
  if (!status.ok()) {
    RC_ASSERT(status.code() == Code::kCorrupt);
    RC_ASSERT(status.place().rule.substr(0, 6) == "R-COD-");
  }
  RC_ASSERT(std::all_of(decoded.end() - kGuard, decoded.end(),
                        [](std::byte b) { return b == std::byte{0xee}; }));
}

RC_GTEST_PROP(ChunkCodec, EveryShorterOrLongerStoredChunkIsRefused, ()) {
  const Bytes raw = AnyChunk(4);
  codec::ChunkCodec codec;
  Bytes stored = Encoded(codec, AnyCodec(), 4, raw);
  const auto size =
      *rc::gen::distinctFrom(rc::gen::inRange<std::size_t>(0, stored.size() + 20), stored.size());
  stored.resize(size);
  Bytes decoded(raw.size());
  RC_ASSERT(codec.Decode(Codec::kZstd, 4, stored, decoded).code() == Code::kCorrupt);
}

}  // namespace
}  // namespace sealpoint::internal
