// SPDX-License-Identifier: Apache-2.0
//
// One rank fails or disagrees: all ranks learn the same cause, nothing is left, and the next save
// works.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/verify.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/save_job.h"

namespace sealpoint::testing {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Failed alike everywhere, left nothing, and the same saver works again.
void ExpectCleanFailure(SaveJob& job, const Status& status) {
  job.ExpectSameOnAllRanks(status);
  EXPECT_FALSE(OutcomeIsUnknown(status));
  EXPECT_THAT(FileNames(*job.posix, job.path("")), IsEmpty());
  job.Barrier();
  job.storage->Heal();
  const auto next = job.Save(UsualDeclaration(job.comm), "next");
  ASSERT_TRUE(next.ok()) << next.error().ToString();
  EXPECT_EQ(FindDamage(job.posix, job.path("next")), "");
}

TEST(SaveFailureTest, RefusesRanksWithAnotherTarget) {
  const auto other_target = [](SaveJob& job) {
    const std::string mine = job.is_last() ? "mine" : "ckpt";
    const Status status = job.Save(UsualDeclaration(job.comm), mine).status();
    EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-17"));
    EXPECT_EQ(status.place().rank, job.size() - 1);
    ExpectCleanFailure(job, status);
  };
  const auto other_step = [](SaveJob& job) {
    const Status status =
        job.Save(UsualDeclaration(job.comm), SaveTarget::Directory(job.path("ckpt")),
                 {.step = job.is_last() ? 6u : 5u})
            .status();
    EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-17"));
    EXPECT_EQ(status.place().rank, job.size() - 1);
    ExpectCleanFailure(job, status);
  };
  const auto series_of_that_name = [](SaveJob& job) {
    const SaveTarget target = job.is_last() ? SaveTarget::InSeries(job.path("ckpt"))
                                            : SaveTarget::Directory(job.path("ckpt"));
    const Status status = job.Save(UsualDeclaration(job.comm), target, {.step = 5}).status();
    EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-17"));
    ExpectCleanFailure(job, status);
  };
  OnJobs(other_target, 2);
  OnJobs(series_of_that_name, 2);
  OnJobs(other_step, 2);
}

struct Disagreement {
  std::string word;  // in the message
  std::function<void(TensorSpec&)> change;
};

// A newest checkpoint that cannot be read for a moment must not let the next one begin a new
// lineage with a sequence that is too small.
TEST(SaveFailureTest, RefusesASeriesOfWhichSomethingCannotBeRead) {
  OnJobs([](SaveJob& job) {
    const SaveTarget target = SaveTarget::InSeries(job.path("series"));
    ASSERT_TRUE(job.Save(UsualDeclaration(job.comm), target, {.step = 1}).ok());
    job.storage->Fail({.op = StorageOp::kOpenForRead, .name = "COMMIT"});
    const Status status = job.Save(UsualDeclaration(job.comm), target, {.step = 2}).status();
    EXPECT_THAT(status, HasCode(Code::kIo));
    job.ExpectSameOnAllRanks(status);
    job.storage->Heal();
    const auto next = job.Save(UsualDeclaration(job.comm), target, {.step = 2});
    ASSERT_TRUE(next.ok()) << next.error().ToString();
    EXPECT_EQ(next->sequence, 2u);
  });
}

TEST(SaveFailureTest, RefusesDeclarationsThatDisagree) {
  const std::vector<Disagreement> cases = {
      {"dtypes", [](TensorSpec& t) { t.dtype = DType::kInt8; }},
      {"shapes", [](TensorSpec& t) { t.shape = {t.shape[0] + 1}; }},
      {"chunk sizes", [](TensorSpec& t) { t.chunk_size_bytes = 8192; }},
      {"placements", [](TensorSpec& t) { t.placement = {"Replicate"}; }},
  };
  for (const Disagreement& disagreement : cases) {
    OnJobs(
        [&](SaveJob& job) {
          const auto rank = static_cast<std::uint64_t>(job.rank());
          TensorSpec tensor = ByteTensor("t", 100 * static_cast<std::uint64_t>(job.size()));
          if (job.is_last()) disagreement.change(tensor);
          Declaration declaration;
          declaration.Add({.tensor = tensor, .region = Slice(rank * 100, rank * 100 + 100)})
              .value();
          const Status status = job.Save(declaration).status();
          EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-18"));
          EXPECT_THAT(status.message(), HasSubstr(disagreement.word));
          EXPECT_EQ(status.place().tensor, "t");
          EXPECT_EQ(status.place().rank, job.size() - 1);
          ExpectCleanFailure(job, status);
        },
        2);
  }
}

TEST(SaveFailureTest, RefusesReplicaListsThatDifferFromTheHolders) {
  OnJobs(
      [](SaveJob& job) {
        std::vector<int> all(static_cast<std::size_t>(job.size()));
        std::iota(all.begin(), all.end(), 0);
        Declaration declaration;
        DeclaredTensor held{.tensor = ByteTensor("t", 100), .replicas = all};
        if (job.is_last()) held.replicas = {job.rank()};
        declaration.Add(held).value();
        const Status status = job.Save(declaration).status();
        EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-18"));
        EXPECT_EQ(status.place().rank, job.size() - 1);
        ExpectCleanFailure(job, status);
      },
      2);
}

TEST(SaveFailureTest, RefusesReplicaListsOfImpossibleRanks) {
  OnJobs([](SaveJob& job) {
    Declaration declaration;
    declaration.Add({.tensor = ByteTensor("t", 100), .replicas = {job.rank(), job.size()}}).value();
    const Status status = job.Save(declaration).status();
    EXPECT_THAT(status, HasCode(Code::kInvalidArgument));
    EXPECT_THAT(status.message(), HasSubstr("is not below"));
    EXPECT_EQ(status.place().tensor, "t");
    ExpectCleanFailure(job, status);
  });
}

TEST(SaveFailureTest, RefusesAReplicaListWithoutItsHolder) {
  OnJobs(
      [](SaveJob& job) {
        Declaration declaration;
        const int other = (job.rank() + 1) % job.size();
        declaration.Add({.tensor = ByteTensor("t", 100), .replicas = {other}}).value();
        const Status status = job.Save(declaration).status();
        EXPECT_THAT(status, HasCode(Code::kInvalidArgument));
        EXPECT_THAT(status.message(), HasSubstr("does not list itself"));
        ExpectCleanFailure(job, status);
      },
      2);
}

TEST(SaveFailureTest, RefusesAnObjectThatTwoRanksHold) {
  OnJobs(
      [](SaveJob& job) {
        Declaration declaration;
        ASSERT_TRUE(declaration.AddObject({.name = "rng", .media_type = "t"}).ok());
        const Status status = job.Save(declaration).status();
        EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-18"));
        EXPECT_EQ(status.place().object, "rng");
        ExpectCleanFailure(job, status);
      },
      2);
}

TEST(SaveFailureTest, RefusesHolesAndOverlapsBeforeTheFirstByte) {
  for (const bool is_hole : {true, false}) {
    OnJobs(
        [&](SaveJob& job) {
          const auto rank = static_cast<std::uint64_t>(job.rank());
          const auto size = static_cast<std::uint64_t>(job.size());
          std::uint64_t begin = rank * 100;
          if (job.is_last()) begin = is_hole ? begin + 1 : begin - 1;
          Declaration declaration;
          declaration
              .Add(
                  {.tensor = ByteTensor("t", 100 * size), .region = Slice(begin, rank * 100 + 100)})
              .value();
          const Status status = job.Save(declaration).status();
          EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-19"));
          EXPECT_EQ(status.place().tensor, "t");
          const std::uint64_t element = 100 * (size - 1) - (is_hole ? 0 : 1);
          EXPECT_THAT(status.message(), HasSubstr("[" + std::to_string(element) + "]"));
          if (!is_hole) {
            EXPECT_THAT(status.message(), HasSubstr("rank " + std::to_string(size - 1)));
          }
          EXPECT_THAT(job.storage->changes(), Not(Contains(HasSubstr(".blob"))));
          ExpectCleanFailure(job, status);
        },
        2);
  }
}

TEST(SaveFailureTest, RefusesAFullFileSystem) {
  for (const SpaceInfo& space : {SpaceInfo{.free_bytes = 1000, .free_inodes = ~0ull},
                                 SpaceInfo{.free_bytes = ~0ull, .free_inodes = 2}}) {
    OnJobs([&](SaveJob& job) {
      job.storage->Claim(space);
      const Status status = job.Save(UsualDeclaration(job.comm)).status();
      EXPECT_THAT(status, FailsRule(Code::kNoSpace, "R-CMT-08"));
      EXPECT_THAT(job.storage->changes(), Not(Contains(HasSubstr(".blob"))));
      job.ExpectSameOnAllRanks(status);
      EXPECT_THAT(FileNames(*job.posix, job.path("")), IsEmpty());
    });
  }
}

// The last rank sees another directory of the same name, or none.
TEST(SaveFailureTest, NamesTheRankOnAnotherFileSystem) {
  for (const bool has_directory : {false, true}) {
    OnJobs(
        [&](SaveJob& job) {
          const auto elsewhere = MemoryStorage();
          if (has_directory) {
            ASSERT_TRUE(elsewhere->CreateDirectories(job.path("ckpt")).ok());
          }
          const auto engine = SmallEngine(
              job.is_last() ? elsewhere : std::static_pointer_cast<Storage>(job.storage));
          const auto saver =
              Saver::Create(*engine, job.comm, {.deadline = std::chrono::minutes(1)}).value();
          const Declaration nothing;
          const Sources sources(nothing);
          const Status status = SaveInMode(*saver, SaveTarget::Directory(job.path("ckpt")),
                                           {.allow_empty = true}, sources)
                                    .status();
          EXPECT_THAT(status, FailsRule(Code::kIo, "R-CMT-09"));
          EXPECT_EQ(status.place().rank, job.size() - 1);
          EXPECT_EQ(status.place().host, job.comm.host());
          ExpectCleanFailure(job, status);
        },
        2);
  }
}

struct RankFault {
  std::string what;
  StorageFault fault;
};

TEST(SaveFailureTest, EveryRankGetsTheFirstCause) {
  const std::vector<RankFault> cases = {
      {"create", {.op = StorageOp::kCreate, .name = ".blob"}},
      {"write", {.op = StorageOp::kWrite, .name = ".blob"}},
      {"full", {.op = StorageOp::kWrite, .name = ".blob", .error = {Code::kNoSpace, "full"}}},
      {"sync", {.op = StorageOp::kSyncFile, .name = ".blob"}},
      {"close", {.op = StorageOp::kClose, .name = ".blob"}},
  };
  for (const RankFault& rank_fault : cases) {
    OnJobs([&](SaveJob& job) {
      if (job.is_last()) job.storage->Fail(rank_fault.fault);
      const Status status = job.Save(UsualDeclaration(job.comm)).status();
      EXPECT_THAT(status, HasCode(rank_fault.fault.error.code())) << rank_fault.what;
      EXPECT_THAT(status.message(), HasSubstr(rank_fault.fault.error.message()));
      EXPECT_THAT(status.place().path, HasSubstr(".blob"));
      EXPECT_EQ(status.place().rank, job.size() - 1);
      EXPECT_EQ(status.place().host, job.comm.host());
      ExpectCleanFailure(job, status);
    });
  }
}

// Such a rank has nothing to save, and may not know where to: the others hear of it, and of no
// disagreement. A communicator that failed before is not that of the save.
TEST(SaveFailureTest, ARankThatFailedBeforeTellsTheOthers) {
  for (const auto& [code, told] :
       {std::pair(Code::kDevice, Code::kDevice), {Code::kComm, Code::kCancelled}}) {
    OnJobs([&, given = code, expected = told](SaveJob& job) {
      SaveOptions options{.step = 5};
      Declaration declaration;
      if (job.is_last()) {
        options = {.failure = Status(given, "the batch was lost")};
      } else {
        declaration = UsualDeclaration(job.comm);
      }
      const SaveTarget target = SaveTarget::Directory(job.path(job.is_last() ? "" : "ckpt"));
      const Status status = job.Save(declaration, target, options).status();
      EXPECT_THAT(status, HasCode(expected));
      EXPECT_THAT(status.message(), HasSubstr("the batch was lost"));
      EXPECT_EQ(status.place().rank, job.size() - 1);
      ExpectCleanFailure(job, status);
    });
  }
}

// It goes on to Save, as the examples do, and the others hear what Add or Bind said there.
TEST(SaveFailureTest, WhatABindingOfOneRankFailedWithIsTheErrorOnAllRanks) {
  for (const bool is_declared_wrong : {false, true}) {
    OnJobs([&](SaveJob& job) {
      const auto rows = static_cast<std::uint64_t>(job.size());
      const auto row = static_cast<std::uint64_t>(job.rank());
      const bool is_wrong = job.is_last();
      const TensorSpec spec{.name = "w", .dtype = DType::kF32, .shape = {rows, 8}};
      const std::uint64_t width = is_wrong && is_declared_wrong ? 9 : 8;
      const std::vector<float> memory(is_wrong && !is_declared_wrong ? 7 : 8);
      Declaration declaration;
      const Box box{.offset = {row, 0}, .extent = {1, width}};
      declaration.Add({.tensor = spec, .region = box}).IgnoreError();
      Sources sources(declaration);
      sources.Bind("w", MemoryView::Host(memory)).IgnoreError();
      const Status status =
          SaveInMode(*job.saver, SaveTarget::Directory(job.path("ckpt")), {}, sources).status();
      EXPECT_THAT(status, HasCode(Code::kInvalidArgument));
      EXPECT_THAT(status.message(),
                  HasSubstr(is_declared_wrong ? "leaves dimension 1 of shape"
                                              : "memory has 28 bytes, expected 32"));
      EXPECT_EQ(status.place().tensor, "w");
      EXPECT_EQ(status.place().rank, job.size() - 1);
      ExpectCleanFailure(job, status);
    });
  }
}

TEST(SaveFailureTest, EveryRankGetsTheErrorOfTheCommit) {
  const std::vector<RankFault> cases = {
      {"make directory", {.op = StorageOp::kCreateDirectories}},
      {"probe", {.op = StorageOp::kProbe}},
      {"shared probe", {.op = StorageOp::kCreate, .name = ".probe"}},
      {"free space", {.op = StorageOp::kFreeSpace}},
      {"index", {.op = StorageOp::kWrite, .name = ".index"}},
      {"marker", {.op = StorageOp::kSyncFile, .name = ".commit"}},
      {"publish", {.op = StorageOp::kPublish}},
  };
  for (const RankFault& rank_fault : cases) {
    OnJobs([&](SaveJob& job) {
      if (job.rank() == 0) job.storage->Fail(rank_fault.fault);
      const Status status = job.Save(UsualDeclaration(job.comm)).status();
      EXPECT_THAT(status, HasCode(Code::kIo)) << rank_fault.what;
      EXPECT_THAT(status.message(), HasSubstr("injected")) << rank_fault.what;
      EXPECT_EQ(status.place().rank, 0) << rank_fault.what;
      ExpectCleanFailure(job, status);
    });
  }
}

TEST(SaveFailureTest, UnwritableDirectoryIsTheSameErrorEverywhere) {
  OnJobs([](SaveJob& job) {
    const Bytes content = NoiseBytes(1, 10);
    if (job.rank() == 0) ReplaceFile(*job.posix, job.path(""), "file", &content);
    job.Barrier();
    const Status status = job.Save(UsualDeclaration(job.comm), "file/ckpt").status();
    EXPECT_THAT(status, HasCode(Code::kIo));
    job.ExpectSameOnAllRanks(status);
  });
}

TEST(SaveFailureTest, MemoryThatIsNotBoundIsTheSameErrorEverywhere) {
  OnJobs([](SaveJob& job) {
    Declaration declaration;
    if (job.is_last()) {
      declaration.Add({.tensor = ByteTensor("t", 5)}).value();
    }
    const Sources nothing(declaration);
    const Status status =
        SaveInMode(*job.saver, SaveTarget::Directory(job.path("ckpt")), {}, nothing).status();
    EXPECT_THAT(status, HasCode(Code::kInvalidArgument));
    EXPECT_EQ(status.place().tensor, "t");
    EXPECT_EQ(status.place().rank, job.size() - 1);
    ExpectCleanFailure(job, status);
  });
}

TEST(SaveFailureTest, AnObjectThatIsNotBoundIsTheSameErrorEverywhere) {
  OnJobs([](SaveJob& job) {
    Declaration declaration;
    if (job.is_last()) {
      ASSERT_TRUE(declaration.AddObject({.name = "o", .media_type = "t"}).ok());
    }
    const Sources nothing(declaration);
    const Status status =
        SaveInMode(*job.saver, SaveTarget::Directory(job.path("ckpt")), {}, nothing).status();
    EXPECT_THAT(status, HasCode(Code::kInvalidArgument));
    EXPECT_EQ(status.place().object, "o");
    ExpectCleanFailure(job, status);
  });
}

TEST(SaveFailureTest, ATensorDeclaredLateIsRefused) {
  OnJobs([](SaveJob& job) {
    Declaration declaration;
    const Sources sources(declaration);
    declaration.Add({.tensor = ByteTensor("empty", 0)}).value();
    const Status status =
        SaveInMode(*job.saver, SaveTarget::Directory(job.path("ckpt")), {}, sources).status();
    EXPECT_THAT(status, HasCode(Code::kInvalidArgument));
    ExpectCleanFailure(job, status);
  });
}

// The last rank's file system has a probe of that name and length, but with another content.
TEST(SaveFailureTest, AProbeOfAnotherContentIsAnotherFileSystem) {
  OnJobs(
      [](SaveJob& job) {
        if (job.is_last()) {
          job.storage->SetReadHook([](std::string_view, std::uint64_t, MutableByteSpan bytes) {
            bytes.front() ^= std::byte{1};
          });
        }
        const Status status = job.Save(UsualDeclaration(job.comm)).status();
        EXPECT_THAT(status, FailsRule(Code::kIo, "R-CMT-09"));
        ExpectCleanFailure(job, status);
      },
      2);
}

TEST(SaveFailureTest, ADeclarationThatGrewIsRefused) {
  OnJobs([](SaveJob& job) {
    Declaration declaration;
    const Sources sources(declaration);
    if (job.is_last()) {
      ASSERT_TRUE(declaration.AddObject({.name = "late", .media_type = "t"}).ok());
    }
    const Status status =
        SaveInMode(*job.saver, SaveTarget::Directory(job.path("ckpt")), {}, sources).status();
    EXPECT_THAT(status, HasCode(Code::kInvalidArgument));
    ExpectCleanFailure(job, status);
  });
}

TEST(SaveFailureTest, ReservedProvenanceIsRefusedBeforeTheFirstByte) {
  OnJobs([](SaveJob& job) {
    SaveOptions options;
    if (job.is_last()) options.provenance = {{"sealpoint.ranks", "0"}};
    const Status status =
        job.Save(UsualDeclaration(job.comm), SaveTarget::Directory(job.path("ckpt")), options)
            .status();
    EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-24"));
    ExpectCleanFailure(job, status);
  });
}

TEST(SaveFailureTest, RefusesADirectoryWithAMarker) {
  OnJobs([](SaveJob& job) {
    ASSERT_TRUE(job.Save(UsualDeclaration(job.comm)).ok());
    const auto files = FileNames(*job.posix, job.path("ckpt"));
    job.Barrier();
    const Status status = job.Save(UsualDeclaration(job.comm)).status();
    EXPECT_THAT(status, FailsRule(Code::kAlreadyExists, "R-CMT-01"));
    job.ExpectSameOnAllRanks(status);
    EXPECT_EQ(FileNames(*job.posix, job.path("ckpt")), files);
  });
}

TEST(SaveFailureTest, EachRankRemovesItsOwnFiles) {
  OnJobs([](SaveJob& job) {
    const Bytes content = NoiseBytes(1, 10);
    const std::string other = MiniSpec::MakeId(7).ToHex() + ".blob";
    if (job.rank() == 0) {
      ASSERT_TRUE(job.posix->CreateDirectories(job.path("ckpt")).ok());
      ReplaceFile(*job.posix, job.path("ckpt"), other, &content);
    }
    job.Barrier();
    if (job.is_last()) job.storage->Fail({.op = StorageOp::kSyncFile, .name = ".blob"});
    EXPECT_THAT(job.Save(UsualDeclaration(job.comm)).status(), HasCode(Code::kIo));
    job.Barrier();
    EXPECT_THAT(FileNames(*job.posix, job.path("ckpt")), ::testing::ElementsAre(other));
  });
}

// Rank 0 removes the directory, which it can only do once the slowest rank has removed its files.
TEST(SaveFailureTest, TheDirectoryGoesAfterTheSlowestRank) {
  OnJobs([](SaveJob& job) {
    if (job.is_last()) {
      job.storage->Fail({.op = StorageOp::kSyncFile, .name = ".blob"});
      job.storage->SetHook([](StorageOp op, std::string_view) {
        if (op == StorageOp::kRemove) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      });
    }
    EXPECT_THAT(job.Save(UsualDeclaration(job.comm)).status(), HasCode(Code::kIo));
    job.Barrier();
    EXPECT_FALSE(job.posix->OpenDirectory(job.path("ckpt")).ok());
    job.Barrier();
  });
}

TEST(SaveFailureTest, LeavesADirectoryThatWasThere) {
  OnJobs([](SaveJob& job) {
    if (job.rank() == 0) {
      ASSERT_TRUE(job.posix->CreateDirectories(job.path("ckpt")).ok());
    }
    job.Barrier();
    if (job.rank() == 0) job.storage->Fail({.op = StorageOp::kPublish});
    EXPECT_THAT(job.Save(UsualDeclaration(job.comm)).status(), HasCode(Code::kIo));
    job.Barrier();
    EXPECT_TRUE(job.posix->OpenDirectory(job.path("ckpt")).ok());
    EXPECT_THAT(FileNames(*job.posix, job.path("ckpt")), IsEmpty());
  });
}

TEST(SaveFailureTest, UnknownOutcomeIsUnknownToAllAndRemovesNothing) {
  OnJobs([](SaveJob& job) {
    // The second sync of the committer is the one behind the publication; each writer has one.
    if (job.rank() == 0) job.storage->Fail({.op = StorageOp::kSyncDirectory, .nth = 3});
    const Status status = job.Save(UsualDeclaration(job.comm)).status();
    EXPECT_TRUE(OutcomeIsUnknown(status)) << status.ToString();
    job.ExpectSameOnAllRanks(status);
    EXPECT_EQ(Verify(job.path("ckpt")).value().verdict, Verdict::kCommitted);
  });
}

// The verdict reaches a rank, but its communicator says that it did not.
TEST(SaveFailureTest, ABrokenCommunicatorIsNoAgreement) {
  OnJobs(
      [](SaveJob& job) {
        // Broadcasts of a save that succeeds: the announcement and the verdict.
        if (job.is_last()) job.comm.BreakAfterBroadcast(2);
        const auto info = job.Save(UsualDeclaration(job.comm));
        EXPECT_EQ(info.ok(), !job.is_last());
        job.Barrier();
        EXPECT_EQ(FindDamage(job.posix, job.path("ckpt")), "") << "nobody removed a blob";
        if (!job.is_last()) return;
        EXPECT_THAT(info.status(), FailsRule(Code::kTimeout, "R-CMT-07"));
        EXPECT_TRUE(OutcomeIsUnknown(info.status()));
        const Status later = job.Save(UsualDeclaration(job.comm), "more").status();
        EXPECT_THAT(later, HasCode(Code::kTimeout));
        EXPECT_FALSE(OutcomeIsUnknown(later)) << "it did not begin";
      },
      2);
}

// Rank 0 cannot publish without what each rank merged, so that who lost the others before it handed
// that over knows the outcome.
void ExpectAKnownFailure(const std::function<void(WatchedCommunicator&)>& break_it) {
  OnJobs([&](SaveJob& job) {
    break_it(job.comm);
    const Status status = job.Save(UsualDeclaration(job.comm)).status();
    EXPECT_THAT(status, HasCode(Code::kTimeout));
    EXPECT_FALSE(OutcomeIsUnknown(status));
    job.Barrier();
    EXPECT_THAT(FileNames(*job.posix, job.path("ckpt")), Not(Contains(EndsWith(".blob"))));
  });
}

// Before it there is that of the sums.
TEST(SaveFailureTest, NothingIsPublishedWhereTheBlobsAreNotKnownToAll) {
  ExpectAKnownFailure([](WatchedCommunicator& comm) { comm.BreakAfterAllGather(2); });
}

// Before it there is that of the names that were declared.
TEST(SaveFailureTest, NothingIsPublishedIfTheOwnersCannotMerge) {
  ExpectAKnownFailure([](WatchedCommunicator& comm) { comm.BreakAfterAllToAll(2); });
}

// Rank 0 knows what it committed, whatever becomes of the verdict.
TEST(SaveFailureTest, TheCommitterCallsDurableWhatIsDurable) {
  OnJobs([](SaveJob& job) {
    if (job.rank() == 0) job.comm.BreakAfterBroadcast(2);
    const auto info = job.Save(UsualDeclaration(job.comm));
    EXPECT_TRUE(info.ok()) << info.error().ToString();
    job.Barrier();
    EXPECT_EQ(FindDamage(job.posix, job.path("ckpt")), "");
    if (job.rank() == 0) {
      EXPECT_THAT(job.Save(UsualDeclaration(job.comm), "more").status(), HasCode(Code::kTimeout));
    }
  });
}

}  // namespace
}  // namespace sealpoint::testing
