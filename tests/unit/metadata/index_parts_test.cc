// SPDX-License-Identifier: Apache-2.0
#include "lib/metadata/index_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/wire.h"
#include "lib/metadata/index_parts_codec.h"
#include "lib/metadata/merge_manifests.h"
#include "tests/support/container/encode_manifest.h"
#include "tests/support/container/rule_matchers.h"

namespace sealpoint::internal::metadata {
namespace {

using sealpoint::testing::EncodeManifest;
using sealpoint::testing::ManifestShard;
using sealpoint::testing::ManifestTensor;
using ::testing::HasSubstr;

constexpr std::uint64_t kChunkSize = 4096;

ManifestTensor Bytewise(const std::string& name, Shape shape, std::vector<ManifestShard> shards) {
  return {.name = name,
          .dtype = DType::kUInt8,
          .element_size = 1,
          .chunk_size = kChunkSize,
          .shape = std::move(shape),
          .shards = std::move(shards)};
}

Region Rows(std::uint64_t begin, std::uint64_t end) {
  return Region::Of({.offset = {begin, 0}, .extent = {end - begin, 8}});
}

BlobId IdOf(std::uint8_t number) {
  BlobId id;
  id.bytes[0] = std::byte{number};
  return id;
}

// A blob as its summary shows it. All shards are one chunk.
struct Blob {
  BlobPin pin{};
  Metadata manifest;
};

Blob MakeBlob(std::uint8_t number, std::vector<ManifestTensor> tensors,
              std::vector<ManifestObject> objects = {}) {
  std::uint32_t records = 0;
  for (ManifestTensor& tensor : tensors) {
    for (ManifestShard& shard : tensor.shards) shard.first_record = records++;
  }
  for (ManifestObject& object : objects) {
    if (object.size != 0) object.first_record = records++;
  }
  const auto bytes = std::make_shared<const Bytes>(EncodeManifest(tensors, objects));
  const BlobPin pin{.id = IdOf(number),
                    .file_size = 1 << 20,
                    .table_offset = 128,
                    .record_count = records,
                    .shard_count = records};
  return {pin, Metadata::DecodeManifest(bytes, *bytes, {records, records}, Limits()).value()};
}

// A grid, runs of a box, a list that is no grid, a scalar, an empty tensor, objects.
std::vector<Blob> UsualBlobs() {
  const Region box = Region::Of({.offset = {0, 0}, .extent = {8, 8}});
  const auto run = [&](std::uint64_t begin, std::uint64_t end) {
    Region region = box;
    region.run = {begin, end};
    return ManifestShard{.region = region};
  };
  const auto part = [](Box offset_and_extent) {
    return ManifestShard{.region = Region::Of(std::move(offset_and_extent))};
  };
  ManifestTensor placed = Bytewise("grid", {8, 8}, {{.region = Rows(0, 2)}});
  placed.placement = {"shard(dim 0, data)"};
  std::vector<Blob> blobs;
  blobs.push_back(
      MakeBlob(9,
               {placed, Bytewise("runs", {8, 8}, {run(0, 10)}),
                Bytewise("scalar", {}, {{.region = Region::Whole({})}}),
                Bytewise("list", {8, 8}, {part({{0, 0}, {3, 4}}), part({{3, 0}, {5, 4}})})},
               {{.name = "a", .media_type = "text/plain", .size = 5, .chunk_size = kChunkSize}}));
  blobs.push_back(MakeBlob(
      3, {Bytewise("grid", {8, 8}, {{.region = Rows(2, 8)}}),
          Bytewise("grid 2", {8, 8}, {{.region = Rows(0, 2)}}),
          Bytewise("list", {8, 8}, {part({{0, 4}, {8, 4}})}), Bytewise("empty", {0, 8}, {})}));
  blobs.push_back(MakeBlob(
      5,
      {Bytewise("runs", {8, 8}, {run(10, 64)}),
       Bytewise("grid 2", {8, 8}, {{.region = Rows(2, 8)}}), Bytewise("empty", {0, 8}, {})},
      {{.name = "b", .media_type = "text/plain", .size = 0, .chunk_size = kChunkSize}}));
  return blobs;
}

// What each of so many checks gets, one message per blob.
std::vector<std::vector<Bytes>> SendEntries(const std::vector<Blob>& blobs,
                                            const std::vector<BlobId>& ids, std::size_t checks) {
  std::vector<std::vector<Bytes>> received(checks, std::vector<Bytes>(blobs.size()));
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    const auto place = std::find(ids.begin(), ids.end(), blobs[i].pin.id);
    EncodeEntries(
        blobs[i].manifest, static_cast<std::uint32_t>(place - ids.begin()),
        [&](std::string_view name) -> Bytes& {
          return received[(name.size() * 7 + static_cast<std::uint8_t>(name[0])) % checks][i];
        });
  }
  return received;
}

std::vector<BlobPin> SortedPins(const std::vector<Blob>& blobs) {
  std::vector<BlobPin> pins;
  for (const Blob& blob : blobs) pins.push_back(blob.pin);
  std::sort(pins.begin(), pins.end(),
            [](const BlobPin& a, const BlobPin& b) { return a.id < b.id; });
  return pins;
}

std::vector<BlobId> IdsOf(const std::vector<BlobPin>& pins) {
  std::vector<BlobId> ids;
  for (const BlobPin& pin : pins) ids.push_back(pin.id);
  return ids;
}

const IndexAttributes& Facts() {
  static const IndexAttributes facts{
      .created_unix_ns = 7, .mesh = {{"data", 3}}, .provenance = {{"key", "value"}}};
  return facts;
}

Result<Bytes> JoinedIndex(const std::vector<Blob>& blobs, std::size_t checks) {
  const std::vector<BlobPin> pins = SortedPins(blobs);
  const std::vector<BlobId> ids = IdsOf(pins);
  std::vector<Bytes> parts;
  for (const auto& received : SendEntries(blobs, ids, checks)) {
    auto part = MergeEntries(received, ids, Limits());
    if (!part.ok()) return std::move(part).error();
    parts.push_back(std::move(part).value());
  }
  return JoinIndex(std::vector<ByteSpan>(parts.begin(), parts.end()), pins, Facts(), Limits());
}

Result<Bytes> IndexOfManifests(const std::vector<Blob>& blobs) {
  std::vector<BlobContribution> contributions;
  for (const Blob& blob : blobs) contributions.push_back({blob.pin, &blob.manifest});
  return EncodeIndex(contributions, Facts(), Limits());
}

TEST(ContentsExchange, JoinsTheBytesThatOneProcessWouldEncode) {
  const std::vector<Blob> blobs = UsualBlobs();
  const Bytes expected = IndexOfManifests(blobs).value();
  for (std::size_t checks = 1; checks < 9; ++checks) {
    const auto joined = JoinedIndex(blobs, checks);
    ASSERT_TRUE(joined.ok()) << joined.error().ToString();
    EXPECT_EQ(*joined, expected) << checks;
  }
}

TEST(ContentsExchange, TheOwnerFindsAHole) {
  const std::vector<Blob> blobs = {MakeBlob(1, {Bytewise("w", {8, 8}, {{.region = Rows(0, 7)}})})};
  const Status status = JoinedIndex(blobs, 2).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status, IndexOfManifests(blobs).status());
}

