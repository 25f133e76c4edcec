// SPDX-License-Identifier: Apache-2.0
#include "lib/base/wire.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace sealpoint::internal {
namespace {

Id128 SomeId() { return Id128::FromHex("000102030405060708090a0b0c0d0e0f").value(); }

Bytes OneOfEach() {
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(std::uint64_t{1} << 63);
  out.Put("text");
  out.Put(SomeId());
  out.Put(std::vector<std::uint64_t>{7, 8});
  return bytes;
}

TEST(WireTest, ReadsWhatWasWritten) {
  const Bytes bytes = OneOfEach();
  WireReader in(bytes);
  EXPECT_EQ(in.Number().value(), std::uint64_t{1} << 63);
  EXPECT_EQ(in.Text().value(), "text");
  EXPECT_EQ(in.Id<Id128>().value(), SomeId());
  EXPECT_EQ(in.Numbers().value(), (std::vector<std::uint64_t>{7, 8}));
  EXPECT_TRUE(in.at_end());
}

// LEB128; the second is the example of the DWARF standard.
TEST(WireTest, SmallNumbersTakeFewBytes) {
  const auto encoded = [](std::uint64_t number) {
    Bytes bytes;
    WireWriter(bytes).Put(number);
    return bytes;
  };
  EXPECT_EQ(encoded(0x7f), Bytes{std::byte{0x7f}});
  EXPECT_EQ(encoded(12857), (Bytes{std::byte{0xb9}, std::byte{0x64}}));
  EXPECT_EQ(encoded(~std::uint64_t{0}).size(), 10u);
}

TEST(WireTest, EveryWidthComesBack) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    for (const std::uint64_t number : {std::uint64_t{1} << bit, (std::uint64_t{1} << bit) - 1}) {
      Bytes bytes;
      WireWriter(bytes).Put(number);
      WireReader in(bytes);
      EXPECT_EQ(in.Number().value(), number);
      EXPECT_TRUE(in.at_end());
    }
  }
}

TEST(WireTest, RefusesANumberOfMoreThan64Bits) {
  Bytes ten(9, std::byte{0xff});
  ten.push_back(std::byte{1});
  EXPECT_EQ(WireReader(ten).Number().value(), ~std::uint64_t{0});
  ten.back() = std::byte{2};
  EXPECT_EQ(WireReader(ten).Number().status().code(), Code::kComm);
  Bytes eleven(10, std::byte{0x80});
  eleven.push_back(std::byte{0});
  EXPECT_EQ(WireReader(eleven).Number().status().code(), Code::kComm);
}

// Every cut of the message is noticed by one of the reads.
TEST(WireTest, RefusesEveryTruncation) {
  const Bytes bytes = OneOfEach();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    WireReader in(ByteSpan(bytes).first(size));
    const bool all_read =
        in.Number().ok() && in.Text().ok() && in.Id<Id128>().ok() && in.Numbers().ok();
    EXPECT_FALSE(all_read) << size;
  }
}

TEST(WireTest, RefusesTheBeginningOfAnId) {
  EXPECT_EQ(WireReader(Bytes(sizeof(Id128::bytes) - 1)).Id<Id128>().status().code(), Code::kComm);
}

TEST(WireTest, SequencesComeBack) {
  const std::vector<std::vector<std::uint64_t>> lists = {
      {},
      {5},
      {0, 128, 256, 384},
      {3, 3, 3, 3, 3},
      {9, 6, 3, 0},
      {1, 2, 4, 8, 16, 32, 64},
      {0, 1, 2, 3, 4, 5, 6, 7, 100, 101, 102, 103, 104, 105, 106, 107}};
  for (const auto& list : lists) {
    Bytes bytes;
    WireWriter(bytes).PutSequence(list);
    WireReader in(bytes);
    EXPECT_EQ(in.Sequence(list.size()).value(), list);
    EXPECT_TRUE(in.at_end());
  }
}

TEST(WireTest, EqualStepsTakeTheSameRoomHoweverMany) {
  std::vector<std::uint64_t> list;
  for (std::uint64_t i = 0; i < 1000; ++i) list.push_back(8 * i);
  Bytes bytes;
  WireWriter(bytes).PutSequence(list);
  EXPECT_LE(bytes.size(), 5 * sizeof(std::uint64_t));
}

TEST(WireTest, RefusesASequenceAboveTheGivenCountWithoutAllocating) {
  Bytes bytes;
  WireWriter out(bytes);
  for (const std::uint64_t number : {std::uint64_t{1} << 60, std::uint64_t{1}, std::uint64_t{0},
                                     std::uint64_t{1}, std::uint64_t{1} << 60}) {
    out.Put(number);
  }
  EXPECT_EQ(WireReader(bytes).Sequence(1000).status().code(), Code::kComm);
}

TEST(WireTest, RefusesEveryTruncationOfASequence) {
  for (const std::vector<std::uint64_t>& list :
       {std::vector<std::uint64_t>{1, 2, 4, 8}, std::vector<std::uint64_t>{1, 2, 3, 4, 5}}) {
    Bytes bytes;
    WireWriter(bytes).PutSequence(list);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(WireReader(ByteSpan(bytes).first(size)).Sequence(9).ok()) << size;
    }
  }
}

TEST(WireTest, RefusesAStretchThatIsEmptyOrTooLong) {
  for (const std::uint64_t stretch : {std::uint64_t{0}, std::uint64_t{6}}) {
    Bytes bytes;
    WireWriter out(bytes);
    out.Put(std::uint64_t{5});
    out.Put(std::uint64_t{2});
    out.PutAll(std::vector<std::uint64_t>{0, 1, stretch});
    out.PutAll(std::vector<std::uint64_t>{0, 1, 5});
    EXPECT_EQ(WireReader(bytes).Sequence(9).status().code(), Code::kComm) << stretch;
  }
}

TEST(WireTest, RefusesATextLongerThanTheMessage) {
  Bytes bytes;
  WireWriter(bytes).Put(~std::uint64_t{0});
  EXPECT_EQ(WireReader(bytes).Text().status().code(), Code::kComm);
}

TEST(WireTest, RefusesACountTheMessageCannotHoldWithoutAllocating) {
  Bytes bytes;
  WireWriter(bytes).Put(std::uint64_t{1} << 60);
  EXPECT_EQ(WireReader(bytes).Numbers().status().code(), Code::kComm);
  WireWriter(bytes).Put(std::uint64_t{0});  // no stretches
  EXPECT_EQ(WireReader(bytes).Sequence(std::uint64_t{1} << 61).status().code(), Code::kComm);
}

}  // namespace
}  // namespace sealpoint::internal
