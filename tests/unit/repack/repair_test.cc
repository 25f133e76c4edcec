// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lib/format/constants.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/unit/repack/repack_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;
using Strings = std::vector<std::string>;

// A checkpoint of three blobs in "damaged", and two replicas of it.
class RepairTest : public RepackTest {
 protected:
  RepairTest() {
    MiniSpec spec{.parent = MiniSpec::MakeId(0x11), .sequence = 4};
    const Bytes noise = NoiseBytes(1, 30000);
    spec.tensors.push_back(CutTensor("a", DType::kInt8, {30000}, noise,
                                     {Slice(0, 10000), Slice(10000, 30000)}, {0, 1}));
    spec.tensors.push_back(CutTensor("b", DType::kInt8, {30000}, noise, {Slice(0, 30000)}, {2}));
    spec.objects.push_back({.name = "o", .bytes = NoiseBytes(2, 10), .blob = 2});
    good_ = BuildMini(spec);
    for (const std::string& place : places_) StoreFiles(*storage_, place, good_.files);
  }

  const std::string& NameOf(int blob) const { return good_.blobs.at(blob).name; }
  // A payload byte of a blob, or byte 100 of another file.
  void Damage(const std::string& place, const std::string& name) const {
    Bytes bytes = good_.files.at(name);
    bytes[name.ends_with(".blob") ? 5000 : 100] ^= std::byte{1};
    ReplaceFile(*storage_, place, name, &bytes);
  }
  void Remove(const std::string& place, const std::string& name) const {
    ReplaceFile(*storage_, place, name, nullptr);
  }
  RepairReport Repair(RepairOptions options = {}, const std::string& to = "to",
                      const Strings& replicas = {"first", "second"}) const {
    options.from_storage = storage_;
    if (!options.to_storage) options.to_storage = storage_;
    options.memory_budget_bytes = 2 * 4096;
    return RepairCheckpoint({.damaged = "damaged", .replicas = replicas, .to = to}, options);
  }
  std::map<std::string, Bytes> Files(const std::string& path) const {
    std::map<std::string, Bytes> files;
    for (const std::string& name : FileNames(*storage_, path)) {
      files[name] = ReadWholeFile(*storage_, path, name);
    }
    return files;
  }

  const Strings places_ = {"damaged", "first", "second"};
  MiniContainer good_;
};

// Wherever the damage is: the result is the same checkpoint, and no place is changed.
TEST_F(RepairTest, TakesOfEachFileTheFirstThatIsWhole) {
  Damage("damaged", NameOf(0));
  Remove("damaged", NameOf(1));
  Damage("first", NameOf(1));
  Damage("first", good_.index_name);
  Damage("damaged", good_.index_name);
  Remove("damaged", "COMMIT");
  std::vector<std::map<std::string, Bytes>> before;
  for (const std::string& place : places_) before.push_back(Files(place));
  const RepairReport report = Repair();
  ASSERT_TRUE(report.status.ok()) << report.status.ToString();
  EXPECT_EQ(Files("to"), good_.files);
  for (std::size_t i = 0; i < places_.size(); ++i) EXPECT_EQ(Files(places_[i]), before[i]);
  EXPECT_EQ(report.marker_from, "first");
  EXPECT_EQ(report.index_from, "second");
  EXPECT_EQ(report.attempt, good_.attempt);
  ASSERT_EQ(report.blobs.size(), 3u);
  EXPECT_EQ(report.blobs[0].from, "first");
  EXPECT_THAT(report.blobs[0].problems, ElementsAre(FailsRule(Code::kCorrupt, "R-CHK-02")));
  EXPECT_EQ(report.blobs[1].from, "second");
  EXPECT_THAT(report.blobs[1].problems,
              ElementsAre(HasCode(Code::kNotFound), FailsRule(Code::kCorrupt, "R-CHK-02")));
  EXPECT_EQ(report.blobs[2].from, "damaged");
  EXPECT_TRUE(Repair().was_committed);
}

TEST_F(RepairTest, SaysWhatIsLostAndGoesOnWithAnotherReplica) {
  for (const std::string& place : places_) Damage(place, NameOf(1));
  Remove("damaged", NameOf(0));
  const RepairReport lost = Repair();
  EXPECT_THAT(lost.status, HasCode(Code::kIncomplete));
  EXPECT_THAT(lost.status.message(), HasSubstr(good_.blobs.at(1).id.ToHex()));
  EXPECT_EQ(lost.lost_tensors, Strings{"a"});
  EXPECT_THAT(lost.lost_objects, IsEmpty());
  EXPECT_EQ(lost.blobs[1].from, "");
  EXPECT_EQ(lost.blobs[1].problems.size(), 3u);
  EXPECT_FALSE(Files("to").contains("COMMIT"));
  // Any directory will do that has the file.
  StoreFiles(*storage_, "third", {{NameOf(1), good_.blob(1)}});
  const RepairReport whole = Repair({}, "to", {"third"});
  ASSERT_TRUE(whole.status.ok()) << whole.status.ToString();
  EXPECT_EQ(whole.blobs[0].from, "to");
  EXPECT_EQ(whole.blobs[1].from, "third");
  EXPECT_EQ(Files("to"), good_.files);
}