TEST(ContentsExchange, TheOwnerNamesTheBlobsThatOverlap) {
  const std::vector<Blob> blobs = {MakeBlob(1, {Bytewise("w", {8, 8}, {{.region = Rows(0, 5)}})}),
                                   MakeBlob(2, {Bytewise("w", {8, 8}, {{.region = Rows(4, 8)}})})};
  const Status status = JoinedIndex(blobs, 2).status();
  EXPECT_THAT(status.message(), HasSubstr(IdOf(1).ToHex()));
  EXPECT_EQ(status, IndexOfManifests(blobs).status());
}

// A scalar that was merged before must not answer for this one: neither has a number in its boxes.
TEST(ContentsExchange, TheOwnerNamesTheBlobsThatHoldOneScalar) {
  const ManifestTensor first = Bytewise("a", {}, {{.region = Region::Whole({})}});
  const ManifestTensor second = Bytewise("b", {}, {{.region = Region::Whole({})}});
  const std::vector<Blob> blobs = {MakeBlob(1, {first, second}), MakeBlob(2, {second})};
  const Status status = JoinedIndex(blobs, 1).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.place().tensor, "b");
  EXPECT_THAT(status.message(), HasSubstr(IdOf(2).ToHex()));
  EXPECT_EQ(status, IndexOfManifests(blobs).status());
}

