// SPDX-License-Identifier: Apache-2.0
//
// Deletions beside deltas (spec/delta.md section 4). The deltas are small ones that store no
// changes: what counts here is what their index says.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sealpoint/digest.h"
#include "tests/unit/series/series_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class DeltaSeriesTest : public SeriesTest {
 protected:
  // Sequence and attempt are `number`. With a base, its KEEP is made as a committer makes it.
  void Save(std::uint8_t number, std::uint8_t base = 0) {
    if (base != 0) Pin(base);
    Publish(number, base);
  }
  void Publish(std::uint8_t number, std::uint8_t base) {
    MiniTensor tensor{.name = "w", .dtype = DType::kUInt8, .shape = {5}};
    tensor.shards.push_back(
        {.region = Region::Whole(tensor.shape), .bytes = NoiseBytes(number, 5)});
    MiniSpec spec{.tensors = {tensor},
                  .attempt = MiniSpec::MakeId(number),
                  .parent = MiniSpec::MakeId(static_cast<std::uint8_t>(number - 1)),
                  .sequence = number,
                  .step = 100u + number};
    if (base != 0) {
      depths_[number] = depths_[base] + 1;
      spec.base = BaseRef{.attempt = MiniSpec::MakeId(base),
                          .index_digest = index_digests_.at(base),
                          .step = 100u + base,
                          .depth = depths_[number]};
    }
    MiniContainer made = BuildMini(spec);
    index_digests_[number] = ComputeDigest(made.index());
    StoreFiles(*memory_, At(number), made.files);
  }
  void Pin(std::uint8_t base) {
    const auto content = AsBytes("delta\n");
    const Bytes bytes(content.begin(), content.end());
    ReplaceFile(*memory_, At(base), "KEEP", &bytes);
  }
  static std::string Name(std::uint8_t number) {
    return SeriesDirectoryName(100u + number, MiniSpec::MakeId(number));
  }
  static std::string At(std::uint8_t number) { return Path(Name(number)); }
  bool HasKeep(std::uint8_t number) const {
    return memory_->OpenDirectory(At(number)).value()->Stat("KEEP").ok();
  }
  // By number, ascending.
  std::vector<int> Left() const {
    std::vector<int> left;
    for (const SeriesEntry& entry : Series(InPlace("series"), memory_).List().value().entries) {
      if (entry.verdict == Verdict::kCommitted) left.push_back(static_cast<int>(entry.sequence));
    }
    std::ranges::reverse(left);
    return left;
  }
  // The reasons that a dry run gives.
  std::vector<std::string> ReasonsFor(std::uint8_t number, const RetentionPolicy& policy = {}) {
    const PruneReport report = series_.Prune(policy, {.dry_run = true});
    EXPECT_TRUE(report.status.ok()) << report.status.ToString();
    for (const PruneDecision& decision : report.decisions) {
      if (decision.entry.name == Name(number)) return decision.reasons;
    }
    return {};
  }
  void DamageIndex(std::uint8_t number) {
    const std::string name = MiniSpec::MakeId(number).ToHex() + ".index";
    const Bytes garbage(200);
    ReplaceFile(*memory_, At(number), name, &garbage);
  }
  std::vector<std::string> RemovedMarkers() const {
    std::vector<std::string> paths;
    for (const StorageCall& call : storage_->calls()) {
      if (call.op == StorageOp::kRemoveDirectory) paths.push_back(call.name);
    }
    return paths;
  }

  std::map<std::uint8_t, Digest> index_digests_;
  std::map<std::uint8_t, std::uint32_t> depths_;
};