// What is there already is verified again: it may be damaged, or be a place by another name.
TEST_F(RepairTest, TrustsNothingThatIsInTheNewDirectory) {
  Damage("damaged", NameOf(1));
  EXPECT_THAT(Repair({}, "/damaged").status, FailsRule(Code::kCorrupt, "R-CHK-02"));
  Remove("damaged", "COMMIT");
  EXPECT_THAT(Repair({}, "/damaged").status, FailsRule(Code::kCorrupt, "R-CHK-02"));
  EXPECT_FALSE(Files("damaged").contains("COMMIT"));
  ASSERT_TRUE(Repair().status.ok());
  Damage("to", NameOf(2));
  EXPECT_THAT(Repair().status, FailsRule(Code::kCorrupt, "R-CHK-02"));
}

TEST_F(RepairTest, BuildsAnIndexOnlyIfAllBlobsOfTheAttemptAreThere) {
  for (const std::string& place : places_) Remove(place, good_.index_name);
  EXPECT_THAT(Repair().status, HasCode(Code::kIncomplete));
  EXPECT_THAT(Repair().status.message(), HasSubstr("rebuild_index"));
  // A blob of another attempt does not count.
  const MiniContainer stranger = BuildInSeries(0x66, 0, 1);
  ReplaceFile(*storage_, "first", stranger.blobs.at(0).name,
              &stranger.files.at(stranger.blobs.at(0).name));
  for (const std::string& place : places_) Remove(place, NameOf(1));
  const RepairOptions rebuild{.rebuild_index = true};
  EXPECT_THAT(Repair(rebuild).status, FailsRule(Code::kIncomplete, "R-MRK-07"));
  EXPECT_THAT(FileNames(*storage_, "to"), IsEmpty());
  ReplaceFile(*storage_, "second", NameOf(1), &good_.files.at(NameOf(1)));
  Damage("damaged", NameOf(2));
  const RepairReport report = Repair(rebuild);
  ASSERT_TRUE(report.status.ok()) << report.status.ToString();
  EXPECT_EQ(FindDamage(storage_, "to"), "");
  StoreFiles(*storage_, "good", good_.files);
  const auto repaired = Open("to");
  EXPECT_EQ(ContentOf(*repaired), ContentOf(*Open("good")));
  EXPECT_EQ(repaired->attempt(), report.attempt);
  EXPECT_NE(repaired->attempt(), good_.attempt);
  EXPECT_EQ(repaired->sequence(), 4u);
  EXPECT_THAT(repaired->provenance(), Contains(Pair("repack.from", good_.attempt.ToHex())));
  EXPECT_TRUE(Repair(rebuild).was_committed);
  EXPECT_EQ(Repair(rebuild).attempt, report.attempt);
}

TEST_F(RepairTest, RefusesWhatDoesNotBelongTogether) {
  EXPECT_THAT(Repair({}, "first/").status, HasCode(Code::kInvalidArgument));
  EXPECT_THAT(Repair({.threads = -1}).status, HasCode(Code::kInvalidArgument));
  EXPECT_THAT(Repair({.threads = 3}).status.message(), HasSubstr("memory_budget_bytes is 8192"));
  // The marker of the first place decides; without it all have to agree.
  const MiniContainer other = BuildInSeries(0x55, 0, 1);
  StoreFiles(*storage_, "other", other.files);
  EXPECT_TRUE(Repair({}, "to", {"other"}).status.ok());
  Damage("damaged", "COMMIT");
  EXPECT_THAT(Repair({}, "to2", {"first", "other"}).status, HasCode(Code::kInvalidArgument));
  EXPECT_THAT(Repair({}, "other", {"first"}).status, FailsRule(Code::kAlreadyExists, "R-CMT-01"));
  EXPECT_EQ(Files("other"), other.files);
  EXPECT_THAT(Repair({}, "to2", {}).status, HasCode(Code::kCorrupt));
}

// The marker and the index of the first place that has one; of the others the first problem is
// said.
TEST_F(RepairTest, SaysTheFirstProblemIfNoPlaceHasAMarkerOrAnIndex) {
  const Bytes void_marker = VoidMarker(0xa7);
  ReplaceFile(*storage_, "damaged", "COMMIT", &void_marker);
  const RepairReport report = Repair();
  EXPECT_TRUE(report.status.ok()) << report.status.ToString();
  EXPECT_EQ(report.marker_from, "first");
  Damage("damaged", good_.index_name);
  for (const char* const place : {"first", "second"}) Remove(place, good_.index_name);
  EXPECT_THAT(Repair({}, "to2").status, HasCode(Code::kCorrupt));
  Damage("damaged", "COMMIT");
  for (const char* const place : {"first", "second"}) Remove(place, "COMMIT");
  EXPECT_THAT(Repair({}, "to2").status, HasCode(Code::kCorrupt));
}

