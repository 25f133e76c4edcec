// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "lib/codec/chunk_codec.h"

namespace sealpoint::internal {
namespace {

Bytes RandomBytes(std::size_t size) {
  std::mt19937 engine(7);
  Bytes bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(engine());
  return bytes;
}

// Weights as a model has them: f32, normally distributed, standard deviation 0.02.
Bytes Weights(std::size_t count) {
  std::mt19937 engine(11);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  std::vector<float> values(count);
  for (float& value : values) value = normal(engine);
  Bytes bytes(count * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Bytes Encoded(ChunkCodec& codec, Codec id, const Bytes& raw, int level = 1) {
  Bytes out(ChunkCodec::EncodedSizeBound(raw.size()));
  const auto size = codec.Encode(id, level, 4, raw, out);
  EXPECT_TRUE(size.ok()) << size.error().ToString();
  out.resize(size.value_or(std::size_t{0}));
  return out;
}

TEST(CodecName, NamesEveryCodec) {
  EXPECT_EQ(CodecName(Codec::kNone), "none");
  EXPECT_EQ(CodecName(Codec::kZstd), "zstd");
  EXPECT_EQ(CodecName(Codec::kByteSplitZstd), "bytesplit+zstd");
  EXPECT_EQ(CodecName(static_cast<Codec>(3)), "unknown");
}

TEST(Encode, DeclaresTheContentSizeAndNothingElse) {
  ChunkCodec codec;
  const Bytes stored = Encoded(codec, Codec::kZstd, Bytes(100000));
  const auto descriptor = std::to_integer<unsigned>(stored[4]);
  EXPECT_EQ(descriptor & 0x0fU, 0U) << "checksum, reserved bit or dictionary id";
  EXPECT_EQ(descriptor >> 6, 2U) << "content size of four bytes";
}

TEST(Encode, KeepsTheWindowWithinTheChunkAtEveryLevel) {
  ChunkCodec codec;
  const Bytes raw(300000);
  for (const int level : {-5, 1, 3, 19, 22}) {
    const Bytes stored = Encoded(codec, Codec::kZstd, raw, level);
    Bytes decoded(raw.size());
    const Status status = codec.Decode(Codec::kZstd, 4, stored, decoded);
    EXPECT_TRUE(status.ok()) << level << ": " << status.ToString();
  }
}

TEST(Encode, ReportsAtLeastTheRawLengthForRandomBytes) {
  ChunkCodec codec;
  const Bytes raw = RandomBytes(50000);
  EXPECT_GE(Encoded(codec, Codec::kZstd, raw).size(), raw.size());
}

TEST(Encode, GivesTheSameBytesWhateverCameBefore) {
  const Bytes raw = Weights(20000);
  ChunkCodec fresh;
  const Bytes expected = Encoded(fresh, Codec::kByteSplitZstd, raw);
  ChunkCodec used;
  static_cast<void>(Encoded(used, Codec::kZstd, RandomBytes(100000), 19));
  EXPECT_EQ(Encoded(used, Codec::kByteSplitZstd, raw), expected);
}

TEST(Encode, GainsByTheByteSplitOnWeights) {
  ChunkCodec codec;
  const Bytes raw = Weights(250000);
  const std::size_t plain = Encoded(codec, Codec::kZstd, raw).size();
  const std::size_t split = Encoded(codec, Codec::kByteSplitZstd, raw).size();
  EXPECT_LT(static_cast<double>(split), 0.95 * static_cast<double>(plain));
  EXPECT_LT(static_cast<double>(split), 0.88 * static_cast<double>(raw.size()));
}

TEST(Encode, RefusesALevelThatZstdDoesNotHave) {
  ChunkCodec codec;
  Bytes out(ChunkCodec::EncodedSizeBound(10));
  const auto result = codec.Encode(Codec::kZstd, 23, 1, Bytes(10), out);
  EXPECT_EQ(result.status().code(), Code::kInvalidArgument);
}

TEST(EncodeDeathTest, RefusesCodecNoneAndSmallOutput) {
  ChunkCodec codec;
  Bytes out(ChunkCodec::EncodedSizeBound(10));
  EXPECT_DEATH(static_cast<void>(codec.Encode(Codec::kNone, 1, 1, Bytes(10), out)), "codec");
  EXPECT_DEATH(static_cast<void>(codec.Encode(Codec::kZstd, 1, 1, Bytes(11), out)), "out.size");
}

TEST(Decode, ServesChunksOfChangingSizes) {
  ChunkCodec codec;
  for (const std::size_t count : {1000U, 50000U, 10U, 3000U}) {
    const Bytes raw(count * 4 + 3, std::byte{0x5a});
    const Bytes stored = Encoded(codec, Codec::kByteSplitZstd, raw);
    Bytes decoded(raw.size());
    const Status status = codec.Decode(Codec::kByteSplitZstd, 4, stored, decoded);
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(decoded, raw);
  }
}

TEST(Decode, CopiesRawChunks) {
  const Bytes raw = RandomBytes(1000);
  Bytes decoded(raw.size());
  EXPECT_TRUE(ChunkCodec().Decode(Codec::kNone, 4, raw, decoded).ok());
  EXPECT_EQ(decoded, raw);
}

}  // namespace
}  // namespace sealpoint::internal
