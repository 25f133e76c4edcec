// SPDX-License-Identifier: Apache-2.0
//
// Frozen groups: what is linked instead of written, what is written all the same, what is left
// after a failure.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/saver.h"
#include "sealpoint/series.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/unit/saver/frozen_fixture.h"

namespace sealpoint::testing {
namespace {

TEST_F(FrozenTest, WhatDidNotChangeIsLinkedAndStaysWhenTheOlderCheckpointGoes) {
  LoraState state;
  const CommitInfo first = Save(state).value();
  EXPECT_EQ(first.reused_blob_count, 0u);
  state.contents["adapter"][0] = std::byte{0};
  std::uint64_t written = 0;
  storage_->SetWriteHook([&](std::string_view name, WriteRequest& request) {
    if (name.ends_with(".blob")) written += request.data.size();
  });
  const CommitInfo second = Save(state).value();
  EXPECT_EQ(second.reused_blob_count, 1u);
  EXPECT_GT(second.reused_bytes, 2 * kBaseSize);
  EXPECT_LT(written, second.total_bytes - second.reused_bytes + 1);
  ExpectHolds(second, state);
  const CommitInfo third = Save(state).value();
  EXPECT_EQ(third.reused_blob_count, 1u);
  const Series series("run", memory_);
  ASSERT_TRUE(series.Delete(NameOf(first)).ok());
  ExpectHolds(second, state);
  ASSERT_TRUE(series.Delete(NameOf(second)).ok());
  ExpectHolds(third, state);
}

// One saver, whose second link needs no look into the parent's index.
TEST_F(FrozenTest, EachRankLinksItsOwn) {
  for (const int size : {1, 3}) {
    const std::string series = "ranks-" + std::to_string(size);
    WithRanks(size, [&](Communicator& comm) {
      const auto engine = SmallEngine(storage_, BufferCountForSaves(8));
      const auto saver = Saver::Create(*engine, comm, Options()).value();
      LoraState state;
      for (int save = 0; save < 4; ++save) {
        const auto info = SaveOn(comm, *saver, state, SaveTarget::InSeries(series));
        ASSERT_TRUE(info.ok()) << info.error().ToString();
        EXPECT_EQ(info->reused_blob_count, save == 0 ? 0u : static_cast<std::uint64_t>(size));
        if (comm.rank() == 0) ExpectHolds(*info, state);
      }
      // One rank alone has something new.
      state.contents["base.a"][0] = std::byte{1};
      const auto changed = SaveOn(comm, *saver, state, SaveTarget::InSeries(series));
      ASSERT_TRUE(changed.ok()) << changed.error().ToString();
      EXPECT_EQ(changed->reused_blob_count, static_cast<std::uint64_t>(size - 1));
      if (comm.rank() == 0) ExpectHolds(*changed, state);
    });
  }
}

// R-CMT-34: each of these is written, and what is loaded is what was saved.
TEST_F(FrozenTest, WhatIsStoredOtherwiseIsWritten) {
  const struct {
    std::string_view what;
    std::function<void(LoraState&)> change;
  } rows[] = {
      {"a byte", [](LoraState& state) { state.contents["base.b"].back() ^= std::byte{1}; }},
      {"a chunk's size",
       [](LoraState& state) { state.tensors["base.a"].chunk_size_bytes = 2 * 4096; }},
      {"the placement", [](LoraState& state) { state.tensors["base.a"].placement = {"S(0)"}; }},
      {"the attributes",
       [](LoraState& state) {
         state.tensors["base.a"].attributes = Attributes::Make({{"units", "K"}}).value();
       }},
      {"the type", [](LoraState& state) { state.tensors["base.a"].dtype = DType::kInt8; }},
      {"one more tensor", [](LoraState& state) { state.Add("base.c", 10, "frozen"); }},
      {"a longer tensor", [](LoraState& state) { state.Add("base.a", kBaseSize + 1, "frozen"); }},
      {"a tensor that is gone",
       [](LoraState& state) {
         state.tensors.erase("base.a");
         state.contents.erase("base.a");
       }},
      {"a tensor of another group",
       [](LoraState& state) { state.tensors["base.a"].group = "other"; }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    LoraState state;
    ASSERT_TRUE(Save(state).ok());
    row.change(state);
    const CommitInfo changed = Save(state).value();
    EXPECT_EQ(changed.reused_blob_count, 0u);
    ExpectHolds(changed, state);
  }
}

// One chunk is the same in chunks of any size, one rank's part in a tensor of any length, and equal
// elements in any box and any run: what the index says of them differs.
TEST_F(FrozenTest, WhatIsOtherwiseOnlyInTheIndexIsWritten) {
  const auto save = [&](const std::vector<DeclaredTensor>& held, const SaveTarget& target) {
    const auto engine = SmallEngine(storage_, BufferCountForSaves(8));
    const auto comm = SelfCommunicator();
    const auto saver = Saver::Create(*engine, *comm, Options()).value();
    Declaration declaration;
    for (const DeclaredTensor& declared_tensor : held) declaration.Add(declared_tensor).value();
    Sources sources(declaration);
    const Bytes zeros(kBaseSize);
    for (std::size_t i = 0; i < held.size(); ++i) {
      EXPECT_TRUE(
          sources
              .Bind(
                  i,
                  MemoryView::Host(
                      zeros.data(),
                      held[i].region.value_or(Region::Whole(held[i].tensor.shape)).element_count()))
              .ok());
    }
    const auto info = SaveInMode(*saver, target, {.step = ++step_}, sources);
    EXPECT_TRUE(info.ok()) << info.error().ToString();
    EXPECT_EQ(FindDamage(memory_, info->directory), "");
    return info->reused_blob_count;
  };
  TensorSpec tensor = ByteTensor("t", 20);
  tensor.group = "frozen";
  tensor.shape = {2, 10};
  TensorSpec other_chunks = tensor;
  other_chunks.chunk_size_bytes = 2 * kChunkSizeMinBytes;
  const auto box = [](std::uint64_t at, std::uint64_t rows, std::uint64_t columns) {
    return Region::Of({{0, at}, {rows, columns}});
  };
  const auto run = [](std::uint64_t begin, std::uint64_t end) {
    return Region({{0, 0}, {2, 10}}, sealpoint::Run{begin, end});
  };
  const std::vector<DeclaredTensor> runs = {{.tensor = tensor, .region = run(0, 10)},
                                            {.tensor = tensor, .region = run(10, 20)}};
  const std::vector<std::pair<std::vector<DeclaredTensor>, std::vector<DeclaredTensor>>> rows = {
      {{{.tensor = tensor}}, {{.tensor = other_chunks}}},
      {runs,
       {{.tensor = tensor, .region = box(0, 2, 5)}, {.tensor = tensor, .region = box(5, 2, 5)}}},
      {runs, {{.tensor = tensor, .region = run(0, 7)}, {.tensor = tensor, .region = run(7, 20)}}},
      {runs, {{.tensor = tensor, .region = run(0, 20)}}},
      {{{.tensor = tensor, .region = run(0, 20)}}, runs},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SaveTarget target = SaveTarget::InSeries("run-" + std::to_string(i));
    EXPECT_EQ(save(rows[i].first, target), 0u) << i;
    EXPECT_EQ(save(rows[i].second, target), 0u) << i;
    EXPECT_EQ(save(rows[i].second, target), 1u) << i << ": as the one before";
  }
}

// The first of two ranks holds the same part of a longer tensor.
TEST_F(FrozenTest, APartOfALongerTensorIsWritten) {
  WithRanks(2, [&](Communicator& comm) {
    const auto engine = SmallEngine(storage_, BufferCountForSaves(8));
    const auto saver = Saver::Create(*engine, comm, Options()).value();
    for (const std::uint64_t size : {kBaseSize, kBaseSize + 100}) {
      TensorSpec tensor = ByteTensor("t", size);
      tensor.group = "frozen";
      const Bytes zeros(size);
      const std::uint64_t begin = comm.rank() == 0 ? 0 : kBaseSize / 2;
      const std::uint64_t end = comm.rank() == 0 ? kBaseSize / 2 : size;
      Declaration declaration;
      declaration.Add({.tensor = tensor, .region = Slice(begin, end)}).value();
      Sources sources(declaration);
      ASSERT_TRUE(sources.Bind(0, MemoryView::Host(zeros.data(), end - begin)).ok());
      const auto info = SaveInMode(*saver, SaveTarget::InSeries("run"), {.step = size}, sources);
      ASSERT_TRUE(info.ok()) << info.error().ToString();
      EXPECT_EQ(info->reused_blob_count, 0u);
    }
  });
}

// R-CMT-35: no failure.
TEST_F(FrozenTest, WhatCannotBeLinkedIsWritten) {
  const LoraState state;
  const auto expect_written = [&](std::string_view what, const SaverOptions& options,
                                  const SaveTarget& target) {
    SCOPED_TRACE(what);
    const auto info = Save(state, options, target);
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    EXPECT_EQ(info->reused_blob_count, 0u);
    ExpectHolds(*info, state);
  };
  SaverOptions alone = Options();
  alone.frozen_full_every = 1;
  const CommitInfo first = Save(state).value();
  expect_written("never to link", alone, SaveTarget::InSeries("run"));
  expect_written("a place of the parent that is not known", Options(),
                 SaveTarget::Directory("elsewhere", first.as_parent()));
  expect_written("a parent that is gone", Options(),
                 SaveTarget::Directory("gone", first.as_parent(), "run/nothing"));
  for (const std::string& name : Blobs(first)) {
    const Bytes content = ReadWholeFile(*memory_, first.directory, name);
    const auto directory = memory_->OpenDirectory(first.directory).value();
    ASSERT_TRUE(directory->Remove(name).ok());
    const auto file = directory->CreateExclusive(name, {}).value();
    ASSERT_TRUE(file->WriteAt(0, ByteSpan(content).first(content.size() - 4096)).ok());
  }
  expect_written("a blob that lost its end", Options(),
                 SaveTarget::Directory("short", first.as_parent(), first.directory));
}

// R-CMT-35: whatever the file system answers, and whenever the parent goes.
TEST_F(FrozenTest, AParentThatGoesMeanwhileCostsTheLinkAlone) {
  const LoraState state;
  const auto save_while = [&](const std::string& series, StorageOp op, int nth,
                              const std::function<void(const CommitInfo&)>& meanwhile) {
    const SaveTarget target = SaveTarget::InSeries(series);
    const CommitInfo first = Save(state, Options(), target).value();
    int seen = 0;
    storage_->SetHook([&](StorageOp now, std::string_view name) {
      if (now == op && name.ends_with(".blob") && ++seen == nth) meanwhile(first);
    });
    auto second = Save(state, Options(), target);
    EXPECT_GE(seen, nth) << series;
    storage_->Heal();
    ExpectHolds(Save(state, Options(), target).value(), state);
    return second;
  };
  const auto remove = [&](const CommitInfo& first) {
    const auto directory = memory_->OpenDirectory(first.directory).value();
    for (const EntryInfo& entry : directory->List().value()) {
      ASSERT_TRUE(directory->Remove(entry.name).ok());
    }
  };
  const auto before = save_while("before", StorageOp::kLink, 1, remove);
  ASSERT_TRUE(before.ok()) << before.error().ToString();
  EXPECT_EQ(before->reused_blob_count, 0u);
  ExpectHolds(*before, state);
  // One that has lost bytes when it is linked.
  const auto shorter = save_while("shorter", StorageOp::kLink, 1, [&](const CommitInfo& first) {
    const auto directory = memory_->OpenDirectory(first.directory).value();
    for (const std::string& name : Blobs(first)) {
      ASSERT_TRUE(directory->Remove(name).ok());
      ASSERT_TRUE(directory->CreateExclusive(name, {}).ok());
    }
  });
  ASSERT_TRUE(shorter.ok()) << shorter.error().ToString();
  EXPECT_EQ(shorter->reused_blob_count, 0u);
  ExpectHolds(*shorter, state);
  const auto after = save_while("after", StorageOp::kSyncFile, 1, remove);
  ASSERT_TRUE(after.ok()) << after.error().ToString();
  EXPECT_EQ(after->reused_blob_count, 1u) << "the link keeps the bytes";
  ExpectHolds(*after, state);
  // One that loses bytes behind the link is noticed by the commit (R-CMT-02): no checkpoint.
  const auto cut = save_while("cut", StorageOp::kSyncFile, 1, [&](const CommitInfo& first) {
    for (const EntryInfo& entry : memory_->OpenDirectory("cut").value()->List().value()) {
      if ("cut/" + entry.name == first.directory) continue;
      const auto directory = memory_->OpenDirectory("cut/" + entry.name).value();
      for (const std::string& name : Blobs(first)) {
        if (directory->Remove(name).ok()) static_cast<void>(directory->CreateExclusive(name, {}));
      }
    }
  });
  EXPECT_THAT(cut.status(), FailsRule(Code::kIncomplete, "R-CMT-02"));
}

TEST_F(FrozenTest, WhateverALinkFailsWithTheGroupIsWritten) {
  const LoraState state;
  for (const Code code :
       {Code::kUnsupported, Code::kNotFound, Code::kAlreadyExists, Code::kIo, Code::kNoSpace}) {
    SCOPED_TRACE(CodeName(code));
    const SaveTarget target = SaveTarget::InSeries("run-" + std::string(CodeName(code)));
    ASSERT_TRUE(Save(state, Options(), target).ok());
    storage_->Fail({.op = StorageOp::kLink, .nth = 0, .error = Status(code, "injected")});
    const auto second = Save(state, Options(), target);
    storage_->Heal();
    ASSERT_TRUE(second.ok()) << second.error().ToString();
    EXPECT_EQ(second->reused_blob_count, 0u);
    ExpectHolds(*second, state);
  }
}

// Links whose names are not durable are no part of a checkpoint.
TEST_F(FrozenTest, ALinkThatIsNotSyncedFailsTheSave) {
  const LoraState state;
  ASSERT_TRUE(Save(state).ok());
  storage_->SetHook([&](StorageOp op, std::string_view) {
    if (op == StorageOp::kLink) storage_->Fail({.op = StorageOp::kSyncDirectory});
  });
  EXPECT_THAT(Save(state).status(), HasCode(Code::kIo));
  storage_->Heal();
  EXPECT_EQ(Save(state).value().reused_blob_count, 1u);
}

TEST_F(FrozenTest, SoManyCheckpointsShareAFile) {
  const LoraState state;
  SaverOptions options = Options();
  options.frozen_full_every = 3;
  std::vector<std::uint64_t> reused;
  for (int save = 0; save < 7; ++save) {
    reused.push_back(Save(state, options).value().reused_blob_count);
  }
  EXPECT_THAT(reused, ::testing::ElementsAre(0u, 1u, 1u, 0u, 1u, 1u, 0u));
  options.frozen_full_every = 0;
  const auto engine = SmallEngine(storage_);
  const auto comm = SelfCommunicator();
  EXPECT_THAT(Saver::Create(*engine, *comm, options).status(), HasCode(Code::kInvalidArgument));
}

// Each operation of a save that links fails once: the older checkpoint stays, a failed save leaves
// nothing, the next one is whole.
TEST_F(FrozenTest, AFaultCostsNoOtherCheckpoint) {
  const LoraState state;
  int failures = 0;
  int links_refused = 0;
  for (int nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    const SaveTarget target = SaveTarget::InSeries("run-" + std::to_string(nth));
    const CommitInfo first = Save(state, Options(), target).value();
    const std::uint64_t faults_before = storage_->fault_count();
    storage_->Fail({.any_op = true, .nth = nth});
    const auto second = Save(state, Options(), target);
    const bool is_met = storage_->fault_count() > faults_before;
    storage_->Heal();
    ExpectHolds(first, state);
    failures += second.ok() ? 0 : 1;
    if (second.ok()) {
      links_refused += second->reused_blob_count == 0 ? 1 : 0;
      ExpectLoads(*second, state);  // a probe may be left
    } else if (!OutcomeIsUnknown(second.error())) {
      const SeriesListing listing = Series(target.path(), memory_).List().value();
      for (const SeriesEntry& entry : listing.entries) {
        EXPECT_EQ(entry.path, first.directory) << second.error().ToString();
      }
    }
    ExpectHolds(Save(state, Options(), target).value(), state);
    if (!is_met || HasFailure()) break;
  }
  EXPECT_GT(failures, 10);
  EXPECT_GT(links_refused, 3);
}

}  // namespace
}  // namespace sealpoint::testing
