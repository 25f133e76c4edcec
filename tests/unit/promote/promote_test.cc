// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/promote.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sealpoint/object_store.h"
#include "sealpoint/verify.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/support/storage/memory_object_store.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;

// Two blobs: plain chunks of several pieces, a coded one, padding between them, a scalar.
MiniSpec SpecOf(std::uint8_t attempt, std::uint64_t seed = 1) {
  MiniSpec spec{.attempt = MiniSpec::MakeId(attempt)};
  spec.tensors.push_back(CutTensor("w", DType::kInt8, {9000}, NoiseBytes(seed, 9000),
                                   {Region::Of({{0}, {5000}}), Region::Of({{5000}, {4000}})},
                                   {0, 1}));
  spec.tensors.push_back(
      CutTensor("coded", DType::kBf16, {3000}, Bytes(6000), {Region::Whole({3000})}, {1}));
  spec.tensors.back().codec = Codec::kByteSplitZstd;
  spec.objects.push_back({.name = "rng", .bytes = NoiseBytes(3, 100), .blob = 0});
  return spec;
}

class PromoteTest : public ::testing::Test {
 protected:
  PromoteTest() { StoreFiles(*from_, "local", good_.files); }

  Result<PromoteReport> Run(PromoteOptions options = {}) {
    options.from_storage = from_;
    if (!options.to_storage) options.to_storage = to_;
    options.memory_budget_bytes = 2 * 4096;  // a page for each thread
    return Promote("local", "run/final", options);
  }
  std::map<std::string, Bytes> Files(const Storage& storage, const std::string& path) const {
    std::map<std::string, Bytes> files;
    const auto directory = storage.OpenDirectory(path);
    if (!directory.ok()) return files;
    const auto entries = (*directory)->List().value();
    for (const EntryInfo& entry : entries) {
      Bytes& bytes = files[entry.name];
      bytes.resize(entry.size_bytes);
      const auto file = (*directory)->OpenForRead(entry.name, IoMode::kBuffered).value();
      EXPECT_TRUE(file->ReadAt(0, bytes).ok());
    }
    return files;
  }
  std::map<std::string, Bytes> Final() const { return Files(*to_, "run/final"); }
  bool IsCommitted() const { return Final().contains("COMMIT"); }

  MiniContainer good_ = BuildMini(SpecOf(0xa7));
  std::shared_ptr<Storage> from_ = MemoryStorage();
  std::shared_ptr<Storage> to_ = MemoryStorage();
};

TEST_F(PromoteTest, CopiesEveryByteOnce) {
  const auto seen = std::make_shared<FailingStorage>(to_);
  const auto first = Run({.to_storage = seen});
  ASSERT_TRUE(first.ok()) << first.error().ToString();
  const auto calls = seen->calls();
  const auto count = [&](StorageOp op) {
    return std::count_if(calls.begin(), calls.end(),
                         [&](const StorageCall& call) { return call.op == op; });
  };
  EXPECT_EQ(count(StorageOp::kClose), count(StorageOp::kCreate))
      << "a close may report what is lost";
  EXPECT_EQ(first->blobs_copied, 2u);
  EXPECT_EQ(first->attempt, good_.attempt);
  EXPECT_EQ(Final(), good_.files);
  const auto second = Run();
  ASSERT_TRUE(second.ok()) << second.error().ToString();
  EXPECT_TRUE(second->was_committed);
  EXPECT_EQ(second->bytes_copied, 0u);
  EXPECT_EQ(Files(*from_, "local"), good_.files);
}

// Another process goes on with what is there, and with what comes late: no void marker is in its
// way.
TEST_F(PromoteTest, GoesToAnObjectStoreWhateverRequestHasTrouble) {
  const auto promote_to = [&](const std::shared_ptr<MemoryObjectStore>& store) {
    const std::shared_ptr<Storage> objects = ObjectStorage(store).value();
    return Promote("local", "mem://bucket/run", {.from_storage = from_, .to_storage = objects});
  };
  const auto whole = std::make_shared<MemoryObjectStore>();
  ASSERT_TRUE(promote_to(whole).ok());
  for (std::uint64_t number = 0; number < whole->request_count(); ++number) {
    for (const Trouble trouble : kTroubles) {
      const auto first = std::make_shared<MemoryObjectStore>();
      first->FailAt(number, trouble);
      const bool is_promoted = promote_to(first).ok();
      first->Settle();
      const auto second = std::make_shared<MemoryObjectStore>();
      for (const auto& [key, content] : first->Objects()) second->Set(key, content);
      EXPECT_EQ(second->Objects().contains("run/COMMIT") || !is_promoted, true) << number;
      const auto again = promote_to(second);
      ASSERT_TRUE(again.ok()) << number << " " << again.error().ToString();
      EXPECT_EQ(again->was_committed, first->Objects().contains("run/COMMIT")) << number;
      for (const auto& [name, bytes] : good_.files) {
        ASSERT_EQ(second->Objects().at("run/" + name), bytes) << number << " " << name;
      }
    }
  }
}