// Blobs of the same attempt: as many bytes in fewer, or as many with other bytes.
TEST_F(RepairTest, RebuildsOfAllBlobsThatTheMarkerCounts) {
  const auto size = [&](int blob) { return good_.blob(blob).size(); };
  for (const std::string& place : places_) Remove(place, good_.index_name);
  const auto stranger = [&](std::uint64_t file_size) {
    MiniContainer made;
    for (std::uint64_t bytes = file_size; made.blobs.empty() || made.blob(7).size() != file_size;
         bytes -= 1000) {
      MiniSpec spec;
      spec.tensors.push_back(
          CutTensor("s", DType::kInt8, {bytes}, Bytes(bytes), {Slice(0, bytes)}, {7}));
      made = BuildMini(spec);
    }
    return made;
  };
  for (const bool is_fewer : {true, false}) {
    const std::uint64_t file_size = is_fewer ? size(1) + size(2) : size(1) + 8192;
    const MiniContainer other = stranger(file_size);
    for (const std::string& place : places_) {
      Remove(place, NameOf(1));
      Remove(place, NameOf(2));
      if (!is_fewer) ReplaceFile(*storage_, place, NameOf(2), &good_.files.at(NameOf(2)));
    }
    ReplaceFile(*storage_, "first", other.blobs.at(7).name,
                &other.files.at(other.blobs.at(7).name));
    EXPECT_THAT(Repair({.rebuild_index = true}).status, FailsRule(Code::kIncomplete, "R-MRK-07"))
        << is_fewer;
  }
}

// What fails in the new directory fails there for each place.
TEST_F(RepairTest, TriesAnotherPlaceOnlyIfThatCanHelp) {
  const auto failing = std::make_shared<FailingStorage>(storage_);
  failing->Claim(Capabilities{.publish = PublishMethod::kNone, .directory_sync = true});
  EXPECT_THAT(Repair({.to_storage = failing}).status, FailsRule(Code::kUnsupported, "R-CMT-04"));
  EXPECT_THAT(failing->changes(), Each(Not(StartsWith("create ")))) << "before a blob is copied";
  failing->Claim(Capabilities{.publish = PublishMethod::kLink, .directory_sync = true});
  failing->Fail({.op = StorageOp::kWrite, .nth = 0});
  const RepairReport full = Repair({.to_storage = failing, .threads = 1});
  EXPECT_THAT(full.status, HasCode(Code::kIo));
  EXPECT_THAT(full.status.message(), HasSubstr("injected"));
  failing->Heal();
  failing->Fail({.op = StorageOp::kStat, .name = "COMMIT"});
  EXPECT_THAT(Repair({.to_storage = failing}).status, HasCode(Code::kIo));
  Remove("damaged", NameOf(0));
  const RepairReport report = Repair({}, "to2", {"nowhere", "first"});
  EXPECT_TRUE(report.status.ok()) << report.status.ToString();
  EXPECT_EQ(report.blobs[0].from, "first");
  EXPECT_EQ(report.blobs[0].problems.size(), 2u);
}

// A sync that fails is the answer; and who made it may have died before the last one.
TEST_F(RepairTest, WhatIsThereAlreadyIsSyncedAgain) {
  Remove("damaged", NameOf(0));
  for (const bool rebuild : {false, true}) {
    const std::string to = rebuild ? "rebuilt" : "repaired";
    if (rebuild) {
      for (const std::string& place : places_) {
        Remove(place, internal::format::IndexName(good_.attempt));
      }
    }
    const auto failing = std::make_shared<FailingStorage>(storage_);
    failing->Fail({.op = StorageOp::kSyncDirectory, .nth = 0});
    RepairOptions options{
        .from_storage = storage_, .to_storage = failing, .rebuild_index = rebuild};
    options.memory_budget_bytes = 2 * 4096;
    const RepairReport first = RepairCheckpoint(
        {.damaged = "damaged", .replicas = {"first", "second"}, .to = to}, options);
    EXPECT_THAT(first.status, HasCode(Code::kIo)) << rebuild;
    ASSERT_TRUE(Repair({.rebuild_index = rebuild}, to).status.ok());
    const RepairReport again = RepairCheckpoint(
        {.damaged = "damaged", .replicas = {"first", "second"}, .to = to}, options);
    EXPECT_THAT(again.status, HasCode(Code::kIo)) << rebuild;
  }
}

}  // namespace
}  // namespace sealpoint::testing
