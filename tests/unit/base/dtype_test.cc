// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/dtype.h"

#include <gtest/gtest.h>

#include <string_view>

namespace sealpoint {
namespace {

struct Frozen {
  unsigned value;
  std::string_view name;
  unsigned size_bytes;
};

// These ids, names and sizes are stored in files. A change makes existing files unreadable.
constexpr Frozen kFrozen[] = {
    {1, "bool", 1},       {2, "i8", 1},           {3, "i16", 2},          {4, "i32", 4},
    {5, "i64", 8},        {6, "u8", 1},           {7, "u16", 2},          {8, "u32", 4},
    {9, "u64", 8},        {10, "f16", 2},         {11, "bf16", 2},        {12, "f32", 4},
    {13, "f64", 8},       {14, "c64", 8},         {15, "c128", 16},       {16, "f8_e4m3fn", 1},
    {17, "f8_e5m2", 1},   {18, "f8_e4m3fnuz", 1}, {19, "f8_e5m2fnuz", 1}, {20, "f8_e8m0fnu", 1},
    {21, "f4_e2m1x2", 1}, {22, "c32", 4},
};

TEST(DTypeRegistry, HasTheFrozenValuesNamesAndSizes) {
  for (const Frozen& frozen : kFrozen) {
    const auto dtype = static_cast<DType>(frozen.value);
    EXPECT_EQ(DTypeName(dtype), frozen.name) << frozen.value;
    EXPECT_EQ(DTypeSizeBytes(dtype), frozen.size_bytes) << frozen.name;
  }
}

TEST(DTypeRegistry, HoldsNothingElse) {
  ASSERT_EQ(RegisteredDTypes().size(), std::size(kFrozen));
  for (std::size_t i = 0; i < std::size(kFrozen); ++i) {
    EXPECT_EQ(static_cast<unsigned>(RegisteredDTypes()[i].dtype), kFrozen[i].value);
  }
}

TEST(DTypeRegistry, EnumeratorsMeanWhatTheyAreCalled) {
  EXPECT_EQ(DTypeName(DType::kBool), "bool");
  EXPECT_EQ(DTypeName(DType::kBf16), "bf16");
  EXPECT_EQ(DTypeName(DType::kComplex128), "c128");
  EXPECT_EQ(DTypeName(DType::kF8E4M3Fn), "f8_e4m3fn");
  EXPECT_EQ(DTypeName(DType::kF4E2M1X2), "f4_e2m1x2");
}

TEST(DTypeRegistry, FindsByName) {
  for (const DTypeInfo& info : RegisteredDTypes()) {
    const auto found = FindDType(info.name);
    ASSERT_TRUE(found) << info.name;
    EXPECT_EQ(found->dtype, info.dtype);
  }
}

TEST(DTypeRegistry, DoesNotKnowZeroNorTheNextId) {
  for (const unsigned value : {0u, 23u, 0xffffu}) {
    const auto dtype = static_cast<DType>(value);
    EXPECT_FALSE(FindDType(dtype)) << value;
    EXPECT_EQ(DTypeName(dtype), "unknown");
    EXPECT_EQ(DTypeSizeBytes(dtype), 0u);
  }
}

TEST(DTypeRegistry, DoesNotGuessNames) {
  EXPECT_FALSE(FindDType(""));
  EXPECT_FALSE(FindDType("BF16"));
  EXPECT_FALSE(FindDType("bf1"));
  EXPECT_FALSE(FindDType("unknown"));
}

}  // namespace
}  // namespace sealpoint