// R-STG-02: no byte of a blob is copied that was not verified.
TEST_F(PromoteTest, RefusesADamagedByteAnywhere) {
  for (const auto& [number, blob] : good_.blobs) {
    const Bytes& bytes = good_.files.at(blob.name);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      Bytes damaged = bytes;
      damaged[i] ^= std::byte{0x10};
      ReplaceFile(*from_, "local", blob.name, &damaged);
      to_ = MemoryStorage();
      const auto promoted = Run();
      ASSERT_FALSE(promoted.ok()) << "byte " << i;
      ASSERT_EQ(promoted.error().place().path, "local/" + blob.name) << "byte " << i;
      ASSERT_FALSE(promoted.error().place().rule.empty()) << promoted.error().ToString();
      ASSERT_FALSE(IsCommitted());
      ASSERT_FALSE(Final().contains(blob.name)) << "byte " << i;
    }
    ReplaceFile(*from_, "local", blob.name, &bytes);
  }
}

// A blob that is whole, and one whose header is, but of another checkpoint.
TEST_F(PromoteTest, RefusesPartsOfAnotherBlob) {
  const Bytes other = BuildMini(SpecOf(0xa7, 2)).blob(0);
  ReplaceFile(*from_, "local", good_.blobs.at(0).name, &other);
  EXPECT_EQ(Run().status().place().rule, "R-BLB-03");
  MiniSpec later = SpecOf(0xa7);
  later.step = 77;
  const Bytes later_blob = BuildMini(later).blob(0);
  Bytes mixed = good_.blob(0);
  ASSERT_FALSE(
      std::equal(mixed.begin(), mixed.begin() + internal::kHeaderSize, later_blob.begin()));
  std::copy_n(later_blob.begin(), internal::kHeaderSize, mixed.begin());
  ReplaceFile(*from_, "local", good_.blobs.at(0).name, &mixed);
  EXPECT_EQ(Run().status().place().rule, "R-BLB-03");
}

// Chunks and a table that agree with each other, but are not what the index pins.
TEST_F(PromoteTest, RefusesATableThatIsNotThePinnedOne) {
  Bytes other = BuildMini(SpecOf(0xa7, 2)).blob(0);
  const Bytes& good = good_.blob(0);
  ASSERT_EQ(other.size(), good.size());
  std::copy(good.end() - internal::kTrailerSize, good.end(), other.end() - internal::kTrailerSize);
  ReplaceFile(*from_, "local", good_.blobs.at(0).name, &other);
  const auto promoted = Run();
  ASSERT_FALSE(promoted.ok());
  EXPECT_EQ(promoted.error().place().rule, "R-BLB-05") << promoted.error().ToString();
  EXPECT_FALSE(IsCommitted());
}

TEST_F(PromoteTest, RefusesWhatIsNotCommittedOrShort) {
  Bytes shortened = good_.blob(0);
  shortened.resize(shortened.size() - 4096);
  ReplaceFile(*from_, "local", good_.blobs.at(0).name, &shortened);
  EXPECT_EQ(Run().error().code(), Code::kIncomplete);
  ReplaceFile(*from_, "local", "COMMIT", nullptr);
  EXPECT_EQ(Run().error().code(), Code::kUncommitted);
  EXPECT_FALSE(IsCommitted());
}

// R-STG-04: two nodes, each with one of the blobs. Who comes first cannot publish, and says for
// whom it waited.
TEST_F(PromoteTest, PublishesWhenTheBlobsOfAllNodesAreThere) {
  const std::string other = good_.blobs.at(1).name;
  ReplaceFile(*from_, "local", other, nullptr);
  const auto alone = Run({.deadline = std::chrono::milliseconds(30)});
  ASSERT_EQ(alone.error().code(), Code::kTimeout);
  EXPECT_EQ(alone.error().place().rule, "R-STG-06");
  EXPECT_THAT(alone.error().message(), HasSubstr(other.substr(0, 32)));
  EXPECT_FALSE(IsCommitted());

  Result<PromoteReport> first = Status(Code::kIo, "not begun");
  std::thread node([&] { first = Run(); });
  const auto second_node = MemoryStorage();
  auto files = good_.files;
  files.erase(good_.blobs.at(0).name);
  StoreFiles(*second_node, "local", files);
  const auto second =
      Promote("local", "run/final", {.from_storage = second_node, .to_storage = to_});
  node.join();
  ASSERT_TRUE(second.ok()) << second.error().ToString();
  ASSERT_TRUE(first.ok()) << first.error().ToString();
  EXPECT_EQ(first->blobs_found, 1u);  // what the first try had copied
  EXPECT_EQ(first->blobs_copied, 0u);
  EXPECT_EQ(Final(), good_.files);
}

