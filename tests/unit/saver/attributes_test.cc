// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sealpoint/blob_writer.h"
#include "sealpoint/commit.h"
#include "sealpoint/repack.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/save_job.h"

// Attributes that a save stores (spec/attributes.md).

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;

Attributes Of(const std::string& units) { return Attributes::Make({{"units", units}}).value(); }

// Rows of "t" on each rank.
DeclaredTensor Rows(const SaveJob& job, const Attributes& attributes) {
  const auto rank = static_cast<std::uint64_t>(job.rank());
  return {.tensor = {.name = "t",
                     .dtype = DType::kF32,
                     .shape = {static_cast<std::uint64_t>(job.size()), 5},
                     .attributes = attributes},
          .region = Region::Of({{rank, 0}, {1, 5}})};
}

TEST(SaveAttributes, OfTensorsAndOfTheCheckpointAreStored) {
  WithRanks(3, [](Communicator& comm) {
    SaveJob job(comm);
    Declaration declaration = UsualDeclaration(job.comm);
    declaration.Add(Rows(job, Of("K"))).value();
    // The second save knows the plan. Of the checkpoint's attributes those of rank 0 are stored.
    for (const std::string directory : {"first", "second"}) {
      const Attributes own = Of("of rank " + std::to_string(job.rank()));
      const auto saved =
          job.Save(declaration, SaveTarget::Directory(job.path(directory)), {.attributes = own});
      ASSERT_TRUE(saved.ok()) << saved.error().ToString();
      EXPECT_EQ(FindDamage(job.posix, job.path(directory)), "");
      const auto checkpoint = OpenFrom(job.posix, job.path(directory));
      EXPECT_EQ(checkpoint->attributes(), Of("of rank 0"));
      EXPECT_EQ(checkpoint->FindTensor("t")->attributes, Of("K"));
      EXPECT_TRUE(checkpoint->FindTensor("shared")->attributes.empty());
      job.Barrier();
    }
  });
}

TEST(SaveAttributes, RanksAgreeOnTheAttributesOfATensor) {
  for (const std::string other : {"", "C"}) {
    WithRanks(3, [&](Communicator& comm) {
      SaveJob job(comm);
      Declaration declaration;
      const Attributes differs = other.empty() ? Attributes() : Of(other);
      declaration.Add(Rows(job, comm.rank() == 2 ? differs : Of("K"))).value();
      const Status status = job.Save(declaration).status();
      EXPECT_EQ(status.code(), Code::kInvalidArgument);
      EXPECT_EQ(status.place().rule, "R-ATT-07");
      EXPECT_EQ(status.place().tensor, "t");
      EXPECT_THAT(status.message(), HasSubstr("and 2 declare different attributes"));
      job.ExpectSameOnAllRanks(status);
    });
  }
}

// The header of a blob, which says that attributes are there, is written first.
TEST(SaveAttributes, AWriterBeginsABlobForThem) {
  WithRanks(1, [](Communicator& comm) {
    SaveJob job(comm);
    const Bytes bytes = Content("t", 20);
    ASSERT_TRUE(job.posix->CreateDirectories(job.path("ckpt")).ok());
    auto writer = BlobWriter::Create(*job.engine, job.path("ckpt")).value();
    const auto add = [&](const std::string& name, const Attributes& attributes) {
      return writer->Add(
          {.name = name, .dtype = DType::kF32, .shape = {5}, .attributes = attributes},
          Region::Whole({5}), MemoryView::Host(bytes));
    };
    ASSERT_TRUE(add("a", {}).ok());
    ASSERT_TRUE(add("b", Of("K")).ok());
    ASSERT_TRUE(add("c", {}).ok());
    EXPECT_THAT(add("b", Of("C")).message(), HasSubstr("attributes differ"));
    writer = BlobWriter::Create(*job.engine, job.path("ckpt")).value();
    ASSERT_TRUE(add("a", {}).ok());
    ASSERT_TRUE(add("b", Of("K")).ok());
    ASSERT_TRUE(add("c", {}).ok());
    const auto summaries = writer->Finish().value();
    EXPECT_EQ(summaries.size(), 2u);
    ASSERT_TRUE(Commit(*job.posix, job.path("ckpt"), {}, summaries).ok());
    EXPECT_EQ(FindDamage(job.posix, job.path("ckpt")), "");
    EXPECT_EQ(OpenFrom(job.posix, job.path("ckpt"))->FindTensor("b")->attributes, Of("K"));
  });
}

TEST(SaveAttributes, BlobsThatDisagreeAreNotCommitted) {
  WithRanks(1, [](Communicator& comm) {
    SaveJob job(comm);
    const Bytes bytes = Content("t", 20);
    ASSERT_TRUE(job.posix->CreateDirectories(job.path("ckpt")).ok());
    std::vector<BlobSummary> summaries;
    for (const std::uint64_t row : {0u, 1u}) {
      auto writer = BlobWriter::Create(*job.engine, job.path("ckpt")).value();
      ASSERT_TRUE(writer
                      ->Add({.name = "t",
                             .dtype = DType::kF32,
                             .shape = {2, 5},
                             .attributes = row == 0 ? Of("K") : Attributes()},
                            Region::Of({{row, 0}, {1, 5}}), MemoryView::Host(bytes))
                      .ok());
      summaries.push_back(writer->Finish().value().at(0));
    }
    const Status status = Commit(*job.posix, job.path("ckpt"), {}, summaries).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("attributes differ"));
  });
}

TEST(SaveAttributes, CopiesAndMergesKeepThem) {
  WithRanks(1, [](Communicator& comm) {
    SaveJob job(comm);
    Declaration declaration;
    declaration.Add(Rows(job, Of("K"))).value();
    ASSERT_TRUE(
        job.Save(declaration, SaveTarget::Directory(job.path("ckpt")), {.attributes = Of("all")})
            .ok());
    ASSERT_TRUE(
        CopyCheckpoint({job.path("ckpt"), job.path("coded")}, {.repack = {.codec = Codec::kZstd}})
            .ok());
    ASSERT_TRUE(MergeCheckpoints({job.path("ckpt"), job.path("coded")}, job.path("merged")).ok());
    for (const std::string name : {"coded", "merged"}) {
      const auto copy = OpenFrom(job.posix, job.path(name));
      EXPECT_EQ(copy->attributes(), Of("all"));
      EXPECT_EQ(copy->FindTensor("t")->attributes, Of("K"));
    }
  });
}

}  // namespace
}  // namespace sealpoint::testing
