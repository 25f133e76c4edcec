// SPDX-License-Identifier: Apache-2.0
#include "lib/digest/xxh3.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sealpoint::internal::digest {
namespace {

// Around the lengths where XXH3 changes its method, and around a block.
constexpr std::size_t kLengths[] = {0,   1,    16,   17,   128,  129,  240,
                                    241, 1023, 1024, 1025, 4096, 70001};

using Value = std::array<unsigned char, 16>;

std::vector<unsigned char> Noise(std::size_t size) {
  std::vector<unsigned char> bytes(size);
  std::uint64_t state = 1;
  for (unsigned char& byte : bytes) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<unsigned char>(state >> 56);
  }
  return bytes;
}

std::vector<const Xxh3*> Supported() {
  std::vector<const Xxh3*> variants;
  for (const Xxh3* const* next = SupportedXxh3(); *next != nullptr; ++next) {
    variants.push_back(*next);
  }
  return variants;
}

Value HashInParts(const Xxh3& xxh3, const std::vector<unsigned char>& bytes, std::size_t part) {
  struct alignas(kXxh3StateAlignment) Block {
    std::byte bytes[kXxh3StateAlignment];
  };
  std::vector<Block> state(xxh3.state_size / sizeof(Block));
  xxh3.reset(state.data());
  for (std::size_t at = 0; at < bytes.size(); at += part) {
    xxh3.update(state.data(), bytes.data() + at, std::min(part, bytes.size() - at));
  }
  Value value{};
  xxh3.finish(state.data(), value.data());
  return value;
}

TEST(Xxh3, EveryVariantOfThisProcessorGivesTheSameValues) {
  const std::vector<const Xxh3*> variants = Supported();
  ASSERT_EQ(variants.front(), &kXxh3Baseline);
  EXPECT_EQ(variants.back(), &FastestXxh3());
  for (const std::size_t size : kLengths) {
    const std::vector<unsigned char> bytes = Noise(size);
    Value expected{};
    kXxh3Baseline.hash(bytes.data(), size, expected.data());
    for (const Xxh3* xxh3 : variants) {
      Value value{};
      xxh3->hash(bytes.data(), size, value.data());
      EXPECT_EQ(value, expected) << size << " bytes at once";
      EXPECT_EQ(HashInParts(*xxh3, bytes, 333), expected) << size << " bytes in parts";
    }
  }
}

}  // namespace
}  // namespace sealpoint::internal::digest
