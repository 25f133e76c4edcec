// SPDX-License-Identifier: Apache-2.0
//
// Replicas that nobody declared: found, written once, compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/container/mini_container.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/save_job.h"

namespace sealpoint::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kTensorSize = 100000;
const SaverOptions kFindsReplicas{.find_replicas = true, .compare_replicas = true};

void OnRanks(const SaverOptions& options, const std::function<void(SaveJob&)>& body,
             int size_min = 1) {
  for (const int size : RankCounts()) {
    if (size < size_min || ::testing::Test::HasFailure()) continue;
    WithRanks(size, [&](Communicator& comm) {
      SaveJob job(comm, options);
      body(job);
    });
  }
}

void AddTensor(Declaration& declaration, const std::string& name, std::vector<int> replicas = {}) {
  declaration.Add({.tensor = ByteTensor(name, kTensorSize), .replicas = std::move(replicas)})
      .value();
}

void AddObject(Declaration& declaration, const std::string& name,
               const std::string& media_type = "text/plain") {
  EXPECT_TRUE(declaration.AddObject({.name = name, .media_type = media_type}).ok());
}

// Saves with the usual content, but for `name`, in which the last byte is another one on this rank.
Result<CommitInfo> SaveSpoilt(SaveJob& job, const Declaration& declaration,
                              const std::string& name) {
  Sources sources(declaration);
  std::map<std::string, Bytes> memory;
  for (const DeclaredTensor& held : declaration.tensors()) {
    Bytes& bytes = memory[held.tensor.name] = Content(held.tensor.name, kTensorSize);
    if (held.tensor.name == name) bytes.back() ^= std::byte{1};
    EXPECT_TRUE(sources.Bind(held.tensor.name, MemoryView::Host(bytes)).ok());
  }
  for (const ObjectSpec& object : declaration.objects()) {
    Bytes& bytes = memory[object.name] = Content(object.name, 10);
    if (object.name == name) bytes.back() ^= std::byte{1};
    EXPECT_TRUE(sources.BindObject(object.name, bytes).ok());
  }
  return SaveInMode(*job.saver, SaveTarget::Directory(job.path("spoilt")), {}, sources, [] {});
}

// Expects an error of a save in which only the last rank holds something else under this name.
void ExpectRefused(SaveJob& job, const Declaration& declaration, const std::string& name) {
  const Status status = SaveSpoilt(job, declaration, job.is_last() ? name : "").status();
  ASSERT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-33"));
  EXPECT_EQ(status.place().tensor + status.place().object, name);
  EXPECT_EQ(status.place().rank, job.size() - 1);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("replicas differ: digest "), HasSubstr("on rank"),
                                      HasSubstr(" on rank " + std::to_string(job.size() - 1))));
  job.ExpectSameOnAllRanks(status);
  job.Barrier();
  EXPECT_THAT(FileNames(*job.posix, job.path("")), IsEmpty());
  job.Barrier();
}

TEST(SaveReplicas, AreFoundAndWrittenOnce) {
  OnRanks(kFindsReplicas, [](SaveJob& job) {
    const auto rank = static_cast<std::uint64_t>(job.rank());
    const auto size = static_cast<std::uint64_t>(job.size());
    Declaration declaration;
    AddTensor(declaration, "everywhere");
    // Rows that two neighbours have: ranks 0 and 1, ranks 2 and 3, …
    const std::uint64_t pairs = (size + 1) / 2;
    declaration
        .Add({.tensor = {.name = "pairs",
                         .dtype = DType::kUInt8,
                         .shape = {pairs, kTensorSize},
                         .chunk_size_bytes = kChunkSizeMinBytes},
              .region = Region::Of({.offset = {rank / 2, 0}, .extent = {1, kTensorSize}})})
        .value();
    AddTensor(declaration, "own." + std::to_string(rank));
    // Nobody is a replica of nothing.
    declaration.Add({.tensor = ByteTensor("everywhere", kTensorSize), .region = Slice(0, 0)})
        .value();
    AddObject(declaration, "common");
    AddObject(declaration, "rng." + std::to_string(rank));
    const auto info = job.Save(declaration);
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    const auto checkpoint = OpenFrom(job.posix, job.path("ckpt"));
    EXPECT_EQ(checkpoint->raw_bytes(),
              kTensorSize * (1 + pairs + size) + 6 + 5 * size);  // and objects
    EXPECT_EQ(LoadWhole(*checkpoint, "everywhere"), Content("everywhere", kTensorSize));
    EXPECT_EQ(LoadWhole(*checkpoint, "pairs"), Content("pairs", kTensorSize * pairs));
    EXPECT_EQ(checkpoint->object_count(), 1 + size);
    EXPECT_EQ(AsText(checkpoint->ReadObject("common").value()), "common");
    // What is held together is divided.
    std::set<BlobId> blobs;
    for (const char* name : {"everywhere", "pairs"}) {
      for (const ShardInfo& shard : checkpoint->Shards(name).value()) blobs.insert(shard.blob);
    }
    EXPECT_EQ(blobs.size(), size);
  });
}

