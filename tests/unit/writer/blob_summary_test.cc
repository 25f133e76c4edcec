// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "lib/format/constants.h"
#include "lib/format/fields.h"
#include "lib/writer/blob_summary_parts.h"
#include "sealpoint/blob_writer.h"
#include "tests/support/container/format_surgery.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"

// The summary of a blob comes from another process: its three parts are checked together.

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

using format::kHeaderSize;
using format::kTrailerSize;

struct Parts {
  Bytes header;
  Bytes trailer;
  Bytes manifest;
};

Parts MakeParts(const MiniHooks& hooks = {}) {
  MiniTensor tensor{.name = "w", .dtype = DType::kUInt8, .shape = {5}};
  tensor.shards.push_back({.region = Slice(0, 5), .bytes = NoiseBytes(1, 5)});
  MiniContainer container = BuildMini({.tensors = {tensor}, .hooks = hooks});
  const Bytes& file = container.blob(0);
  const format::BlobSections sections = container.blobs.at(0).sections;
  const auto part = [&](std::uint64_t begin, std::uint64_t end) {
    return Bytes(file.begin() + static_cast<std::ptrdiff_t>(begin),
                 file.begin() + static_cast<std::ptrdiff_t>(end));
  };
  return {.header = part(0, kHeaderSize),
          .trailer = part(sections.trailer, sections.trailer + kTrailerSize),
          .manifest = part(sections.manifest, sections.manifest_end)};
}

Status Check(const Parts& parts, const Limits& limits = {}) {
  const Bytes bytes =
      internal::writer::JoinSummaryParts(parts.header, parts.trailer, parts.manifest);
  return BlobSummary::Deserialize(bytes, limits).status();
}

MiniHooks ChangeTrailer(std::function<void(format::Trailer&)> change) {
  MiniHooks hooks;
  hooks.trailer = [change](int, format::Trailer& trailer) { change(trailer); };
  return hooks;
}

TEST(BlobSummaryTest, PartsOfOneBlobAreASummary) { EXPECT_TRUE(Check(MakeParts()).ok()); }

TEST(BlobSummaryTest, RefusesAnExtensionThatNothingAnnounces) {
  MiniHooks hooks;
  hooks.trailer_bytes = [](int, Bytes& trailer) {
    trailer[format::TrailerFields::kExtension.at] = std::byte{1};
    ResealTrailer(trailer);
  };
  EXPECT_THAT(Check(MakeParts(hooks)), FailsRule(Code::kUnsupported, "R-HDR-06"));
}

TEST(BlobSummaryTest, RefusesATrailerOfAnotherBlob) {
  const MiniHooks hooks =
      ChangeTrailer([](auto& trailer) { trailer.blob = MiniSpec::MakeId<BlobId>(0x55); });
  EXPECT_THAT(Check(MakeParts(hooks)), FailsRule(Code::kCorrupt, "R-BLB-03"));
}

TEST(BlobSummaryTest, RefusesATrailerThatPinsAnotherHeader) {
  const MiniHooks hooks =
      ChangeTrailer([](auto& trailer) { trailer.header_digest = MiniSpec::MakeId<Digest>(1); });
  EXPECT_THAT(Check(MakeParts(hooks)), FailsRule(Code::kCorrupt, "R-BLB-03"));
}

TEST(BlobSummaryTest, RefusesATrailerThatPinsAnotherManifest) {
  const MiniHooks hooks =
      ChangeTrailer([](auto& trailer) { trailer.manifest_digest = MiniSpec::MakeId<Digest>(1); });
  EXPECT_THAT(Check(MakeParts(hooks)), FailsRule(Code::kCorrupt, "R-BLB-06"));
}

// The file's sections are found by this size, and its padding hides a byte more.
TEST(BlobSummaryTest, RefusesATrailerThatGivesTheManifestAnotherSize) {
  const MiniHooks hooks = ChangeTrailer([](auto& trailer) { trailer.manifest_size += 1; });
  EXPECT_THAT(Check(MakeParts(hooks)), FailsRule(Code::kCorrupt, "R-BLB-06"));
}

TEST(BlobSummaryTest, TooShortIsToldFromAMissingManifest) {
  Parts parts = MakeParts();
  parts.manifest.clear();
  EXPECT_THAT(Check(parts), FailsRule(Code::kCorrupt, "R-BLB-06"));
  parts.trailer.pop_back();
  const Status status = Check(parts);
  EXPECT_THAT(status, HasCode(Code::kCorrupt));
  EXPECT_THAT(status.message(), ::testing::HasSubstr("expected at least 384"));
}

}  // namespace
}  // namespace sealpoint::testing
