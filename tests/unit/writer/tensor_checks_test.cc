// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/tensor_checks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "lib/format/trailer.h"
#include "lib/writer/commit_steps.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/declaration.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/state/saved_state.h"

// The bounds of what may be declared, from both sides.

namespace sealpoint::testing {
namespace {

Status Check(const std::function<void(TensorSpec&)>& change) {
  TensorSpec tensor = ByteTensor("w", 100);
  change(tensor);
  return internal::writer::CheckTensorSpec(tensor);
}

TEST(TensorChecks, NamesHave1024BytesAtMost) {
  EXPECT_TRUE(Check([](TensorSpec& t) { t.name.assign(1024, 'x'); }).ok());
  EXPECT_FALSE(Check([](TensorSpec& t) { t.name.assign(1025, 'x'); }).ok());
}

TEST(TensorChecks, ElementsHave256BytesAtMost) {
  const auto with = [](std::uint32_t size) {
    return Check([&](TensorSpec& t) {
      t.dtype = static_cast<DType>(99);
      t.element_size = size;
    });
  };
  EXPECT_TRUE(with(256).ok());
  EXPECT_FALSE(with(512).ok());
  EXPECT_EQ(with(3).message(), "element size is 3, not a power of two from 1 to 256");
  EXPECT_EQ(Check([](TensorSpec& t) { t.element_size = 2; }).message(),
            "element size 2 given for dtype u8 of 1 bytes");
}

TEST(TensorChecks, ChunksHave128MibAtMostAndCodedOnes16) {
  const auto with = [](std::uint64_t size, Codec codec) {
    return Check([&](TensorSpec& t) {
      t.chunk_size_bytes = size;
      t.codec = codec;
    });
  };
  EXPECT_TRUE(with(128 * kMiB, Codec::kNone).ok());
  EXPECT_FALSE(with(256 * kMiB, Codec::kNone).ok());
  EXPECT_TRUE(with(16 * kMiB, Codec::kZstd).ok());
  EXPECT_FALSE(with(32 * kMiB, Codec::kZstd).ok());
}

TEST(TensorChecks, TensorsHave32DimensionsAtMost) {
  EXPECT_TRUE(Check([](TensorSpec& t) { t.shape.assign(32, 1); }).ok());
  EXPECT_FALSE(Check([](TensorSpec& t) { t.shape.assign(33, 1); }).ok());
}

TEST(TensorChecks, ValuesOfProvenanceHave64KibAtMost) {
  const auto with = [](std::size_t size) {
    return internal::writer::CheckDescription({}, {{"key", std::string(size, 'x')}});
  };
  EXPECT_TRUE(with(64 * kKiB).ok());
  EXPECT_FALSE(with(64 * kKiB + 1).ok());
}

TEST(TensorChecks, RegionsLieInTheirTensors) {
  const TensorSpec tensor = ByteTensor("w", 100);
  const Bytes memory(50);
  const auto with = [&](const Region& region) {
    return internal::writer::CheckSource(tensor, region, MemoryView::Host(memory));
  };
  EXPECT_TRUE(with(Slice(50, 100)).ok());
  EXPECT_THAT(with(Slice(51, 101)), HasCode(Code::kInvalidArgument));
}

TEST(NullBytes, AreNoObject) {
  const std::shared_ptr<Storage> storage = MemoryStorage();
  const auto engine = SmallEngine(storage);
  ASSERT_TRUE(storage->CreateDirectories("checkpoint").ok());
  const ByteSpan null(static_cast<const std::byte*>(nullptr), 5);
  Declaration declaration;
  ASSERT_TRUE(declaration.AddObject({.name = "o", .media_type = "t"}).ok());
  Sources sources(declaration);
  EXPECT_THAT(sources.BindObject("o", null), HasCode(Code::kInvalidArgument));
  const auto writer = BlobWriter::Create(*engine, "checkpoint").value();
  EXPECT_THAT(writer->AddObject({.name = "o", .media_type = "t"}, null),
              HasCode(Code::kInvalidArgument));
}

TEST(CommittedBlobs, AreThoseOfSummaries) {
  const std::shared_ptr<Storage> storage = MemoryStorage();
  ASSERT_TRUE(storage->CreateDirectories("checkpoint").ok());
  const std::vector<BlobSummary> none(1);
  EXPECT_THAT(Commit(*storage, "checkpoint", {}, none).status(), HasCode(Code::kInvalidArgument));
}

class OneBlobOnDisk : public ::testing::Test {
 protected:
  OneBlobOnDisk() {
    const auto engine = SmallEngine(PosixStorage());
    const auto writer = BlobWriter::Create(*engine, temp_.path()).value();
    EXPECT_TRUE(writer->AddObject({.name = "o", .media_type = "t"}, NoiseBytes(1, 100)).ok());
    summaries_ = writer->Finish().value();
  }

  const TempDir temp_;
  std::vector<BlobSummary> summaries_;
};

TEST_F(OneBlobOnDisk, ALinkToABlobIsNotCommitted) {
  const std::string path = temp_.path() + "/" + summaries_.at(0).blob().ToHex() + ".blob";
  ASSERT_EQ(std::rename(path.c_str(), (temp_.path() + "/elsewhere").c_str()), 0);
  ASSERT_EQ(symlink("elsewhere", path.c_str()), 0);
  EXPECT_THAT(Commit(*PosixStorage(), temp_.path(), {}, summaries_).status(),
              FailsRule(Code::kIncomplete, "R-CMT-02"));
}

TEST_F(OneBlobOnDisk, ASummaryIsReadUpToTheLimitOfItsManifest) {
  const BlobId blob = summaries_.at(0).blob();
  const Bytes file = ReadWholeFile(*PosixStorage(), temp_.path(), blob.ToHex() + ".blob");
  const auto trailer = internal::format::DecodeTrailer(ByteSpan(file).last(256)).value();
  Limits limits;
  limits.manifest_size_max_bytes = trailer.manifest_size;
  EXPECT_TRUE(ReadSummary(*PosixStorage(), temp_.path(), blob, limits).ok());
  --limits.manifest_size_max_bytes;
  EXPECT_THAT(ReadSummary(*PosixStorage(), temp_.path(), blob, limits).status(),
              FailsRule(Code::kLimitExceeded, "R-IDX-01"));
}

}  // namespace
}  // namespace sealpoint::testing
