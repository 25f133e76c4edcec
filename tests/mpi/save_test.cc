// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "sealpoint/collective_reader.h"
#include "sealpoint/series.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/save_job.h"

namespace sealpoint::testing {
namespace {

using ::testing::Contains;

std::uint64_t UsualBytes(int size) {
  return static_cast<std::uint64_t>(size) * kUsualRows * kUsualColumns * 4 + kSharedSize;
}

void ExpectUsual(SaveJob& job, const std::string& directory) {
  const auto checkpoint = OpenFrom(job.posix, directory);
  const auto rows = static_cast<std::uint64_t>(job.size()) * kUsualRows;
  EXPECT_EQ(LoadWhole(*checkpoint, "w"), Content("w", rows * kUsualColumns * 4));
  EXPECT_EQ(LoadWhole(*checkpoint, "shared"), Content("shared", kSharedSize));
  const std::string last = "rng." + std::to_string(job.size() - 1);
  const ByteSpan bytes = AsBytes(last);
  EXPECT_EQ(checkpoint->ReadObject(last).value(), Bytes(bytes.begin(), bytes.end()));
}

TEST(SaveTest, PartsOfAllRanksBecomeOneCheckpoint) {
  OnJobs([](SaveJob& job) {
    const Declaration declaration = UsualDeclaration(job.comm);
    const auto info = job.Save(declaration);
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    EXPECT_EQ(info->directory, job.path("ckpt"));
    EXPECT_EQ(info->blob_count, static_cast<std::uint64_t>(job.size()));
    EXPECT_EQ(info->tensor_count, 2u);
    EXPECT_EQ(FindDamage(job.posix, job.path("ckpt")), "");
    ExpectUsual(job, job.path("ckpt"));
  });
}

TEST(SaveTest, EveryRankLearnsTheSame) {
  OnJobs([](SaveJob& job) {
    const auto info = job.Save(UsualDeclaration(job.comm));
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    const auto attempts = job.job.AllGather(info->attempt.bytes).value();
    for (const Bytes& other : attempts) {
      EXPECT_EQ(other, Bytes(info->attempt.bytes.begin(), info->attempt.bytes.end()));
    }
    EXPECT_GT(info->report.seconds(Phase::kWriteBlobs), 0);
  });
}

TEST(SaveTest, ReplicasAreWrittenOnceAndEvenly) {
  OnJobs([](SaveJob& job) {
    Declaration declaration;
    constexpr std::uint64_t kSize = 200000;
    declaration.Add({.tensor = ByteTensor("shared", kSize), .replicas = AllRanks(job.comm)})
        .value();
    const auto info = job.Save(declaration);
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    EXPECT_EQ(info->raw_bytes, kSize);
    const auto checkpoint = OpenFrom(job.posix, job.path("ckpt"));
    std::map<BlobId, std::uint64_t> bytes_of;
    for (const ShardInfo& shard : checkpoint->Shards("shared").value()) {
      bytes_of[shard.blob] += shard.region.element_count();
    }
    EXPECT_EQ(bytes_of.size(), static_cast<std::size_t>(job.size()));
    const std::uint64_t even = kSize / static_cast<std::uint64_t>(job.size());
    for (const auto& [blob, bytes] : bytes_of) {
      EXPECT_LE(bytes, even + kChunkSizeMinBytes);
      EXPECT_GE(bytes + kChunkSizeMinBytes, even);
    }
    EXPECT_EQ(LoadWhole(*checkpoint, "shared"), Content("shared", kSize));
  });
}

// With strides a view is that of the whole region, of which a rank writes only a run.
TEST(SaveTest, StridedReplicasAreDividedToo) {
  OnJobs([](SaveJob& job) {
    Declaration declaration;
    const TensorSpec tensor{.name = "s",
                            .dtype = DType::kUInt8,
                            .shape = {300, 200},
                            .chunk_size_bytes = kChunkSizeMinBytes};
    TensorSpec padded = tensor;
    padded.name = "padded";
    declaration.Add({.tensor = tensor, .replicas = AllRanks(job.comm)}).value();
    declaration.Add({.tensor = padded, .replicas = AllRanks(job.comm)}).value();
    const Bytes bytes = Content("s", 60000);
    Bytes wide(300 * 256);
    for (std::size_t row = 0; row < 300; ++row) {
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(row * 200), 200,
                  wide.begin() + static_cast<std::ptrdiff_t>(row * 256));
    }
    Sources sources(declaration);
    ASSERT_TRUE(sources.Bind("s", MemoryView::Host(bytes, {200, 1})).ok());
    ASSERT_TRUE(sources.Bind("padded", MemoryView::Host(wide, {256, 1})).ok());
    const auto info =
        SaveInMode(*job.saver, SaveTarget::Directory(job.path("ckpt")), SaveOptions{}, sources);
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    const auto checkpoint = OpenFrom(job.posix, job.path("ckpt"));
    EXPECT_EQ(LoadWhole(*checkpoint, "s"), bytes);
    EXPECT_EQ(LoadWhole(*checkpoint, "padded"), bytes);
  });
}

// Rank r holds every size-th slice of 777 bytes; the last rank of several holds nothing of it.
TEST(SaveTest, SeveralRegionsPerRankAndRanksWithNothing) {
  OnJobs([](SaveJob& job) {
    const int holders = job.size() > 1 ? job.size() - 1 : 1;
    Declaration declaration;
    constexpr std::uint64_t kSlices = 20;
    for (std::uint64_t i = 0; i < kSlices; ++i) {
      if (static_cast<int>(i) % holders != job.rank()) continue;
      declaration
          .Add({.tensor = ByteTensor("w", kSlices * 777), .region = Slice(i * 777, i * 777 + 777)})
          .value();
    }
    const auto info = job.Save(declaration);
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    EXPECT_EQ(info->blob_count, static_cast<std::uint64_t>(holders));
    EXPECT_EQ(FindDamage(job.posix, job.path("ckpt")), "");
    EXPECT_EQ(LoadWhole(*OpenFrom(job.posix, job.path("ckpt")), "w"), Content("w", kSlices * 777));
  });
}

TEST(SaveTest, NothingAtAllIsACheckpointIfThatIsAllowed) {
  OnJobs([](SaveJob& job) {
    const auto target = SaveTarget::Directory(job.path("ckpt"));
    const Status refused = job.Save(Declaration(), target).status();
    EXPECT_THAT(refused, HasCode(Code::kInvalidArgument));
    job.ExpectSameOnAllRanks(refused);
    EXPECT_THAT(FileNames(*job.posix, job.path("")), ::testing::IsEmpty());
    job.Barrier();
    const auto info = job.Save(Declaration(), target, {.allow_empty = true});
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    EXPECT_EQ(info->blob_count, 0u);
    EXPECT_EQ(FindDamage(job.posix, job.path("ckpt")), "");
  });
}

TEST(SaveTest, EmptyTensorsMayBeDeclaredByEverybody) {
  OnJobs([](SaveJob& job) {
    Declaration declaration;
    declaration.Add({.tensor = {.name = "none", .dtype = DType::kF32, .shape = {0, 4}}}).value();
    const auto info = job.Save(declaration);
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    EXPECT_EQ(OpenFrom(job.posix, job.path("ckpt"))->FindTensor("none")->shape, (Shape{0, 4}));
  });
}

// As particles are: each rank has a number of its own, which may be 0, and all may have none.
TEST(SaveTest, ARankWithoutElementsNeedsNoBranch) {
  for (const std::uint64_t most : {3u, 0u}) {
    OnJobs([&](SaveJob& job) {
      const auto count_of = [&](int rank) { return rank % 2 == 0 ? most : 0; };
      std::uint64_t begin = 0, total = 0;
      for (int rank = 0; rank < job.size(); ++rank) {
        if (rank < job.rank()) begin += count_of(rank);
        total += count_of(rank);
      }
      const Region own = Slice(begin, begin + count_of(job.rank()));
      Declaration declaration;
      declaration.Add({.tensor = ByteTensor("ids", total), .region = own}).value();
      // A second part of the rank, which is never there.
      declaration.Add({.tensor = ByteTensor("ids", total), .region = Slice(total, total)}).value();
      const auto info = job.Save(declaration);
      ASSERT_TRUE(info.ok()) << info.error().ToString();
      EXPECT_EQ(info->tensor_count, 1u);
      EXPECT_EQ(FindDamage(job.posix, job.path("ckpt")), "");
      const auto reader =
          CollectiveReader::Open(job.comm, job.path("ckpt"), {.storage = job.posix}).value();
      Bytes loaded(count_of(job.rank()));
      ReadRequest request;
      request.Add("ids", own, MutableMemoryView::Host(loaded));
      const auto report = reader->Load(request, {.coverage = OnMismatch::kError});
      ASSERT_TRUE(report.ok()) << report.error().ToString();
      const Bytes all = Content("ids", total);
      EXPECT_EQ(loaded, Bytes(all.begin() + static_cast<std::ptrdiff_t>(begin),
                              all.begin() + static_cast<std::ptrdiff_t>(own.run.end + begin)));
    });
  }
}

TEST(SaveTest, ATensorOfWhichNoRankHoldsAnElementIsRefused) {
  OnJobs([](SaveJob& job) {
    Declaration declaration;
    declaration.Add({.tensor = ByteTensor("w", 10), .region = Slice(10, 10)}).value();
    const Status status = job.Save(declaration).status();
    EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-19"));
    EXPECT_EQ(status.place().tensor, "w");
    job.ExpectSameOnAllRanks(status);
  });
}

TEST(SaveTest, ParentIsTheNewestCommitted) {
  OnJobs([](SaveJob& job) {
    const Declaration declaration = UsualDeclaration(job.comm);
    const SaveTarget target = SaveTarget::InSeries(job.path("series"));
    AttemptId parent;
    for (std::uint64_t step = 1; step <= 3; ++step) {
      const auto info = job.Save(declaration, target, {.step = 10 * step});
      ASSERT_TRUE(info.ok()) << info.error().ToString();
      EXPECT_EQ(info->sequence, step);
      EXPECT_EQ(info->parent, parent);
      EXPECT_EQ(info->directory,
                job.path("series/") + SeriesDirectoryName(10 * step, info->attempt));
      parent = info->attempt;
    }
    EXPECT_EQ(Series(job.path("series")).Newest().value().entry.attempt, parent);
    ExpectUsual(job, Series(job.path("series")).Newest().value().entry.path);
  });
}

TEST(SaveTest, RefusesASeriesWithoutAStep) {
  OnJobs([](SaveJob& job) {
    const auto info =
        job.Save(UsualDeclaration(job.comm), SaveTarget::InSeries(job.path("series")));
    EXPECT_THAT(info.status(), FailsRule(Code::kInvalidArgument, "R-SER-13"));
    job.ExpectSameOnAllRanks(info.status());
  });
}

TEST(SaveTest, CallerChoosesDirectoryAndParent) {
  OnJobs([](SaveJob& job) {
    const ParentRef parent{MiniSpec::MakeId(6), 41};
    const auto info = job.Save(UsualDeclaration(job.comm),
                               SaveTarget::Directory(job.path("deep/er/ckpt"), parent),
                               {.step = 5,
                                .mesh = {{"data", 2}, {"tensor", 4}},
                                .provenance = {{"rank", std::to_string(job.rank())}}});
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    EXPECT_EQ(info->sequence, 42u);
    EXPECT_EQ(info->step, 5u);
    const auto checkpoint = OpenFrom(job.posix, job.path("deep/er/ckpt"));
    EXPECT_EQ(checkpoint->parent(), parent.attempt);
    EXPECT_EQ(checkpoint->mesh(), (MeshAxes{{"data", 2}, {"tensor", 4}}));
    EXPECT_THAT(checkpoint->provenance(), Contains(ProvenanceList::value_type("rank", "0")));
    EXPECT_THAT(checkpoint->provenance(), Contains(ProvenanceList::value_type(
                                              "sealpoint.ranks", std::to_string(job.size()))));
  });
}

TEST(SaveTest, SecondSaveExchangesNoDeclarations) {
  OnJobs([](SaveJob& job) {
    const Declaration declaration = UsualDeclaration(job.comm);
    // Each save exchanges what its blobs hold; beside it there is one of declarations, or none.
    ASSERT_TRUE(job.Save(declaration, "first").ok());
    EXPECT_EQ(job.comm.exchange_count(), 2);
    ASSERT_TRUE(job.Save(declaration, "second").ok());
    EXPECT_EQ(job.comm.exchange_count(), 3);
    // One more object on the last rank alone.
    Declaration changed = declaration;
    if (job.is_last()) {
      ASSERT_TRUE(changed.AddObject({.name = "new", .media_type = "text/plain"}).ok());
    }
    ASSERT_TRUE(job.Save(changed, "third").ok());
    EXPECT_EQ(job.comm.exchange_count(), 5);
    EXPECT_TRUE(OpenFrom(job.posix, job.path("third"))->FindObject("new").has_value());
    ExpectUsual(job, job.path("third"));
  });
}

TEST(SaveTest, ATensorAndAnObjectMayHaveOneName) {
  OnJobs([](SaveJob& job) {
    Declaration declaration;
    if (job.is_last()) {
      declaration.Add({.tensor = ByteTensor("x", 100)}).value();
      ASSERT_TRUE(declaration.AddObject({.name = "x", .media_type = "text/plain"}).ok());
    }
    ASSERT_TRUE(job.Save(declaration).ok());
    EXPECT_EQ(job.comm.exchange_count(), 2) << "no declaration was sent";
    EXPECT_EQ(LoadWhole(*OpenFrom(job.posix, job.path("ckpt")), "x"), Content("x", 100));
  });
}

TEST(SaveTest, PayloadIsStoredOnce) {
  OnJobs([](SaveJob& job) {
    const auto info = job.Save(UsualDeclaration(job.comm));
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    std::uint64_t objects = 0;
    for (int rank = 0; rank < job.size(); ++rank) objects += 4 + std::to_string(rank).size();
    EXPECT_EQ(info->raw_bytes, UsualBytes(job.size()) + objects);
  });
}

}  // namespace
}  // namespace sealpoint::testing