TEST_F(DeltaSeriesTest, AnEntryTellsDeltasBasesAndPinsOfPeople) {
  Save(1);
  Save(2, 1);
  Save(3);
  ASSERT_TRUE(SetKept(*memory_, At(3), true).ok());
  Save(4);
  const Bytes other = NoiseBytes(1, 6);  // of the same length
  ReplaceFile(*memory_, At(4), "KEEP", &other);
  const auto entries = series_.List().value().entries;
  const auto is = [&](std::size_t i, bool is_kept, bool is_base, bool is_delta) {
    const SeriesEntry& entry = entries.at(i);
    return entry.is_kept == is_kept && entry.is_base == is_base && entry.is_delta == is_delta;
  };
  EXPECT_TRUE(is(0, true, false, false));
  EXPECT_TRUE(is(1, true, false, false));
  EXPECT_TRUE(is(2, false, false, true));
  EXPECT_TRUE(is(3, false, true, false));
  // One that cannot be read pins as that of a person.
  storage_->Fail({.op = StorageOp::kRead, .name = "KEEP", .nth = 0});
  EXPECT_TRUE(series_.List().value().entries.at(3).is_kept);
}

TEST_F(DeltaSeriesTest, ABaseIsNotDeleted) {
  Save(1);
  Save(2, 1);
  Save(3, 2);
  Save(4);
  Save(5);
  const Status refused = series_.Delete(Name(1));
  EXPECT_THAT(refused, FailsRule(Code::kInvalidArgument, "R-DLT-11"));
  EXPECT_THAT(refused.message(), HasSubstr("the base of " + Name(2)));
  EXPECT_THAT(series_.Delete(Name(2)), FailsRule(Code::kInvalidArgument, "R-DLT-11"));
  EXPECT_THAT(storage_->changes(), IsEmpty());
  // Also without its KEEP.
  ReplaceFile(*memory_, At(1), "KEEP", nullptr);
  EXPECT_THAT(series_.Delete(Name(1)), FailsRule(Code::kInvalidArgument, "R-DLT-11"));
  Pin(1);
  for (const std::uint8_t number : std::initializer_list<std::uint8_t>{3, 2, 1}) {
    const Status deleted = series_.Delete(Name(number));
    EXPECT_TRUE(deleted.ok()) << deleted.ToString();
  }
  EXPECT_THAT(Left(), ElementsAre(4, 5));
  // A person's pin of a base without deltas is one as ever.
  ASSERT_TRUE(SetKept(*memory_, At(4), true).ok());
  EXPECT_THAT(series_.Delete(Name(4)), FailsRule(Code::kInvalidArgument, "R-SER-05"));
}

TEST_F(DeltaSeriesTest, PruningKeepsBases) {
  Save(1);
  Save(2, 1);
  Save(3, 2);  // goes
  Save(4);
  Save(5, 4);
  Save(6, 2);
  Save(7);
  EXPECT_THAT(ReasonsFor(1), ElementsAre("the base of " + Name(2)));
  EXPECT_THAT(ReasonsFor(2), ElementsAre("the base of " + Name(6)));
  EXPECT_THAT(ReasonsFor(4), ElementsAre("no rule keeps it"));
  // The newest of a chain first, the older chain first.
  const PruneReport report = series_.Prune({});
  EXPECT_TRUE(report.status.ok()) << report.status.ToString();
  EXPECT_THAT(Left(), ElementsAre(1, 2, 6, 7));
  EXPECT_THAT(RemovedMarkers(),
              ElementsAre(HasSubstr(Name(3)), HasSubstr(Name(5)), HasSubstr(Name(4))));
  EXPECT_TRUE(HasKeep(1));
  EXPECT_TRUE(HasKeep(2));
  Save(8);
  EXPECT_TRUE(series_.Prune({}).status.ok());
  EXPECT_THAT(Left(), ElementsAre(7, 8));
}

