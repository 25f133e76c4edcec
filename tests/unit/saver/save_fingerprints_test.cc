// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sealpoint/blob_writer.h"
#include "sealpoint/collective_reader.h"
#include "sealpoint/commit.h"
#include "sealpoint/fingerprint.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/save_job.h"

// Fingerprints that a save stores (SaverOptions::fingerprints).

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;

// All of them are those of the elements.
void ExpectFingerprints(SaveJob& job, const std::string& directory) {
  EXPECT_EQ(FindDamage(job.posix, job.path(directory)), "");
  const auto checkpoint = OpenFrom(job.posix, job.path(directory));
  for (const TensorInfo& info : checkpoint->tensors()) {
    const Bytes bytes = LoadWhole(*checkpoint, info.name);
    EXPECT_EQ(info.fingerprint,
              ComputeFingerprint(info.shape, info.element_size, Region::Whole(info.shape),
                                 MemoryView::Host(bytes))
                  .value())
        << info.name;
  }
}

TEST(SaveFingerprints, AreThoseOfTheWholeTensors) {
  WithRanks(3, [](Communicator& comm) {
    SaveJob job(comm, {.blob_size_max_bytes = kMiB, .fingerprints = true});
    Declaration declaration = UsualDeclaration(job.comm);
    // Large enough to be borrowed; coded; and without elements.
    const auto rank = static_cast<std::uint64_t>(job.rank());
    const auto size = static_cast<std::uint64_t>(job.size());
    declaration
        .Add({.tensor = {.name = "large",
                         .dtype = DType::kUInt16,
                         .shape = {size * 3, 300001},
                         .chunk_size_bytes = 65536},
              .region = Region::Of({{rank * 3, 0}, {3, 300001}})})
        .value();
    declaration
        .Add({.tensor = {.name = "coded",
                         .dtype = DType::kF32,
                         .shape = {size, 30000},
                         .codec = Codec::kByteSplitZstd},
              .region = Region::Of({{rank, 0}, {1, 30000}})})
        .value();
    declaration
        .Add({.tensor = {.name = "empty", .dtype = DType::kF32, .shape = {0, 3}},
              .region = Region::Whole({0, 3})})
        .value();
    // The second one knows the plan.
    for (const std::string directory : {"first", "second"}) {
      const auto saved = job.Save(declaration, directory);
      ASSERT_TRUE(saved.ok()) << saved.error().ToString();
      ExpectFingerprints(job, directory);
      job.Barrier();
    }
  });
}

TEST(SaveFingerprints, AreWantedByAllRanksOrByNone) {
  WithRanks(2, [](Communicator& comm) {
    SaveJob job(comm, {.fingerprints = comm.rank() == 0});
    const Status status = job.Save(UsualDeclaration(job.comm)).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("fingerprints"));
  });
}

// A tensor of which one blob has none has none: R-FPR-02.
TEST(SaveFingerprints, OfATensorAreThereIfAllBlobsHaveThem) {
  const auto storage = MemoryStorage();
  ASSERT_TRUE(storage->CreateDirectories("c").ok());
  const auto engine = SmallEngine(storage);
  const TensorSpec tensor{.name = "t", .dtype = DType::kUInt8, .shape = {2000}};
  const Bytes content = NoiseBytes(1, 2000);
  std::vector<BlobSummary> summaries;
  for (const bool has_fingerprints : {true, false}) {
    const auto writer =
        BlobWriter::Create(*engine, "c", {.fingerprints = has_fingerprints}).value();
    const std::uint64_t begin = has_fingerprints ? 0 : 1000;
    ASSERT_TRUE(writer
                    ->Add(tensor, Region::Of({{begin}, {1000}}),
                          MemoryView::Host(ByteSpan(content).subspan(begin, 1000)))
                    .ok());
    const auto finished = writer->Finish().value();
    summaries.insert(summaries.end(), finished.begin(), finished.end());
  }
  ASSERT_TRUE(Commit(*storage, "c", {}, summaries).ok());
  EXPECT_EQ(FindDamage(storage, "c"), "");
  EXPECT_EQ(OpenFrom(storage, "c")->FindTensor("t")->fingerprint, std::nullopt);
}

}  // namespace
}  // namespace sealpoint::testing