TEST_F(PromoteTest, RefusesWhatIsInTheWay) {
  const std::string blob = good_.blobs.at(0).name;
  const Bytes same_length(good_.blob(0).size());
  const Bytes other_marker = BuildMini(SpecOf(0xa8)).marker();
  const std::vector<std::pair<std::string, Bytes>> in_the_way = {
      {blob, Bytes(7)}, {blob, same_length}, {"COMMIT", other_marker}, {"COMMIT", Bytes(512)}};
  for (const auto& [name, bytes] : in_the_way) {
    to_ = MemoryStorage();
    StoreFiles(*to_, "run/final", {{name, bytes}});
    const auto promoted = Run();
    ASSERT_FALSE(promoted.ok()) << name;
    EXPECT_EQ(promoted.error().place().path, "run/final/" + name);
    EXPECT_EQ(promoted.error().code(), name == blob ? Code::kCorrupt : Code::kAlreadyExists);
    EXPECT_EQ(Final().at(name), bytes);
  }
}

TEST_F(PromoteTest, RefusesOptionsThatMeanNothing) {
  EXPECT_EQ(Run({.blobs = std::vector<BlobId>{MiniSpec::MakeId(99)}}).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Run({.threads = 0}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Run({.threads = 3}).error().code(), Code::kInvalidArgument);  // less than a page each
  EXPECT_EQ(Run({.deadline = std::chrono::milliseconds(-1)}).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Run({.on_progress = [](std::uint64_t) { return false; }}).error().code(),
            Code::kCancelled);
  EXPECT_EQ(Run({.on_progress = [](std::uint64_t) -> bool { throw 1; }}).error().code(),
            Code::kCancelled);
  EXPECT_FALSE(IsCommitted());
}

// Who committed it may have died before its sync.
TEST_F(PromoteTest, WhatIsCommittedAlreadyIsSynced) {
  ASSERT_TRUE(Run().ok());
  const auto failing = std::make_shared<FailingStorage>(to_);
  failing->Fail({.op = StorageOp::kSyncDirectory});
  EXPECT_EQ(Run({.to_storage = failing}).error().code(), Code::kIo);
}

// Each operation on the target fails once, with and without its effect: the target is committed and
// whole, or not committed; the source is as it was; the next try succeeds and leaves nothing else.
TEST_F(PromoteTest, EveryFaultLeavesAllOrNothing) {
  for (const bool takes_effect : {false, true}) {
    for (int nth = 1;; ++nth) {
      to_ = MemoryStorage();
      const auto failing = std::make_shared<FailingStorage>(to_);
      failing->Fail({.any_op = true, .nth = nth, .takes_effect = takes_effect});
      const auto promoted = Run({.to_storage = failing, .threads = 1});
      if (failing->fault_count() == 0) {
        EXPECT_GT(nth, 20);
        break;
      }
      if (IsCommitted() || promoted.ok()) {
        const auto report = Verify("run/final", {.storage = to_}).value();
        ASSERT_EQ(report.verdict, Verdict::kCommitted) << "fault " << nth;
      }
      // What could not be made durable is not promoted.
      const auto calls = failing->calls();
      const auto failed = std::find_if(calls.begin(), calls.end(), [](const StorageCall& call) {
        return call.code == Code::kIo;
      });
      ASSERT_NE(failed, calls.end());
      if (failed->op == StorageOp::kSyncFile || failed->op == StorageOp::kClose ||
          failed->op == StorageOp::kSyncDirectory) {
        EXPECT_FALSE(promoted.ok()) << "fault " << nth;
      }
      ASSERT_EQ(Files(*from_, "local"), good_.files);
      const auto again = Run();
      ASSERT_TRUE(again.ok()) << "fault " << nth << ": " << again.error().ToString();
      for (const auto& [name, bytes] : good_.files) ASSERT_EQ(Final().at(name), bytes);
    }
  }
}

}  // namespace
}  // namespace sealpoint::testing