TEST(ContentsExchange, TheOwnerFindsBlobsThatDisagree) {
  ManifestTensor other = Bytewise("w", {8, 8}, {{.region = Rows(4, 8)}});
  other.dtype = DType::kInt8;
  const std::vector<Blob> blobs = {MakeBlob(1, {Bytewise("w", {8, 8}, {{.region = Rows(0, 4)}})}),
                                   MakeBlob(2, {other})};
  const Status status = JoinedIndex(blobs, 2).status();
  EXPECT_THAT(status.message(), HasSubstr("dtype"));
  EXPECT_EQ(status, IndexOfManifests(blobs).status());
}

TEST(ContentsExchange, TheOwnerFindsAnObjectInTwoBlobs) {
  const ManifestObject object{.name = "o", .media_type = "t", .size = 1, .chunk_size = kChunkSize};
  const std::vector<Blob> blobs = {MakeBlob(1, {}, {object}), MakeBlob(2, {}, {object})};
  const Status status = JoinedIndex(blobs, 2).status();
  EXPECT_THAT(status.message(), HasSubstr("the object is in blob"));
  EXPECT_EQ(status, IndexOfManifests(blobs).status());
}

TEST(ContentsExchange, TheCommitterRefusesABlobTwice) {
  const std::vector<BlobPin> pins = {{.id = IdOf(1)}, {.id = IdOf(1)}};
  const Status status = JoinIndex({}, pins, Facts(), Limits()).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("twice"));
}

TEST(ContentsExchange, TheCommitterKeepsTheLimits) {
  const std::vector<Blob> blobs = UsualBlobs();
  const std::vector<BlobPin> pins = SortedPins(blobs);
  const std::vector<BlobId> ids = IdsOf(pins);
  const Bytes part = MergeEntries(SendEntries(blobs, ids, 1)[0], ids, Limits()).value();
  const std::vector<ByteSpan> parts = {part};
  EXPECT_EQ(JoinIndex(parts, pins, Facts(), {.shard_count_max = 9}).status().code(),
            Code::kLimitExceeded);
  EXPECT_TRUE(JoinIndex(parts, pins, Facts(), {.shard_count_max = 10}).ok());
  EXPECT_EQ(JoinIndex(parts, pins, Facts(), {.blob_count_max = 2}).status().code(),
            Code::kLimitExceeded);
  EXPECT_EQ(JoinIndex(parts, pins, Facts(), {.index_size_max_bytes = 100}).status().code(),
            Code::kLimitExceeded);
}

// Every cut of a message is noticed, by the owner as by the committer.
TEST(ContentsExchange, RefusesTruncatedMessages) {
  const std::vector<Blob> blobs = {MakeBlob(1, {Bytewise("w", {8, 8}, {{.region = Rows(0, 8)}})})};
  const std::vector<BlobPin> pins = SortedPins(blobs);
  const std::vector<BlobId> ids = IdsOf(pins);
  const Bytes message = SendEntries(blobs, ids, 1)[0][0];
  for (std::size_t size = 1; size < message.size(); ++size) {
    const std::vector<Bytes> received = {
        Bytes(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(size))};
    EXPECT_EQ(MergeEntries(received, ids, Limits()).status().code(), Code::kComm) << size;
  }
  const Bytes part = MergeEntries(std::vector<Bytes>{message}, ids, Limits()).value();
  for (std::size_t size = 1; size < part.size(); ++size) {
    const std::vector<ByteSpan> parts = {ByteSpan(part).first(size)};
    EXPECT_EQ(JoinIndex(parts, pins, Facts(), Limits()).status().code(), Code::kComm) << size;
  }
}

