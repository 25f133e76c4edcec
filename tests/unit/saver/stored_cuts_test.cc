// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sealpoint/blob_writer.h"
#include "sealpoint/collective_reader.h"
#include "sealpoint/commit.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/save_job.h"

// Tensors that are stored in boxes (TensorSpec::stored_cuts, SaverOptions::stored_cuts).

namespace sealpoint::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Shape kGridShape = {20, 18, 30};
constexpr std::uint64_t kGridBytes = std::uint64_t{20} * 18 * 30 * 4;

TensorSpec Grid(std::vector<std::uint64_t> cuts = {8, 8, 8}) {
  return {.name = "grid",
          .dtype = DType::kF32,
          .shape = kGridShape,
          .chunk_size_bytes = 4096,
          .stored_cuts = std::move(cuts)};
}

// The rows of a rank.
Region GridRows(const Communicator& comm) {
  const auto rank = static_cast<std::uint64_t>(comm.rank());
  const auto size = static_cast<std::uint64_t>(comm.size());
  const std::uint64_t begin = 20 * rank / size;
  return Region::Of({{begin, 0, 0}, {20 * (rank + 1) / size - begin, 18, 30}});
}

std::vector<ShardInfo> ShardsOf(const Checkpoint& checkpoint, const std::string& tensor) {
  return checkpoint.Shards(tensor).value();
}

void ExpectGrid(SaveJob& job, const std::string& directory) {
  EXPECT_EQ(FindDamage(job.posix, job.path(directory)), "");
  const auto checkpoint = OpenFrom(job.posix, job.path(directory));
  EXPECT_EQ(LoadWhole(*checkpoint, "grid"), Content("grid", kGridBytes));
}

TEST(StoredCuts, AllRanksCutAtTheSamePositions) {
  OnJobs([](SaveJob& job) {
    Declaration declaration;
    declaration.Add({.tensor = Grid(), .region = GridRows(job.comm)}).value();
    declaration.Add({.tensor = ByteTensor("plain", 9000), .replicas = AllRanks(job.comm)}).value();
    ASSERT_TRUE(declaration.AddObject({.name = "o" + std::to_string(job.rank())}).ok());
    for (const char* const directory : {"first", "second"}) {
      const auto saved = job.Save(declaration, directory);
      ASSERT_TRUE(saved.ok()) << saved.error().ToString();
      ExpectGrid(job, directory);
      const auto checkpoint = OpenFrom(job.posix, job.path(directory));
      EXPECT_EQ(LoadWhole(*checkpoint, "plain"), Content("plain", 9000));
      for (const ShardInfo& shard : ShardsOf(*checkpoint, "grid")) {
        const Box& box = shard.region.box;
        EXPECT_EQ(shard.region, Region::Of(box));
        for (std::size_t d = 0; d < 3; ++d) {
          EXPECT_EQ(box.offset[d] / 8, (box.offset[d] + box.extent[d] - 1) / 8);
        }
      }
      EXPECT_GE(ShardsOf(*checkpoint, "grid").size(), 3u * 3 * 4);
    }
  });
}

// Columns on load, rows on save.
TEST(StoredCuts, LoadOnAnotherMesh) {
  OnJobs([](SaveJob& job) {
    Declaration declaration;
    declaration.Add({.tensor = Grid({0, 5, 7}), .region = GridRows(job.comm)}).value();
    ASSERT_TRUE(job.Save(declaration).ok());
    const auto rank = static_cast<std::uint64_t>(job.rank());
    const auto size = static_cast<std::uint64_t>(job.size());
    const std::uint64_t begin = 30 * rank / size;
    const Region columns = Region::Of({{0, 0, begin}, {20, 18, 30 * (rank + 1) / size - begin}});
    Bytes out(columns.element_count() * 4);
    ReadRequest request;
    request.Add("grid", columns, MutableMemoryView::Host(out));
    const auto reader = CollectiveReader::Open(job.job, job.path("ckpt"));
    ASSERT_TRUE(reader.ok()) << reader.error().ToString();
    const auto loaded = (*reader)->Load(request);
    ASSERT_TRUE(loaded.ok()) << loaded.error().ToString();
    EXPECT_EQ(out, ExtractRegion(Content("grid", kGridBytes), kGridShape, 4, columns));
    // Every second column, of which coverage is not known.
    Bytes half(std::size_t{20} * 18 * 15 * 4);
    ReadRequest steps;
    steps.AddSlices("grid", {{0, 20, 1}, {0, 18, 1}, {0, 30, 2}}, MutableMemoryView::Host(half));
    ASSERT_TRUE((*reader)->Load(steps).ok());
    EXPECT_TRUE(std::equal(half.begin() + 4, half.begin() + 8,
                           Content("grid", kGridBytes).begin() + 2 * 4));
    LoadContract covers;
    covers.coverage = OnMismatch::kError;
    const Status uncovered = (*reader)->Load(steps, covers).status();
    job.ExpectSameOnAllRanks(uncovered);
    EXPECT_EQ(uncovered.code(), Code::kInvalidArgument);
  });
}

