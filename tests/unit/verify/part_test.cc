// SPDX-License-Identifier: Apache-2.0
//
// Parts of the chunks: each chunk, with the padding before it, is in exactly one of them.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "readers/verify/chunk_choice.h"
#include "tests/unit/verify/verify_fixture.h"

namespace sealpoint::testing {
namespace {

using internal::verify::PartOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Offsets = std::multiset<std::pair<std::string, std::uint64_t>>;

// Many chunks in many shards, which padding separates, in three blobs; besides what SmallSpec has.
MiniSpec ManyShards() {
  MiniSpec spec = SmallSpec();
  for (int i = 0; i < 40; ++i) {
    const Shape shape = {1000u + 977u * static_cast<unsigned>(i)};
    spec.tensors.push_back(CutTensor("t" + std::to_string(i), DType::kUInt8, shape,
                                     NoiseBytes(7, shape[0]), {Region::Whole(shape)}, {i % 3}));
  }
  return spec;
}

class PartTest : public VerifyFixture {
 protected:
  VerifyReport CheckPart(VerifyPart part, int threads = 1) {
    VerifyOptions options{.threads = threads, .part = part, .storage = storage_};
    options.on_violation = [this](const Status& violation) {
      found_.insert({violation.place().path, violation.place().offset.value_or(0)});
    };
    return Verify("ckpt", options).value();
  }
  // Damages each chunk, and the padding before it if there is any; says where that is found.
  Offsets DamageAll() {
    Offsets places;
    for (auto& [number, blob] : container_.blobs) {
      std::uint64_t before = 128;  // the header
      for (const internal::format::ChunkRecord& record : blob.records) {
        container_.blob(number)[record.offset + record.stored_size / 2] ^= std::byte{1};
        places.insert({BlobPath(number), record.offset});
        if (record.offset > before) {
          container_.blob(number)[record.offset - 1] ^= std::byte{1};
          places.insert({BlobPath(number), record.offset - 1});
        }
        before = record.offset + record.stored_size;
      }
    }
    StoreAgain();
    return places;
  }
  Offsets found_;
};

TEST_F(PartTest, TogetherTheyAreEverythingAndNothingTwice) {
  Store(ManyShards());
  const Offsets all = DamageAll();
  for (const std::uint32_t count : {1u, 2u, 3u, 7u, 64u, 1000u}) {
    found_.clear();
    for (std::uint32_t number = 1; number <= count; ++number) {
      CheckPart({number, count}, 1 + static_cast<int>(number % 3));
    }
    EXPECT_EQ(found_, all) << count;
  }
}

TEST_F(PartTest, BytesOfThePartsAreThoseOfAllChunks) {
  Store(ManyShards());
  const std::uint64_t structure = Check(VerifyLevel::kStructure).bytes_checked;
  const VerifyReport whole = Check();
  EXPECT_EQ(whole.bytes_checked, whole.total_bytes);
  EXPECT_EQ(whole.part, VerifyPart());
  std::uint64_t sum = 0;
  for (std::uint32_t number = 1; number <= 7; ++number) {
    const VerifyReport report = CheckPart({number, 7});
    EXPECT_EQ(report.verdict, Verdict::kCommitted);
    EXPECT_EQ(report.part, (VerifyPart{number, 7}));
    EXPECT_EQ(report.total_bytes, whole.total_bytes);
    EXPECT_EQ(report.bytes_known, 0u);
    EXPECT_GE(report.bytes_checked, structure);
    sum += report.bytes_checked - structure;
  }
  EXPECT_EQ(sum, whole.bytes_checked - structure);
}

TEST_F(PartTest, ProgressEndsAtItsTotal) {
  Store(ManyShards());
  PhaseEvent last;
  const VerifyOptions options{.part = {2, 3},
                              .storage = storage_,
                              .on_progress = [&](const PhaseEvent& now) { last = now; }};
  const VerifyReport report = Verify("ckpt", options).value();
  EXPECT_EQ(last.bytes_done, report.bytes_checked);
  EXPECT_EQ(last.bytes_total, report.bytes_checked);
}

// What is not a chunk is checked in each part.
TEST_F(PartTest, StructureIsInEachPart) {
  Store(ManyShards());
  container_.blob(1)[container_.blobs.at(1).sections.manifest] ^= std::byte{1};
  StoreAgain();
  for (std::uint32_t number = 1; number <= 5; ++number) {
    EXPECT_EQ(CheckPart({number, 5}).verdict, Verdict::kCorrupt);
  }
  EXPECT_EQ(found_.size(), 5u);
}

TEST_F(PartTest, PartsAreAboutEqual) {
  for (const std::uint64_t area : {std::uint64_t{1}, std::uint64_t{9}, std::uint64_t{1} << 40}) {
    const internal::metadata::BlobPin pin{.id = MiniSpec::MakeId<BlobId>(5),
                                          .table_offset = area + 128};
    for (const std::uint32_t count : {2u, 7u, 1u << 20}) {
      std::map<std::uint32_t, std::uint64_t> begins;
      for (std::uint64_t i = 0; i < 64; ++i) ++begins[PartOf(pin, 128 + area / 64 * i, count)];
      for (const auto& [part, times] : begins) {
        EXPECT_LT(part, count);
        if (area > 64) EXPECT_LE(times, 64 / count + 1);
      }
    }
  }
}

// Else the first part of many blobs of one chunk would be all of them.
TEST_F(PartTest, BlobsOfOneChunkAreInSeveralParts) {
  std::set<std::uint32_t> parts;
  for (std::uint8_t id = 1; id < 40; ++id) {
    parts.insert(PartOf({.id = MiniSpec::MakeId<BlobId>(id), .table_offset = 4096}, 128, 4));
  }
  EXPECT_EQ(parts.size(), 4u);
}

TEST_F(PartTest, OthersAreInvalidArguments) {
  Store(SmallSpec());
  for (const VerifyPart& part : {VerifyPart{0, 2}, VerifyPart{3, 2}, VerifyPart{0, 0},
                                 VerifyPart{1, VerifyPart::kCountMax + 1}}) {
    const Status error = Verify("ckpt", {.part = part, .storage = storage_}).status();
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("expected one from 1 to"));
  }
  for (const VerifyLevel level : {VerifyLevel::kFiles, VerifyLevel::kStructure}) {
    const Status error =
        Verify("ckpt", {.level = level, .part = {1, 2}, .storage = storage_}).status();
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("expected level full"));
  }
  EXPECT_THAT(CheckPart({VerifyPart::kCountMax, VerifyPart::kCountMax}).violations, IsEmpty());
}

}  // namespace
}  // namespace sealpoint::testing