// What a rank declares in the test below: another tensor in each phase of the program.
Declaration DeclarationOf(int phase) {
  Declaration declaration;
  AddTensor(declaration, "phase." + std::to_string(phase));
  AddObject(declaration, "common");
  return declaration;
}

TEST(SaveReplicas, NeedOneReductionLessIfTheCallerComparedTheCall) {
  OnRanks(kFindsReplicas, [](SaveJob& job) {
    int saves = 0;
    Status status;
    const auto reductions_of = [&](int phase, const SaveOptions& options) {
      const int before = job.comm.reduction_count();
      const auto target = SaveTarget::Directory(job.path("save." + std::to_string(saves++)));
      status = job.Save(DeclarationOf(phase), target, options).status();
      return job.comm.reduction_count() - before;
    };
    const auto compared = [](int phase) {
      return SaveOptions{.declarations = DeclarationOf(phase).ComputeDigest()};
    };
    reductions_of(0, {});
    const int usual = reductions_of(0, {});
    for (int phase = 0; phase < 2; ++phase) {
      reductions_of(phase, compared(phase));  // searches
      EXPECT_EQ(reductions_of(phase, compared(phase)), usual - 1);
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
    const auto checkpoint = OpenFrom(job.posix, job.path("save.5"));
    EXPECT_EQ(LoadWhole(*checkpoint, "phase.1"), Content("phase.1", kTensorSize));

    SaveOptions failing = compared(1);
    if (job.is_last()) failing.failure = Status(Code::kIo, "of the program");
    reductions_of(1, failing);
    EXPECT_EQ(status.message(), "of the program");
    job.ExpectSameOnAllRanks(status);

    reductions_of(job.is_last() ? 0 : 1, compared(1));
    EXPECT_THAT(status.message(), HasSubstr("the declaration of this rank has changed"));
    job.ExpectSameOnAllRanks(status);
    reductions_of(0, {});
    EXPECT_TRUE(status.ok()) << status.ToString();
  });
}

TEST(SaveReplicas, OfEachObjectGoToOneOfTheRanksThatWrite) {
  OnRanks(
      {.writer_ranks = {1}, .find_replicas = true},
      [](SaveJob& job) {
        Declaration declaration;
        for (int i = 0; i < 20; ++i) AddObject(declaration, "object." + std::to_string(i));
        const auto info = job.Save(declaration);
        ASSERT_TRUE(info.ok()) << info.error().ToString();
        EXPECT_EQ(info->blob_count, 1u);
      },
      2);
}

TEST(SaveReplicas, ThatDifferAreRefused) {
  OnRanks(
      kFindsReplicas,
      [](SaveJob& job) {
        Declaration declaration;
        for (const char* name : {"a", "b", "c"}) AddTensor(declaration, name);
        AddObject(declaration, "args");
        for (const char* name : {"a", "b", "c", "args"}) ExpectRefused(job, declaration, name);
        // Only what differs was at fault.
        EXPECT_TRUE(SaveSpoilt(job, declaration, "").ok());
      },
      2);
}

TEST(SaveReplicas, ThatAreDeclaredAreComparedToo) {
  OnRanks(
      {.compare_replicas = true},
      [](SaveJob& job) {
        Declaration declaration;
        AddTensor(declaration, "t", AllRanks(job.comm));
        ExpectRefused(job, declaration, "t");
      },
      2);
}

TEST(SaveReplicas, OfOtherMediaTypesDiffer) {
  OnRanks(
      kFindsReplicas,
      [](SaveJob& job) {
        Declaration declaration;
        AddObject(declaration, "args", job.is_last() ? "text/html" : "text/plain");
        const Status status = job.Save(declaration).status();
        EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-33"));
        EXPECT_EQ(status.place().object, "args");
      },
      2);
}

TEST(SaveReplicas, AreNotComparedUnlessAsked) {
  OnRanks(
      {.find_replicas = true},
      [](SaveJob& job) {
        Declaration declaration;
        AddTensor(declaration, "t");
        EXPECT_TRUE(SaveSpoilt(job, declaration, job.is_last() ? "t" : "").ok());
      },
      2);
}

TEST(SaveReplicas, WithOtherShapesAreNone) {
  OnRanks(
      kFindsReplicas,
      [](SaveJob& job) {
        Declaration declaration;
        declaration.Add({.tensor = ByteTensor("t", job.is_last() ? kTensorSize + 1 : kTensorSize)})
            .value();
        const Status status = job.Save(declaration).status();
        EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-18"));
        EXPECT_THAT(status.message(), HasSubstr("declare different shapes"));
        job.ExpectSameOnAllRanks(status);
      },
      2);
}

TEST(SaveReplicas, WithoutTheSearchAreHeldTwice) {
  OnRanks(
      {},
      [](SaveJob& job) {
        Declaration declaration;
        AddTensor(declaration, "t");
        EXPECT_THAT(job.Save(declaration).status(), FailsRule(Code::kInvalidArgument, "R-CMT-18"));
        Declaration objects;
        AddObject(objects, "args");
        EXPECT_THAT(job.Save(objects).status(), FailsRule(Code::kInvalidArgument, "R-CMT-18"));
      },
      2);
}

// The last rank gives up what all had, then a tensor that it had alone; what the others declare
// stays, but not who holds it.
TEST(SaveReplicas, AreSearchedAgainIfOneRankDeclaresSomethingElse) {
  OnRanks(
      kFindsReplicas,
      [](SaveJob& job) {
        const auto save = [&](const std::string& directory, bool last_has_all) {
          Declaration declaration;
          if (last_has_all || !job.is_last()) {
            AddTensor(declaration, "t");
            for (int i = 0; i < 8; ++i) AddObject(declaration, "object." + std::to_string(i));
          }
          if (job.is_last()) AddTensor(declaration, "own");
          const auto info = job.Save(declaration, directory);
          ASSERT_TRUE(info.ok()) << info.error().ToString();
          const auto checkpoint = OpenFrom(job.posix, job.path(directory));
          EXPECT_EQ(checkpoint->object_count(), 8u);
          EXPECT_EQ(LoadWhole(*checkpoint, "t"), Content("t", kTensorSize));
        };
        save("first", true);
        save("same", true);
        save("fewer", false);
        save("again", true);
      },
      2);
}

// Nothing changes in what any rank writes, only in who holds it.
TEST(SaveReplicas, AreSearchedAgainIfOnlyTheHoldersChange) {
  OnRanks(
      kFindsReplicas,
      [](SaveJob& job) {
        for (int i = 0; i < 4; ++i) {
          const std::string object = "object." + std::to_string(i);
          for (const char* holders : {"all", "but the last", "all again"}) {
            Declaration declaration;
            AddTensor(declaration, "own." + std::to_string(job.rank()));
            const bool is_held = std::string(holders) != "but the last" || !job.is_last();
            if (is_held) AddObject(declaration, object);
            const auto info = job.Save(declaration, object + holders);
            ASSERT_TRUE(info.ok()) << holders << ": " << info.error().ToString();
          }
        }
      },
      2);
}

TEST(SaveReplicas, AreFoundByAllRanksOrByNone) {
  for (const bool finds : {true, false}) {
    OnRanks(
        {},
        [&](SaveJob& job) {
          SaverOptions options{.deadline = std::chrono::minutes(1)};
          (finds ? options.find_replicas : options.compare_replicas) = job.is_last();
          job.saver = Saver::Create(*job.engine, job.comm, options).value();
          Declaration declaration;
          AddTensor(declaration, "t", AllRanks(job.comm));
          const Status status = job.Save(declaration).status();
          EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-17"));
          job.ExpectSameOnAllRanks(status);
        },
        2);
  }
}

TEST(SaveReplicas, AreNotSearchedIfARankHasNothingToOffer) {
  OnRanks(kFindsReplicas, [](SaveJob& job) {
    Declaration declaration;
    AddTensor(declaration, "t");
    const Sources unbound(declaration);
    const Bytes content = Content("t", kTensorSize);
    Sources bound(declaration);
    ASSERT_TRUE(bound.Bind("t", MemoryView::Host(content)).ok());
    const Status status = SaveInMode(*job.saver, SaveTarget::Directory(job.path("ckpt")), {},
                                     job.is_last() ? unbound : bound, [] {})
                              .status();
    EXPECT_THAT(status, HasCode(Code::kInvalidArgument));
    EXPECT_THAT(status.message(), HasSubstr("no memory is bound"));
    EXPECT_EQ(status.place().rank, job.size() - 1);
    job.ExpectSameOnAllRanks(status);
  });
}

}  // namespace
}  // namespace sealpoint::testing
