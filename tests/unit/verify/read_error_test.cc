// SPDX-License-Identifier: Apache-2.0
//
// A storage that cannot read some bytes: what lies beside them is checked all the same.
#include <memory>
#include <string>

#include "lib/base/errors.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/support/storage/reading_storage.h"
#include "tests/unit/verify/verify_fixture.h"

namespace sealpoint::testing {
namespace {

class ReadErrors : public VerifyFixture {
 protected:
  // Bytes [begin, end) of the file cannot be read.
  VerifyReport CheckWithBad(const std::string& name, std::uint64_t begin, std::uint64_t end) {
    const auto bad = std::make_shared<ReadingStorage>(storage_, [=](const ReadCall& call) {
      const bool is_hit = call.name == name && call.offset < end && call.offset + call.size > begin;
      return is_hit ? internal::MakeError(Code::kIo, "pread: input/output error") : Status();
    });
    return Verify("ckpt", {.threads = 2, .storage = bad}).value();
  }
};

// 32 chunks of 1 MiB.
MiniSpec ManyChunks() {
  MiniSpec spec;
  spec.tensors.push_back(CutTensor("t", DType::kUInt8, {1}, Bytes(1), {Region::Whole({1})}));
  MiniTensor& tensor = spec.tensors.back();
  tensor.shape = {32 * kMiB};
  tensor.chunk_size = kMiB;
  tensor.shards = {{.region = Region::Whole(tensor.shape), .bytes = NoiseBytes(1, 32 * kMiB)}};
  return spec;
}

TEST_F(ReadErrors, ChunksOutsideAnUnreadablePartAreChecked) {
  Store(ManyChunks());
  const auto& records = container_.blobs.at(0).records;
  for (const std::size_t i : {0u, 31u}) container_.blob(0)[records[i].offset] ^= std::byte{1};
  StoreAgain();
  // One page in the second part of 4 MiB.
  const VerifyReport report = CheckWithBad(container_.blobs.at(0).name, 6 * kMiB, 6 * kMiB + 4096);
  EXPECT_EQ(report.verdict, Verdict::kCorrupt);
  ASSERT_EQ(report.violations.size(), 3u);
  EXPECT_THAT(report.violations[0],
              Violates(Code::kCorrupt, "R-CHK-02", BlobPath(0), records[0].offset));
  EXPECT_EQ(report.violations[1].code(), Code::kIo);
  EXPECT_EQ(report.violations[1].place().path, BlobPath(0));
  EXPECT_THAT(report.violations[2],
              Violates(Code::kCorrupt, "R-CHK-02", BlobPath(0), records[31].offset));
}

// Once for the whole of the blob and once for its chunks: what goes wrong in one alone is found.
TEST_F(ReadErrors, BothReadsOfTheRecordsAreChecked) {
  MiniSpec spec;
  spec.tensors.push_back(
      CutTensor("t", DType::kUInt8, {9}, NoiseBytes(1, 9), {Region::Whole({9})}));
  Store(spec);
  const MiniBlob& blob = container_.blobs.at(0);
  const std::uint64_t at = blob.sections.records;
  const auto flipping = std::make_shared<FailingStorage>(storage_);
  int found = 0;
  int reads = 1;  // of the file's first record, with what lies around it
  for (int flipped = 1; flipped <= reads; ++flipped) {
    reads = 0;
    flipping->SetReadHook([&](std::string_view name, std::uint64_t offset, MutableByteSpan bytes) {
      if (name != blob.name || at < offset || at - offset >= bytes.size()) return;
      if (++reads == flipped) bytes[at - offset] ^= std::byte{1};
    });
    const VerifyReport report = Verify("ckpt", {.threads = 1, .storage = flipping}).value();
    if (report.verdict == Verdict::kCorrupt) ++found;
  }
  EXPECT_EQ(found, 2) << "of " << reads << " reads";
}

TEST_F(ReadErrors, UnreadablePayloadAloneIsUnreadable) {
  Store(ManyChunks());
  const VerifyReport report = CheckWithBad(container_.blobs.at(0).name, 6 * kMiB, 6 * kMiB + 4096);
  EXPECT_EQ(report.verdict, Verdict::kUnreadable);
  EXPECT_EQ(report.violations.size(), 1u);
  EXPECT_LT(report.bytes_checked, 29 * kMiB);
}

TEST_F(ReadErrors, UnreadableMarkerAndIndex) {
  Store(SmallSpec());
  for (const std::string& name : {std::string("COMMIT"), container_.index_name}) {
    const VerifyReport report = CheckWithBad(name, 0, 1);
    EXPECT_EQ(report.verdict, Verdict::kUnreadable);
    ASSERT_EQ(report.violations.size(), 1u);
    EXPECT_EQ(report.violations[0].code(), Code::kIo);
    EXPECT_EQ(report.violations[0].place().path, PathOf(name));
  }
}

TEST_F(ReadErrors, OtherBlobsAreCheckedBesideAnUnreadableOne) {
  Store(SmallSpec());
  container_.blob(1)[100] ^= std::byte{1};
  StoreAgain();
  const VerifyReport report = CheckWithBad(container_.blobs.at(0).name, 0, kMiB);
  EXPECT_EQ(report.verdict, Verdict::kCorrupt);
  EXPECT_EQ(report.violations.back().place().rule, "R-HDR-04");
  EXPECT_EQ(report.violations.front().code(), Code::kIo);
}

}  // namespace
}  // namespace sealpoint::testing
