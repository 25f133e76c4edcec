// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "lib/base/endian.h"
#include "lib/format/constants.h"
#include "lib/format/fields.h"
#include "sealpoint/promote.h"
#include "tests/support/container/format_surgery.h"
#include "tests/support/container/rule_matchers.h"
#include "tests/unit/repack/repack_fixture.h"

namespace sealpoint::testing {
namespace {

using internal::format::HeaderFields;
using internal::format::MarkerFields;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

MiniSpec DraftSpec() {
  MiniSpec spec{.parent = MiniSpec::MakeId(0x11),
                .sequence = 4,
                .mesh = {{"dp", 2}},
                .provenance = {{"metric.loss", "1.5"}}};
  spec.tensors.push_back(
      CutTensor("w", DType::kF32, {3000}, NoiseBytes(1, 12000), {Region::Whole({3000})}));
  spec.objects.push_back({.name = "rng", .bytes = NoiseBytes(2, 900), .media_type = "a/b"});
  return spec;
}

// What a header of the draft had. The real ones, blobs and all, are in spec/fixtures.
void LowerHeader(MutableByteSpan header) {
  internal::StoreLe(header, HeaderFields::kVersion.at, internal::format::kDraftVersion);
  ResealHeader(header);
}

class DraftTest : public RepackTest {
 protected:
  DraftTest() {
    StoreFiles(*storage_, "good", source_.files);
    LowerHeader(MutableByteSpan(index()).first(internal::format::kHeaderSize));
    SealMarker();
    StoreFiles(*storage_, "from", source_.files);
  }

  Bytes& index() { return source_.index(); }
  void SealMarker() {
    PutDigest(source_.marker(), MarkerFields::kIndexDigest.at, ComputeDigest(index()));
    LowerHeader(source_.marker());
  }
  Result<RepackReport> Copy(const std::string& from = "from", CopyOptions options = {}) const {
    options.repack = Small(options.repack);
    return CopyCheckpoint({.from = from, .to = "to"}, options);
  }
  // What a copy of the draft says once this was done to its files.
  Status CopyOf(const std::function<void(std::map<std::string, Bytes>&)>& change) const {
    static int number = 0;
    const std::string changed = "changed" + std::to_string(number++);
    auto files = source_.files;
    change(files);
    StoreFiles(*storage_, changed, files);
    return Copy(changed).status();
  }