TEST_F(DeltaSeriesTest, ADeletionThatFailsLeavesTheBasesBelow) {
  Save(1);
  Save(2, 1);
  Save(3);
  Save(4);
  storage_->Fail({.op = StorageOp::kRemove, .name = "COMMIT"});
  EXPECT_THAT(series_.Prune({}).status, HasCode(Code::kIo));
  EXPECT_THAT(Left(), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(HasKeep(1));
}

TEST_F(DeltaSeriesTest, ABoundOfBytesCountsTheBasesOfADelta) {
  Save(1);
  Save(2, 1);
  Save(3);
  Save(4);
  Save(5);
  const auto sizes = [&](std::vector<std::size_t> of) {
    const auto entries = series_.List().value().entries;
    std::uint64_t size = 0;
    for (const std::size_t i : of) size += entries.at(i).size_bytes;
    return size;
  };
  const auto kept = [&](std::uint64_t max_bytes) {
    std::vector<int> numbers;
    for (const auto& decision :
         series_.Prune({.max_bytes = max_bytes}, {.dry_run = true}).decisions) {
      if (decision.keep) numbers.push_back(static_cast<int>(decision.entry.sequence));
    }
    return numbers;
  };
  EXPECT_THAT(kept(sizes({0, 1, 2, 3, 4})), ElementsAre(5, 4, 3, 2, 1));
  // The delta alone would fit; without it, its base does.
  EXPECT_THAT(kept(sizes({0, 1, 2, 3, 4}) - 1), ElementsAre(5, 4, 3, 1));
  EXPECT_THAT(kept(sizes({0, 1, 2}) + sizes({4}) - 1), ElementsAre(5, 4, 3));
}

TEST_F(DeltaSeriesTest, OnlyIndexesOfDeltasAreRead) {
  const auto indexes_read = [&] {
    std::vector<std::string> names;
    for (const StorageCall& call : storage_->calls()) {
      if (call.op == StorageOp::kOpenForRead && call.name.ends_with(".index"))
        names.push_back(call.name);
    }
    storage_->ClearLog();
    return names;
  };
  const auto opened_keeps = [&] {
    return std::ranges::count_if(storage_->calls(), [](const StorageCall& call) {
      return call.op == StorageOp::kOpenForRead && call.name == "KEEP";
    });
  };
  for (std::uint8_t number = 1; number <= 6; ++number) Save(number);
  ASSERT_TRUE(SetKept(*memory_, At(1), true).ok());
  const std::string sixth = MiniSpec::MakeId(6).ToHex() + ".index";
  const std::string fifth = MiniSpec::MakeId(5).ToHex() + ".index";
  ASSERT_TRUE(series_.Delete(Name(2)).ok());
  EXPECT_EQ(opened_keeps(), 0);
  EXPECT_THAT(indexes_read(), ElementsAre(sixth));
  ASSERT_TRUE(series_.Prune({}).status.ok());
  EXPECT_EQ(opened_keeps(), 0);
  EXPECT_THAT(indexes_read(), ElementsAre(sixth, fifth, sixth))
      << "to find the newest two and one to sync";
  // The index of each delta is read once, however often the series is listed.
  Save(7, 6);
  Save(8, 7);
  Save(9, 8);
  Save(10);
  Save(11);
  ASSERT_TRUE(series_.Prune({}).status.ok());
  const std::vector<std::string> names = indexes_read();
  for (const std::uint8_t number : std::initializer_list<std::uint8_t>{7, 8, 9}) {
    EXPECT_EQ(std::ranges::count(names, MiniSpec::MakeId(number).ToHex() + ".index"), 1);
  }
}

TEST_F(DeltaSeriesTest, APersonsPinReplacesThatOfDeltasAndAloneIsRemoved) {
  Save(1);
  Save(2, 1);
  Save(3);
  const auto first = [&] { return series_.List().value().entries.back(); };
  EXPECT_EQ(SetKept(*storage_, At(1), false).value(), false);
  EXPECT_TRUE(first().is_base);
  EXPECT_EQ(SetKept(*storage_, At(1), true).value(), true);
  EXPECT_TRUE(first().is_kept);
  EXPECT_FALSE(first().is_base);
  EXPECT_EQ(SetKept(*storage_, At(1), true).value(), false);
  EXPECT_EQ(SetKept(*storage_, At(1), false).value(), true);
  EXPECT_FALSE(HasKeep(1));
}

TEST_F(DeltaSeriesTest, NothingIsDeletedIfADeltaCannotBeRead) {
  Save(1);
  Save(2, 1);
  Save(3);
  Save(4);
  const std::string index = MiniSpec::MakeId(2).ToHex() + ".index";
  for (const StorageOp op : {StorageOp::kOpenForRead, StorageOp::kRead}) {
    storage_->Fail({.op = op, .name = index, .nth = 0});
    EXPECT_THAT(series_.Prune({}).status, HasCode(Code::kIo));
    EXPECT_THAT(series_.Delete(Name(1)), HasCode(Code::kIo));
    storage_->Heal();
  }
  EXPECT_THAT(storage_->changes(), IsEmpty());
}

// Damage is a fact. What a damaged delta that stays needs is unknown.
TEST_F(DeltaSeriesTest, ADamagedDeltaKeepsWhatItMayNeed) {
  Save(1);
  Save(2);
  Save(3, 1);
  Save(4);
  Save(5);
  DamageIndex(3);
  EXPECT_THAT(ReasonsFor(1, {.keep_last = 3}),
              ElementsAre("perhaps the base of " + Name(3) + ", whose index is damaged"));
  EXPECT_THAT(ReasonsFor(2), ElementsAre("no rule keeps it"));
  EXPECT_THAT(series_.Delete(Name(1)), FailsRule(Code::kInvalidArgument, "R-DLT-11"));
  EXPECT_TRUE(HasKeep(1));
  EXPECT_TRUE(series_.Delete(Name(2)).ok());
  // If it goes, it goes first.
  EXPECT_TRUE(series_.Prune({}).status.ok());
  EXPECT_THAT(Left(), ElementsAre(4, 5));
}

TEST_F(DeltaSeriesTest, AnUnknownMarkerKeepsWhatItMayNeed) {
  Save(1);
  Save(2, 1);
  Save(3);
  Save(4);
  const Bytes garbage(200);
  ReplaceFile(*memory_, At(2), "COMMIT", &garbage);
  EXPECT_THAT(ReasonsFor(1), ElementsAre(HasSubstr("perhaps the base of " + Name(2))));
  EXPECT_THAT(series_.Delete(Name(1)), FailsRule(Code::kInvalidArgument, "R-DLT-11"));
  EXPECT_TRUE(HasKeep(1));
  ReplaceFile(*memory_, At(2), "COMMIT", nullptr);
  EXPECT_TRUE(series_.Delete(Name(1)).ok());
}

// A delta that is committed between the decision and the deletion, wherever in between.
TEST_F(DeltaSeriesTest, ADeltaThatIsCommittedMeanwhileKeepsItsBase) {
  int races = 0;
  for (int at = 1; at > 0; ++at) {
    for (const EntryInfo& entry :
         memory_->OpenDirectory(InPlace("series")).value()->List().value()) {
      ASSERT_TRUE(RemoveAll(*memory_, Path(entry.name)).ok());
    }
    Save(1);
    Save(2, 1);
    Save(3);
    Save(4);
    ASSERT_TRUE(series_.Delete(Name(2)).ok());
    Pin(1);  // as of a saver that is about to publish
    int calls = 0;
    bool is_committed = false;
    storage_->SetHook([&](StorageOp op, std::string_view name) {
      // From then on a committer's own last look at the base fails (R-DLT-10).
      const bool is_past = op == StorageOp::kRemove && name == "KEEP";
      if (is_past) calls = at;
      if (is_past || ++calls != at) return;
      is_committed = true;
      Publish(5, 1);
    });
    const Status deleted = series_.Delete(Name(1));
    storage_->Heal();
    if (!is_committed) {
      EXPECT_TRUE(deleted.ok()) << deleted.ToString();
      break;
    }
    ++races;
    EXPECT_THAT(Left(), ElementsAre(1, 3, 4, 5)) << at;
    EXPECT_TRUE(HasKeep(1)) << at;
    EXPECT_THAT(deleted, FailsRule(Code::kInvalidArgument, "R-DLT-11")) << at;
  }
  EXPECT_GT(races, 10);
}

TEST_F(DeltaSeriesTest, ADeltaThatIsCommittedBehindTheKeepIsFoundByTheSecondListing) {
  Save(1);
  Save(2);
  Save(3);
  Pin(1);
  storage_->SetHook([&](StorageOp op, std::string_view name) {
    if (op == StorageOp::kRemove && name == "KEEP") Publish(4, 1);
  });
  const Status deleted = series_.Delete(Name(1));
  EXPECT_THAT(deleted, FailsRule(Code::kInvalidArgument, "R-DLT-11"));
  EXPECT_TRUE(HasKeep(1));
  EXPECT_TRUE(series_.List().value().entries.back().is_base);
  EXPECT_THAT(Left(), ElementsAre(1, 2, 3, 4));
}

// A committer that makes its KEEP behind the removal of another one.
TEST_F(DeltaSeriesTest, ANewKeepIsFound) {
  Save(1);
  Save(2);
  Save(3);
  Pin(1);
  bool is_removed = false;
  storage_->SetHook([&](StorageOp op, std::string_view name) {
    if (is_removed && op == StorageOp::kStat && name == "KEEP") Pin(1);
    is_removed = is_removed || (op == StorageOp::kRemove && name == "KEEP");
  });
  EXPECT_THAT(series_.Delete(Name(1)), FailsRule(Code::kInvalidArgument, "R-DLT-11"));
  EXPECT_THAT(Left(), ElementsAre(1, 2, 3));
}

TEST_F(DeltaSeriesTest, WhatCannotBeFoundOutMakesTheKeepAgain) {
  Save(1);
  Save(2);
  Save(3);
  Pin(1);
  bool is_removed = false;
  storage_->SetHook([&](StorageOp op, std::string_view name) {
    if (op == StorageOp::kRemove && name == "KEEP" && !is_removed) {
      is_removed = true;
      storage_->Fail({.op = StorageOp::kOpenDirectory, .name = "series"});
    }
  });
  EXPECT_THAT(series_.Delete(Name(1)), HasCode(Code::kIo));
  EXPECT_TRUE(is_removed);
  EXPECT_TRUE(HasKeep(1));
  EXPECT_THAT(Left(), ElementsAre(1, 2, 3));
}

// Two prunings at once: each of the second one's chances.
TEST_F(DeltaSeriesTest, TwoPruningsAtOnceAgree) {
  for (int at = 1; at < 200; ++at) {
    for (const EntryInfo& entry :
         memory_->OpenDirectory(InPlace("series")).value()->List().value()) {
      ASSERT_TRUE(RemoveAll(*memory_, Path(entry.name)).ok());
    }
    Save(1);
    Save(2, 1);
    Save(3, 2);
    Save(4);
    Save(5);
    int calls = 0;
    storage_->SetHook([&](StorageOp, std::string_view) {
      if (++calls != at) return;
      const PruneReport other = Series(InPlace("series"), memory_).Prune({});
      EXPECT_TRUE(other.status.ok()) << at << ": " << other.status.ToString();
    });
    const PruneReport report = series_.Prune({});
    EXPECT_TRUE(report.status.ok()) << at << ": " << report.status.ToString();
    storage_->Heal();
    EXPECT_THAT(Left(), ElementsAre(4, 5)) << at;
    if (calls < at) break;
  }
}

TEST_F(DeltaSeriesTest, ACrashBetweenKeepAndMarkerLeavesABaseThatGoesLater) {
  Save(1);
  Save(2);
  Save(3);
  Pin(1);
  // From the first removal on nothing works any more.
  storage_->Fail({.op = StorageOp::kRemove, .name = "COMMIT", .persists = true});
  EXPECT_THAT(series_.Prune({}).status, HasCode(Code::kIo));
  storage_->Heal();
  EXPECT_FALSE(HasKeep(1));
  EXPECT_THAT(Left(), ElementsAre(1, 2, 3));
  EXPECT_TRUE(series_.Prune({}).status.ok());
  EXPECT_THAT(Left(), ElementsAre(2, 3));
}

}  // namespace
}  // namespace sealpoint::testing
