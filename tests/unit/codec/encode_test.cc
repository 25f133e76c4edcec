// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zstd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "lib/codec/chunk_codec.h"

namespace sealpoint::internal::codec {
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
  EXPECT_EQ(CodecName(Codec::kChanges), "changes");
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
    for (const Codec id : {Codec::kZstd, Codec::kByteSplitZstd}) {
      const Bytes stored = Encoded(codec, id, raw, level);
      Bytes decoded(raw.size());
      const Status status = codec.Decode(id, 4, stored, decoded);
      EXPECT_TRUE(status.ok()) << level << ": " << status.ToString();
    }
  }
}

// The preset of the byte split has a window of 128 KiB; of a smaller chunk it is no larger than
// that.
TEST(Encode, KeepsTheWindowWithinASmallChunk) {
  ChunkCodec codec;
  for (const std::size_t size : {4096u, 5000u, 70000u, 131072u, 131076u}) {
    const Bytes raw(size);
    Bytes decoded(size);
    const Bytes stored = Encoded(codec, Codec::kByteSplitZstd, raw);
    EXPECT_TRUE(codec.Decode(Codec::kByteSplitZstd, 4, stored, decoded).ok()) << size;
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

// 0.842 of the bytes with the parameters that zstd has for its level 1.
TEST(Encode, HasAPresetThatIsSmallerThanTheLevelsOfZstd) {
  ChunkCodec codec;
  const Bytes raw = Weights(1 << 20);
  const auto ratio = [&](int level) {
    return static_cast<double>(Encoded(codec, Codec::kByteSplitZstd, raw, level).size()) /
           static_cast<double>(raw.size());
  };
  EXPECT_LT(ratio(1), 0.838);
  EXPECT_LT(ratio(1), ratio(2));
}

TEST(Encode, RefusesALevelThatZstdDoesNotHave) {
  ChunkCodec codec;
  Bytes out(ChunkCodec::EncodedSizeBound(10));
  const auto result = codec.Encode(Codec::kZstd, 23, 1, Bytes(10), out);
  EXPECT_EQ(result.status().code(), Code::kInvalidArgument);
}

TEST(Encode, TakesTheLowestAndTheHighestLevelAndNoneBelow) {
  ChunkCodec codec;
  const Bytes raw(4000, std::byte{0x5a});
  Bytes out(ChunkCodec::EncodedSizeBound(raw.size()));
  EXPECT_TRUE(codec.Encode(Codec::kZstd, ZSTD_minCLevel(), 1, raw, out).ok());
  EXPECT_TRUE(codec.Encode(Codec::kZstd, ZSTD_maxCLevel(), 1, raw, out).ok());
  EXPECT_EQ(codec.Encode(Codec::kZstd, ZSTD_minCLevel() - 1, 1, raw, out).status().code(),
            Code::kInvalidArgument);
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

TEST(Decode, NeedsNothingOfTheEncoder) {
  ChunkCodec encoder;
  const Bytes raw(4003, std::byte{0x5a});
  const Bytes stored = Encoded(encoder, Codec::kByteSplitZstd, raw);
  Bytes decoded(raw.size());
  EXPECT_EQ(ChunkCodec().Decode(Codec::kByteSplitZstd, 4, stored, decoded), Status());
  EXPECT_EQ(decoded, raw);
}

TEST(Decode, SaysWhatIsWrongWithASplitFrame) {
  Bytes raw(4000, std::byte{0x5a});
  raw[0] = std::byte{1};
  ChunkCodec codec;
  Bytes stored = Encoded(codec, Codec::kByteSplitZstd, raw);
  for (std::size_t i = 7; i < stored.size(); ++i) {
    Bytes damaged = stored;
    damaged[i] ^= std::byte{0xff};
    Bytes decoded(raw.size());
    EXPECT_NE(std::pair(codec.Decode(Codec::kByteSplitZstd, 4, damaged, decoded).ok(), decoded),
              std::pair(true, raw))
        << i;
  }
}

#if !defined(SEALPOINT_TEST_SANITIZED)  // sanitizers take more address space than is left
// Runs `step` in a process in which large allocations fail; it must return an error.
template <typename Step>
[[noreturn]] void ExitWithoutMemory(const Step& step) {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_AS, &none);
  std::_Exit(step() == Code::kOk ? 1 : 0);
}

template <typename Step>
void ExpectErrorWithoutMemory(const Step& step) {
  EXPECT_EXIT(ExitWithoutMemory(step), ::testing::ExitedWithCode(0), "");
}

TEST(DecodeDeathTest, FailsInOrderWhereThereIsNoMemoryForTheSplit) {
  ChunkCodec codec;
  const Bytes raw(64 * kMiB, std::byte{0x5a});
  const Bytes stored = Encoded(codec, Codec::kByteSplitZstd, raw);
  ChunkCodec fresh;
  Bytes small(4000);
  const Bytes small_stored = Encoded(codec, Codec::kZstd, small);
  ASSERT_TRUE(fresh.Decode(Codec::kZstd, 4, small_stored, small).ok());  // its context is there
  Bytes decoded(raw.size());
  ExpectErrorWithoutMemory([&] {
    const Status status = fresh.Decode(Codec::kByteSplitZstd, 4, stored, decoded);
    return status.code() == Code::kIo ? Code::kIo : Code::kOk;
  });
}

TEST(EncodeDeathTest, FailsInOrderWhereThereIsNoMemory) {
  const Bytes raw(64 * kMiB, std::byte{0x5a});
  Bytes out(ChunkCodec::EncodedSizeBound(raw.size()));
  for (const Codec id : {Codec::kByteSplitZstd, Codec::kZstd}) {
    ChunkCodec codec;
    Bytes small(4000);
    ASSERT_FALSE(Encoded(codec, Codec::kZstd, small).empty());
    ExpectErrorWithoutMemory([&] {
      return id == Codec::kZstd ? codec.Encode(id, 19, 4, raw, out).status().code()
             : codec.Encode(id, 1, 4, raw, out).status().code() == Code::kIo ? Code::kIo
                                                                             : Code::kOk;
    });
  }
}
#endif

TEST(Decode, CopiesRawChunks) {
  const Bytes raw = RandomBytes(1000);
  Bytes decoded(raw.size());
  EXPECT_TRUE(ChunkCodec().Decode(Codec::kNone, 4, raw, decoded).ok());
  EXPECT_EQ(decoded, raw);
}

}  // namespace
}  // namespace sealpoint::internal::codec