TEST(ContentsExchange, RefusesABlobThatIsNotThere) {
  const std::vector<Blob> blobs = {MakeBlob(1, {Bytewise("w", {8, 8}, {{.region = Rows(0, 8)}})})};
  std::vector<Bytes> received(1);
  EncodeEntries(blobs[0].manifest, 1, [&](std::string_view) -> Bytes& { return received[0]; });
  EXPECT_EQ(MergeEntries(received, std::vector<BlobId>{IdOf(1)}, Limits()).status().code(),
            Code::kComm);
}

TEST(ContentsExchange, RefusesAnObjectInABlobThatIsNotThere) {
  const std::vector<Blob> blobs = {
      MakeBlob(1, {}, {{.name = "o", .media_type = "t", .size = 1, .chunk_size = kChunkSize}})};
  const auto merge = [&](std::uint32_t blob) {
    std::vector<Bytes> received(1);
    EncodeEntries(blobs[0].manifest, blob, [&](std::string_view) -> Bytes& { return received[0]; });
    return MergeEntries(received, std::vector<BlobId>{IdOf(1)}, Limits()).status();
  };
  EXPECT_TRUE(merge(0).ok());
  EXPECT_EQ(merge(1).code(), Code::kComm);
}

using Numbers = std::vector<std::uint64_t>;

// The entry of a tensor of two dimensions with one shard.
Status DecodeEntry(const Numbers& boxes, const Numbers& runs) {
  Bytes bytes;
  WireWriter out(bytes);
  out.PutAll(Numbers{1, 1, 12});  // dtype, element size, logarithm of the chunk size
  out.PutAll(Numbers{0, 0, 0});   // no fingerprint
  out.Put(Numbers{8, 8});         // the shape
  out.Put("");                    // no attributes
  out.PutAll(Numbers{0, 0});      // texts of the placement, the blob
  out.Put(boxes);
  out.Put(runs);
  out.Put(Numbers{0});  // the first record
  return DecodeTensorEntry({.name = "w", .rest = bytes}, 1).status();
}

TEST(ContentsExchange, RefusesListsWhoseLengthsDisagree) {
  EXPECT_TRUE(DecodeEntry({0, 0, 8, 8}, {}).ok());
  EXPECT_TRUE(DecodeEntry({0, 0, 8, 8}, {0, 10}).ok());
  EXPECT_EQ(DecodeEntry({0, 0, 8}, {}).code(), Code::kComm);
  EXPECT_EQ(DecodeEntry({0, 0, 8, 8}, {0}).code(), Code::kComm);
}

TEST(ContentsExchange, RefusesMoreCutsOfRunsThanThereAre) {
  const auto decode = [](const Numbers& counts) {
    Bytes bytes;
    WireWriter out(bytes);
    out.PutSequence(Numbers{8});  // the shape
    out.Put(std::uint64_t{1});    // a grid
    out.PutSequence(Numbers{0});  // the cuts of its one dimension
    out.PutSequence(counts);
    out.PutSequence(Numbers{0, 4});
    return DecodeGeometry(AsText(bytes), 2).status();
  };
  EXPECT_TRUE(decode({2}).ok());
  EXPECT_TRUE(decode({1, 1}).ok());
  EXPECT_EQ(decode({3}).code(), Code::kComm);
  EXPECT_EQ(decode({1, 2}).code(), Code::kComm);
}

}  // namespace
}  // namespace sealpoint::internal::metadata