TEST(StoredCuts, ReplicasAreDividedAndFound) {
  for (const bool finds : {false, true}) {
    WithRanks(3, [&](Communicator& comm) {
      SaveJob job(comm, {.find_replicas = finds, .compare_replicas = finds});
      Declaration declaration;
      DeclaredTensor held{.tensor = Grid()};
      held.tensor.codec = Codec::kZstd;
      if (!finds) held.replicas = AllRanks(comm);
      declaration.Add(held).value();
      const auto saved = job.Save(declaration);
      ASSERT_TRUE(saved.ok()) << saved.error().ToString();
      EXPECT_EQ(saved->raw_bytes, kGridBytes);
      EXPECT_EQ(saved->blob_count, 3u);
      ExpectGrid(job, "ckpt");
    });
  }
}

TEST(StoredCuts, RunsAreCutIntoTheBoxesOfTheirRows) {
  OnJobs([](SaveJob& job) {
    const auto rank = static_cast<std::uint64_t>(job.rank());
    const auto size = static_cast<std::uint64_t>(job.size());
    Declaration declaration;
    const sealpoint::Run run{10800 * rank / size, 10800 * (rank + 1) / size};
    declaration
        .Add({.tensor = Grid({0, 0, 16}), .region = Region{Region::Whole(kGridShape).box, run}})
        .value();
    const auto saved = job.Save(declaration);
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
    ExpectGrid(job, "ckpt");
  });
}

// A plane is cheap if boxes are as thin as it is.
TEST(StoredCuts, PlanSaysWhatAPlaneCosts) {
  WithRanks(1, [](Communicator& comm) {
    SaveJob job(comm);
    const auto amplification = [&](const std::string& directory,
                                   const std::vector<std::uint64_t>& cuts) {
      Declaration declaration;
      declaration.Add({.tensor = Grid(cuts)}).value();
      EXPECT_TRUE(job.Save(declaration, directory).ok());
      ReadRequest request;
      request.Add("grid", Box{{0, 0, 7}, {20, 18, 1}}, MutableMemoryView::PlanOnly());
      const auto checkpoint = OpenFrom(job.posix, job.path(directory));
      const ReadPlan plan = checkpoint->Plan(request).value();
      EXPECT_EQ(plan.Summary().bytes_requested, 1440u);
      EXPECT_THAT(plan.Explain(), AllOf(HasSubstr("requested"), HasSubstr("read (")));
      return plan.Summary().amplification;
    };
    EXPECT_DOUBLE_EQ(amplification("rows", {}), 30.0);
    EXPECT_DOUBLE_EQ(amplification("boxes", {8, 8, 8}), 8.0);
    EXPECT_DOUBLE_EQ(amplification("planes", {0, 0, 1}), 1.0);
  });
}

TEST(StoredCuts, PatternsOfTheSaverApplyInOrder) {
  WithRanks(2, [](Communicator& comm) {
    SaveJob job(comm, {.stored_cuts = {{"gr?d", {0, 9, 0}}, {"*", {1000}}}});
    Declaration declaration;
    declaration.Add({.tensor = Grid({}), .region = GridRows(comm)}).value();
    if (comm.rank() == 1) declaration.Add({.tensor = ByteTensor("w", 4096)}).value();
    const auto saved = job.Save(declaration);
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
    ExpectGrid(job, "ckpt");
    const auto checkpoint = OpenFrom(job.posix, job.path("ckpt"));
    EXPECT_EQ(ShardsOf(*checkpoint, "grid").size(), 4u);
    EXPECT_EQ(ShardsOf(*checkpoint, "w").size(), 5u);
  });
}

// What a save with these options and this declaration is refused with, before a file is made.
std::string CutRefusal(SaveJob& job, const Declaration& declaration) {
  const auto saved = job.Save(declaration);
  if (saved.ok()) return "";
  job.ExpectSameOnAllRanks(saved.error());
  EXPECT_TRUE(FileNames(*job.posix, job.path("ckpt")).empty());
  return saved.error().ToString();
}