  MiniContainer source_ = BuildMini(DraftSpec());
};

TEST_F(DraftTest, ACopyIsOfThisVersion) {
  const auto report = Copy();
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_FALSE(report->is_identical);
  EXPECT_EQ(FindDamage(storage_, "to"), "");
  const auto good = Open("good");
  const auto copy = Open("to");
  EXPECT_EQ(ContentOf(*copy), ContentOf(*good));
  EXPECT_NE(copy->attempt(), good->attempt());
  EXPECT_EQ(copy->parent(), good->parent());
  EXPECT_EQ(copy->sequence(), 4u);
  EXPECT_EQ(copy->step(), good->step());
  EXPECT_EQ(copy->mesh(), good->mesh());
  EXPECT_THAT(copy->provenance(), Contains(Pair("metric.loss", "1.5")));
  EXPECT_THAT(copy->provenance(), Contains(Pair("repack.from", good->attempt().ToHex())));
  EXPECT_TRUE(Copy().value().was_committed);
}

TEST_F(DraftTest, NothingElseReadsIt) {
  const auto is_refused = [](const Status& status) {
    EXPECT_THAT(status, BreaksRule(Code::kUnsupported, "R-HDR-05", HeaderFields::kVersion.at));
    EXPECT_THAT(status.message(), AllOf(HasSubstr("format version is 0, this build reads 1"),
                                        HasSubstr("x converts it to version 1")));
  };
  is_refused(Checkpoint::Open("from", {.storage = storage_}).status());
  is_refused(MergeCheckpoints({"from"}, "to", {.repack = Small()}).status());
  is_refused(
      Promote({.from = "from", .to = "to"}, {.from_storage = storage_, .to_storage = storage_})
          .status());
}

TEST_F(DraftTest, ADryRunWritesNothing) {
  EXPECT_EQ(Copy("from", {.repack = {.dry_run = true}}).value().tensor_count, 1u);
  EXPECT_THAT(storage_->OpenDirectory("to").status(), HasCode(Code::kNotFound));
}

// A draft that is thinned becomes one of this version, too. The one behind it in the series counts.
TEST_F(DraftTest, AThinnedOneIsOfThisVersion) {
  StoreFiles(*storage_, "run/4", source_.files);
  const ThinOptions options{.drop = {"rng"}, .remove_source = true, .repack = Small()};
  EXPECT_THAT(ThinCheckpoint({.from = "run/4", .to = ""}, options).status(),
              FailsRule(Code::kInvalidArgument, "R-SER-05"));
  MiniSpec newer = DraftSpec();
  newer.attempt = MiniSpec::MakeId(0x77);
  newer.parent = MiniSpec::MakeId(0x66);
  newer.sequence = 5;
  StoreFiles(*storage_, "run/5", BuildMini(newer).files);
  const auto thinned = ThinCheckpoint({.from = "run/4", .to = ""}, options);
  ASSERT_TRUE(thinned.ok()) << thinned.error().ToString();
  EXPECT_TRUE(thinned->is_source_removed);
  EXPECT_EQ(Open("run/4-thin")->sequence(), 4u);
}

TEST_F(DraftTest, DamageIsFound) {
  EXPECT_THAT(CopyOf([](auto& files) { FlipBit(files.at("COMMIT"), 8 * 200); }),
              BreaksRule(Code::kCorrupt, "R-HDR-04", 40));
  EXPECT_THAT(CopyOf([](auto& files) { files.at("COMMIT").pop_back(); }),
              BreaksRule(Code::kCorrupt, "R-MRK-02", 511));
  EXPECT_THAT(CopyOf([](auto& files) { files.at("COMMIT").push_back(std::byte{0}); }),
              BreaksRule(Code::kCorrupt, "R-MRK-02", 512));
  EXPECT_THAT(CopyOf([](auto& files) { files.erase("COMMIT"); }), HasCode(Code::kUncommitted));
  for (const std::size_t byte : {std::size_t{100}, index().size() - 1}) {
    const Status status =
        CopyOf([&](auto& files) { FlipBit(files.at(source_.index_name), 8 * byte); });
    EXPECT_THAT(status, HasCode(Code::kCorrupt)) << byte;
    EXPECT_EQ(status.place().rule, "R-MRK-06") << byte;
  }
  EXPECT_THAT(CopyOf([&](auto& files) { files.at(source_.index_name).pop_back(); }),
              HasCode(Code::kIncomplete));
  EXPECT_THAT(CopyOf([&](auto& files) { files.erase(source_.index_name); }),
              HasCode(Code::kIncomplete));
  const std::string blob = source_.blobs.at(0).name;
  EXPECT_THAT(CopyOf([&](auto& files) { FlipBit(files.at(blob), 8 * 4096); }),
              HasCode(Code::kCorrupt));
  EXPECT_THAT(storage_->OpenDirectory("to")->get()->Stat("COMMIT").status(),
              HasCode(Code::kNotFound));
}

TEST_F(DraftTest, AnIndexOfAnotherVersionThanItsMarkerIsRefused) {
  internal::StoreLe(index(), HeaderFields::kVersion.at, std::uint32_t{2});
  ResealHeader(MutableByteSpan(index()).first(internal::format::kHeaderSize));
  SealMarker();
  StoreFiles(*storage_, "mixed", source_.files);
  EXPECT_THAT(Copy("mixed").status(), BreaksRule(Code::kUnsupported, "R-HDR-05", 12));
}

TEST_F(DraftTest, AnIndexThatIsShorterThanItsHeaderIsRefused) {
  index().resize(64);
  internal::StoreLe(source_.marker(), MarkerFields::kIndexSize.at, std::uint64_t{64});
  SealMarker();
  StoreFiles(*storage_, "short", source_.files);
  EXPECT_THAT(Copy("short").status(), HasCode(Code::kCorrupt));
}

TEST_F(DraftTest, AVoidMarkerIsNotACheckpoint) {
  Bytes marker = VoidMarker(1);
  LowerHeader(marker);
  EXPECT_THAT(CopyOf([&](auto& files) { files.at("COMMIT") = marker; }),
              HasCode(Code::kUncommitted));
}

TEST_F(DraftTest, LimitsHold) {
  EXPECT_THAT(Copy("from", {.repack = {.limits = {.index_size_max_bytes = 256}}}).status(),
              HasCode(Code::kLimitExceeded));
}

}  // namespace
}  // namespace sealpoint::testing
