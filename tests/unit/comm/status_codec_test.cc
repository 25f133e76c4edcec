// SPDX-License-Identifier: Apache-2.0
#include "lib/comm/status_codec.h"

#include <gtest/gtest.h>

#include <string>

namespace sealpoint::internal::comm {
namespace {

Status FullStatus() {
  return Status(Status(Code::kCorrupt, "header digest differs")
                    .AtRule("R-HDR-05")
                    .AtPath("ckpt/COMMIT")
                    .AtOffset(~std::uint64_t{0})
                    .AtTensor("layers.0.w")
                    .AtRank(7, "node-3"));
}

TEST(StatusCodec, KeepsEveryPart) {
  EXPECT_EQ(DecodeStatus(EncodeStatus(FullStatus())), FullStatus());
}

TEST(StatusCodec, KeepsTheObject) {
  const Status status = Status(Status(Code::kNotFound, "absent").AtObject("rng"));
  EXPECT_EQ(DecodeStatus(EncodeStatus(status)), status);
}

TEST(StatusCodec, KeepsThatTheOutcomeIsUnknown) {
  const Status unknown = FullStatus().WithUnknownOutcome();
  const auto decoded = DecodeStatus(EncodeStatus(unknown));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_TRUE(decoded->has_unknown_outcome());
  EXPECT_EQ(*decoded, unknown);
  EXPECT_NE(*decoded, FullStatus());
}

TEST(StatusCodec, KeepsAbsentPartsAbsent) {
  const Status bare(Code::kIo, "");
  const auto decoded = DecodeStatus(EncodeStatus(bare));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, bare);
  EXPECT_FALSE(decoded->place().offset.has_value());
  EXPECT_FALSE(decoded->place().rank.has_value());
}

TEST(StatusCodec, KeepsSuccess) { EXPECT_EQ(DecodeStatus(EncodeStatus(Status())), Status()); }

TEST(StatusCodec, KeepsEveryCode) {
  for (int code = 1; code <= static_cast<int>(Code::kInternal); ++code) {
    const Status status(static_cast<Code>(code), "m");
    EXPECT_EQ(DecodeStatus(EncodeStatus(status)), status) << code;
  }
}

TEST(StatusCodec, CutsALongText) {
  const Status status(Code::kIo, std::string(100'000, 'x'));
  const auto decoded = DecodeStatus(EncodeStatus(status));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->message(), std::string(65536, 'x'));
}

TEST(StatusCodec, RefusesEveryTruncation) {
  const Bytes encoded = EncodeStatus(FullStatus());
  for (std::size_t length = 0; length < encoded.size(); ++length) {
    EXPECT_FALSE(DecodeStatus(ByteSpan(encoded).first(length)).has_value()) << length;
  }
}

TEST(StatusCodec, RefusesBytesBehindTheEnd) {
  Bytes encoded = EncodeStatus(FullStatus());
  encoded.push_back(std::byte{0});
  EXPECT_FALSE(DecodeStatus(encoded).has_value());
}

TEST(StatusCodec, RefusesAnUnknownCode) {
  Bytes encoded = EncodeStatus(FullStatus());
  encoded[0] = std::byte{200};
  EXPECT_FALSE(DecodeStatus(encoded).has_value());
}

TEST(StatusCodec, RefusesUnknownParts) {
  Bytes encoded = EncodeStatus(FullStatus());
  encoded[1] |= std::byte{8};
  EXPECT_FALSE(DecodeStatus(encoded).has_value());
}

TEST(StatusCodec, RefusesARankThatIsNoInt) {
  Bytes encoded = EncodeStatus(FullStatus());
  encoded[14] = std::byte{1};
  EXPECT_FALSE(DecodeStatus(encoded).has_value());
}

TEST(StatusCodec, RefusesATextThatIsTooLong) {
  Bytes encoded = EncodeStatus(Status(Code::kIo, std::string(65536, 'x')));
  encoded[18] = std::byte{1};  // one more than the limit
  encoded.push_back(std::byte{0});
  EXPECT_FALSE(DecodeStatus(encoded).has_value());
}

}  // namespace
}  // namespace sealpoint::internal::comm