TEST(StoredCuts, WrongCutsNameTheTensor) {
  WithRanks(2, [](Communicator& comm) {
    Declaration declaration;
    EXPECT_THAT(declaration.Add({.tensor = Grid({8, 8})}).status().ToString(),
                AllOf(HasSubstr("grid"), HasSubstr("stored_cuts has 2 extents, expected 3")));
    Declaration good;
    good.Add({.tensor = Grid({}), .region = GridRows(comm)}).value();
    {
      SaveJob job(comm, {.stored_cuts = {{"*", {8, 8}}}});
      EXPECT_THAT(CutRefusal(job, good),
                  AllOf(HasSubstr("grid"), HasSubstr("stored_cuts has 2 extents, expected 3")));
    }
    {
      SaveJob job(comm, {.stored_cuts = {{"grid", {8, 8, 8}}, {"grud", {1}}}});
      EXPECT_THAT(CutRefusal(job, good), HasSubstr("the pattern grud of stored_cuts matches no"));
    }
    {
      SaveJob job(comm, {.stored_cuts = {{"grid", {1, 1, 1}}}, .limits = {.shard_count_max = 100}});
      EXPECT_THAT(CutRefusal(job, good),
                  AllOf(HasSubstr("grid"), HasSubstr("R-IDX-04"), HasSubstr("make 5400 boxes")));
    }
    {
      SaveJob job(comm, {.stored_cuts = {{"grid", {~std::uint64_t{0}, 0, 0}}}});
      EXPECT_TRUE(job.Save(good).ok());
    }
    EXPECT_FALSE(
        Saver::Create(*SmallEngine(MemoryStorage()), comm, {.stored_cuts = {{"grid\\", {}}}}).ok());
  });
}

TEST(StoredCuts, RanksThatDifferAreRefused) {
  WithRanks(2, [](Communicator& comm) {
    {
      SaveJob job(comm);
      Declaration declaration;
      const std::uint64_t cut = comm.rank() == 0 ? 8 : 4;
      declaration.Add({.tensor = Grid({0, 0, cut}), .region = GridRows(comm)}).value();
      EXPECT_THAT(CutRefusal(job, declaration),
                  AllOf(HasSubstr("grid"), HasSubstr("different stored cuts")));
    }
    const std::uint64_t cut = comm.rank() == 0 ? 8 : 4;
    SaveJob job(comm, {.stored_cuts = {{"grid", {cut, 0, 0}}}});
    Declaration declaration;
    declaration.Add({.tensor = Grid({}), .region = GridRows(comm)}).value();
    EXPECT_THAT(CutRefusal(job, declaration), HasSubstr("stored_cuts"));
  });
}

TEST(StoredCuts, FrozenBoxesAreLinked) {
  WithRanks(2, [](Communicator& comm) {
    SaveJob job(comm, {.frozen_groups = {"base"}});
    Declaration declaration;
    DeclaredTensor held{.tensor = Grid(), .region = GridRows(comm)};
    held.tensor.group = "base";
    declaration.Add(held).value();
    const auto target = SaveTarget::InSeries(job.path("run"));
    ASSERT_TRUE(job.Save(declaration, target, {.step = 1}).ok());
    const auto second = job.Save(declaration, target, {.step = 2});
    ASSERT_TRUE(second.ok()) << second.error().ToString();
    EXPECT_EQ(second->reused_blob_count, 2u);
  });
}

TEST(StoredCuts, BlobWriterCutsWhatItIsGiven) {
  const auto memory = MemoryStorage();
  const auto engine = SmallEngine(memory);
  ASSERT_TRUE(memory->CreateDirectories("d").ok());
  BlobWriterOptions options;
  options.limits.shard_count_max = 36;
  const auto writer = BlobWriter::Create(*engine, "d", options).value();
  const Bytes content = Content("grid", kGridBytes);
  ASSERT_TRUE(writer->Add(Grid(), Region::Whole(kGridShape), MemoryView::Host(content)).ok());
  const auto summaries = writer->Finish().value();
  ASSERT_TRUE(Commit(*memory, "d", {.step = 1}, summaries).ok());
  const auto checkpoint = OpenFrom(memory, "d");
  EXPECT_EQ(LoadWhole(*checkpoint, "grid"), content);
  EXPECT_EQ(ShardsOf(*checkpoint, "grid").size(), 36u);
  options.limits.shard_count_max = 35;
  const auto refusing = BlobWriter::Create(*engine, "d", options);
  EXPECT_THAT(
      (*refusing)->Add(Grid(), Region::Whole(kGridShape), MemoryView::Host(content)).ToString(),
      HasSubstr("make 36 boxes"));
}

}  // namespace
}  // namespace sealpoint::testing
