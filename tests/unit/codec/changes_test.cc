// SPDX-License-Identifier: Apache-2.0
//
// Codec 4 (spec/delta.md, section 2).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/endian.h"
#include "lib/codec/chunk_codec.h"
#include "tests/support/container/rule_matchers.h"

namespace sealpoint::internal::codec {
namespace {

using sealpoint::testing::FailsRule;

auto Corrupt(const char* rule) { return FailsRule(Code::kCorrupt, rule); }

Bytes NoiseOf(std::size_t size) {
  std::mt19937 engine(7);
  Bytes bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(engine());
  return bytes;
}

// `bytes` with one changed byte in about each `distance`-th element.
Bytes Changed(Bytes bytes, std::uint32_t element_size, unsigned distance) {
  std::mt19937 engine(distance);
  for (std::size_t at = 0; at < bytes.size(); at += element_size) {
    if (engine() % distance == 0) bytes[at + engine() % element_size] ^= std::byte{0x15};
  }
  return bytes;
}

Bytes Encoded(std::uint32_t element_size, const Bytes& raw, const Bytes& base) {
  Bytes out(ChunkCodec::EncodedSizeBound(raw.size()));
  out.resize(ChunkCodec().EncodeChanges(element_size, raw, base, out).value());
  return out;
}

TEST(Changes, AreMadeOfBasesOfEverySize) {
  for (const std::uint32_t element_size : {1U, 2U, 4U, 8U, 16U, 64U, 256U}) {
    for (const std::size_t elements : {1U, 3U, 31U, 33U, 255U, 256U, 257U, 4000U}) {
      for (const unsigned distance : {3U, 40U, 700U}) {
        const Bytes base = NoiseOf(elements * element_size);
        const Bytes raw = Changed(base, element_size, distance);
        const Bytes stored = Encoded(element_size, raw, base);
        if (stored.size() == raw.size()) continue;  // the changes take no less
        Bytes found = base;
        const Status status = ChunkCodec().ApplyChanges(element_size, stored, found);
        ASSERT_TRUE(status.ok()) << status.ToString();
        ASSERT_EQ(found, raw) << elements << " elements of " << element_size << ", 1 of "
                              << distance;
      }
    }
  }
}

TEST(Changes, OfNothingStoreNothing) {
  const Bytes raw = NoiseOf(10000);
  EXPECT_EQ(Encoded(2, raw, raw).size(), 0U);
  Bytes found = raw;
  EXPECT_TRUE(ChunkCodec().ApplyChanges(2, {}, found).ok());
  EXPECT_EQ(found, raw);
}

TEST(Changes, OfEverythingAreNotStoredAsSuch) {
  Bytes base = NoiseOf(10000);
  std::reverse(base.begin(), base.end());
  EXPECT_EQ(Encoded(1, NoiseOf(10000), base).size(), 10000U);
}

// The figure of the specification: 1 % of bf16 elements changed take 0.7 % of the bytes.
TEST(Changes, OfOnePerCentTakeLessThanOnePerCent) {
  const Bytes base = NoiseOf(1 << 20);
  const Bytes raw = Changed(base, 2, 100);
  EXPECT_LT(Encoded(2, raw, base).size(), raw.size() / 100);
}

Bytes Frame(const Bytes& list) {
  Bytes out(ZSTD_compressBound(list.size()));
  out.resize(ZSTD_compress(out.data(), out.size(), list.data(), list.size(), 1));
  return out;
}

Bytes List(std::uint32_t entries, std::uint32_t gaps_size, const std::vector<int>& rest) {
  Bytes list(8);
  StoreLe(list, 0, entries);
  StoreLe(list, 4, gaps_size);
  for (const int value : rest) list.push_back(static_cast<std::byte>(value));
  return list;
}

// Applies a list to a chunk of 300 elements of 2 bytes.
Status Apply(const Bytes& list) {
  Bytes bytes(600);
  return ChunkCodec().ApplyChanges(2, Frame(list), bytes);
}

TEST(Changes, EveryBrokenListIsCorrupt) {
  EXPECT_TRUE(Apply(List(2, 3, {255, 3, 0, 1, 2, 3, 4})).ok());
  EXPECT_TRUE(Apply(List(1, 2, {255, 44, 1, 2})).ok()) << "the last element";
  const std::vector<std::pair<std::string, Bytes>> broken = {
      {"no entry", List(0, 1, {0, 1, 2})},
      {"more entries than elements", List(301, 301, std::vector<int>(301 + 602))},
      {"fewer gaps than entries", List(2, 1, {0, 1, 2, 3, 4})},
      {"more gaps than there can be", List(1, 3, {255, 255, 0, 1, 2})},
      {"a byte missing", List(2, 2, {0, 0, 1, 2, 3})},
      {"a byte too many", List(2, 2, {0, 0, 1, 2, 3, 4, 5})},
      {"an entry behind the chunk", List(1, 2, {255, 45, 1, 2})},
      {"gaps of fewer entries", List(2, 3, {255, 0, 255, 1, 2, 3, 4})},
      {"gaps of more entries", List(2, 3, {0, 0, 0, 1, 2, 3, 4})},
      {"gaps without an end", List(1, 2, {0, 255, 1, 2})},
      {"too short for a list", Bytes(10)}};
  for (const auto& [what, list] : broken) {
    EXPECT_THAT(Apply(list), Corrupt("R-DLT-07")) << what;
  }
}

TEST(Changes, AFrameOfAnotherSizeIsRefusedBeforeMemoryIsTaken) {
  // A frame of 64 MiB of zeros has few bytes.
  Bytes huge(1 << 26);
  const Bytes frame = Frame(huge);
  huge = {};
  Bytes bytes(frame.size() + 600);
  const Status refused = ChunkCodec().ApplyChanges(1, frame, bytes);
  EXPECT_THAT(refused, Corrupt("R-DLT-07"));
  // The list itself, once decoded, would break the same rule.
  EXPECT_THAT(refused.ToString(), ::testing::HasSubstr("frame of a change list declares 67108864"));
  Bytes cut = Frame(List(2, 2, {0, 0, 1, 2, 3, 4}));
  cut.pop_back();
  Bytes few(600);
  EXPECT_THAT(ChunkCodec().ApplyChanges(2, cut, few), Corrupt("R-COD-06"));
}

}  // namespace
}  // namespace sealpoint::internal::codec
