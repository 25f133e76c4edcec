// SPDX-License-Identifier: Apache-2.0
//
// What calls of Verify found good is not read again: a file that two checkpoints share, and what an
// interrupted verification had done. What was not read, or is bad, is never taken for good.
#include "readers/verify/verified_chunks.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lib/format/file_header.h"
#include "readers/verify/byte_ranges.h"
#include "sealpoint/digest.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/unit/verify/verify_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(ByteRanges, AreASetOfBytes) {
  // All sequences of three of these ranges, beside a set that is written down byte by byte.
  const std::vector<std::pair<unsigned, unsigned>> some = {{0, 1}, {1, 3}, {2, 5}, {4, 8},
                                                           {0, 8}, {3, 4}, {6, 7}, {5, 6}};
  for (std::size_t i = 0; i < some.size() * some.size() * some.size(); ++i) {
    internal::verify::ByteRanges ranges;
    std::vector<bool> bytes(9);
    for (std::size_t k = i, n = 0; n < 3; ++n, k /= some.size()) {
      const auto [begin, end] = some[k % some.size()];
      ranges.Add(begin, end);
      for (unsigned at = begin; at < end; ++at) bytes[at] = true;
    }
    std::size_t runs = 0;
    for (std::size_t at = 0; at < 8; ++at) {
      runs += bytes[at] && (at == 0 || !bytes[at - 1]) ? 1u : 0u;
      bool is_all = true;
      for (std::size_t end = at + 1; end <= 8; ++end) {
        is_all = is_all && bytes[end - 1];
        ASSERT_EQ(ranges.Contains(at, end), is_all) << i << ": " << at << " " << end;
      }
    }
    ASSERT_EQ(ranges.ranges().size(), runs) << i;
  }
}

class VerifiedChunksTest : public VerifyFixture {
 protected:
  void SetUp() override { Store(SmallSpec()); }
  VerifyReport CheckWith(const std::shared_ptr<VerifiedChunks>& verified,
                         const std::string& path = "ckpt") {
    return Verify(path, {.storage = storage_, .verified = verified}).value();
  }
  // As another process has it.
  static std::shared_ptr<VerifiedChunks> Passed(const std::shared_ptr<VerifiedChunks>& verified) {
    return VerifiedChunks::Decode(verified->Encode()).value();
  }
  std::shared_ptr<VerifiedChunks> verified_ = VerifiedChunks::Create();
};

TEST_F(VerifiedChunksTest, GoodOnesAreNotReadAgain) {
  const VerifyReport first = CheckWith(verified_);
  EXPECT_EQ(first.bytes_known, 0u);
  const std::uint64_t structure = Check(VerifyLevel::kStructure).bytes_checked;
  for (const auto& verified : {verified_, Passed(verified_)}) {
    const VerifyReport report = CheckWith(verified);
    EXPECT_EQ(report.verdict, Verdict::kCommitted);
    EXPECT_EQ(report.bytes_checked, structure);
    EXPECT_EQ(report.bytes_known, first.bytes_checked - structure);
    EXPECT_EQ(report.shared_bytes, 0u);  // files in memory have no numbers
  }
  EXPECT_EQ(Passed(verified_)->Encode(), verified_->Encode());
  EXPECT_EQ(Passed(verified_)->begun_unix_s(), verified_->begun_unix_s());
}

// Also padding: each damage is found each time.
TEST_F(VerifiedChunksTest, BadOnesAreReadAndReportedEachTime) {
  for (const auto& [number, blob] : container_.blobs) {
    for (std::uint64_t at = 128; at < blob.chunks_end; ++at) {
      container_.blob(number)[at] ^= std::byte{1};
      StoreAgain();
      verified_ = VerifiedChunks::Create();
      const std::vector<Status> violations = CheckWith(verified_).violations;
      EXPECT_THAT(violations, SizeIs(1)) << at;
      EXPECT_EQ(CheckWith(verified_).violations, violations) << at;
      container_.blob(number)[at] ^= std::byte{1};
    }
  }
}

TEST_F(VerifiedChunksTest, WhatCannotBeReadIsReadAgain) {
  const internal::format::ChunkRecord& record = container_.blobs.at(0).records.back();
  const auto bad = std::make_shared<FailingStorage>(storage_);
  bad->Fail({.op = StorageOp::kRead, .name = ".blob", .nth = 0, .persists = true});
  EXPECT_EQ(Verify("ckpt", {.storage = bad, .verified = verified_})->verdict, Verdict::kUnreadable);
  container_.blob(0)[record.offset] ^= std::byte{1};
  StoreAgain();
  EXPECT_EQ(CheckWith(verified_).verdict, Verdict::kCorrupt);
}

// A copy has the same attempt and marker; what comes under the path of another, another attempt.
TEST_F(VerifiedChunksTest, AreThoseOfOneCheckpointInOnePlace) {
  CheckWith(verified_);
  StoreFiles(*storage_, "copy", container_.files);
  EXPECT_EQ(CheckWith(verified_, "copy").bytes_known, 0u);
  for (const int change : {0, 1, 2}) {
    MiniSpec spec = SmallSpec();
    if (change == 1) spec.attempt = MiniSpec::MakeId(9);
    if (change == 2) spec.sequence = 2;  // the marker alone
    Store(spec);
    EXPECT_EQ(CheckWith(Passed(verified_)).bytes_known > 0, change == 0) << change;
  }
}

TEST_F(VerifiedChunksTest, AnotherFileInThePlaceOfOneIsRead) {
  const TempDir temp;
  const std::string path = temp / "ckpt";
  storage_ = PosixStorage();
  StoreFiles(*storage_, path, container_.files);
  CheckWith(verified_, path);
  const std::string blob = path + "/" + container_.blobs.at(0).name;
  std::filesystem::copy_file(blob, temp / "restored");
  std::filesystem::rename(temp / "restored", blob);
  const VerifyReport report = CheckWith(Passed(verified_), path);
  EXPECT_GT(report.bytes_known, 0u);  // of the other one
  EXPECT_GE(report.bytes_checked, container_.blob(0).size());
}

// Two checkpoints with a blob in common, whose header names no attempt.
class SharedBlobs : public VerifiedChunksTest {
 protected:
  void SetUp() override {
    storage_ = PosixStorage();
    for (const std::size_t i : {0u, 1u}) {
      MiniSpec spec = SmallSpec();
      spec.attempt = MiniSpec::MakeId(static_cast<std::uint8_t>(0x40 + i));
      spec.hooks.blob_header = [](int, internal::format::FileHeader& header) {
        header.attempt = {};
      };
      container_ = BuildMini(spec);
      StoreFiles(*storage_, PathOfStep(i), container_.files);
    }
    const std::string name = "/" + container_.blobs.at(0).name;
    std::filesystem::remove(PathOfStep(1) + name);
    std::filesystem::create_hard_link(PathOfStep(0) + name, PathOfStep(1) + name);
  }
  std::string PathOfStep(std::size_t step) const {
    return temp_ / ("step-" + std::to_string(step));
  }

  const TempDir temp_;
};

TEST_F(SharedBlobs, AreReadOnce) {
  for (const VerifyLevel level : {VerifyLevel::kFiles, VerifyLevel::kFull}) {
    verified_ = VerifiedChunks::Create();
    std::vector<VerifyReport> reports;
    for (const std::size_t step : {0u, 1u}) {
      reports.push_back(Verify(PathOfStep(step), {.level = level, .verified = verified_}).value());
      EXPECT_EQ(reports[step].verdict, Verdict::kCommitted);
    }
    EXPECT_EQ(reports[0].shared_bytes, 0u);
    EXPECT_EQ(reports[1].shared_bytes, container_.blob(0).size());
    EXPECT_EQ(reports[0].total_bytes, reports[1].total_bytes);
    if (level == VerifyLevel::kFiles) continue;
    EXPECT_EQ(reports[0].bytes_known, 0u);
    EXPECT_EQ(reports[1].bytes_known + reports[1].bytes_checked, reports[1].total_bytes);
    EXPECT_EQ(reports[1].bytes_known, container_.blobs.at(0).chunks_end - 128);
  }
}

TEST_F(SharedBlobs, DamageIsReportedForAllThatShareIt) {
  const std::string name = container_.blobs.at(0).name;
  const std::uint64_t at = container_.blobs.at(0).records.front().offset;
  std::fstream file(PathOfStep(0) + "/" + name, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(container_.blob(0)[at] ^ std::byte{1}));
  file.close();
  for (const std::size_t step : {0u, 1u, 0u}) {
    const VerifyReport report = CheckWith(verified_, PathOfStep(step));
    ASSERT_THAT(report.violations, SizeIs(1));
    EXPECT_THAT(report.violations[0],
                Violates(Code::kCorrupt, "R-CHK-02", PathOfStep(step) + "/" + name, at));
  }
}

// The same file holds another blob by now, say after a repair in place.
TEST_F(SharedBlobs, AFileWithOtherPinsIsRead) {
  CheckWith(verified_, PathOfStep(0));
  MiniSpec spec = SmallSpec();
  spec.attempt = MiniSpec::MakeId(0x42);
  spec.tensors.front().shards.front().bytes[0] ^= std::byte{1};
  container_ = BuildMini(spec);
  StoreFiles(*storage_, PathOfStep(2), container_.files);
  const std::string name = "/" + container_.blobs.at(0).name;
  std::filesystem::copy_file(PathOfStep(2) + name, PathOfStep(0) + name,
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove(PathOfStep(2) + name);
  std::filesystem::create_hard_link(PathOfStep(0) + name, PathOfStep(2) + name);
  EXPECT_EQ(CheckWith(verified_, PathOfStep(2)).bytes_known, 0u);
}

// While one call reads a file, another finds another blob in it.
TEST(VerifiedChunksImpl, AreThoseOfTheBlobThatTheFileHeld) {
  internal::verify::VerifiedChunksImpl verified(1);
  const internal::verify::BlobKey first{.pin = {.id = MiniSpec::MakeId<BlobId>(1)}, .file = {1, 7}};
  const internal::verify::BlobKey second{.pin = {.id = MiniSpec::MakeId<BlobId>(2)},
                                         .file = {1, 7}};
  verified.KnownOf(first);
  verified.KnownOf(second);
  verified.Add(first, 0, 10);
  EXPECT_FALSE(verified.KnownOf(second).Contains(0, 10));
  EXPECT_TRUE(verified.KnownOf(first).Contains(0, 10));
}

// However far it comes, the rest is read, and damage is found that came to what was not yet read.
TEST_F(VerifiedChunksTest, AnInterruptedVerificationGoesOn) {
  const VerifyReport whole = Check();
  const std::uint64_t structure = Check(VerifyLevel::kStructure).bytes_checked;
  const auto damage_all = [this] {
    for (const auto& [number, blob] : container_.blobs) {
      for (const auto& record : blob.records) {
        container_.blob(number)[record.offset] ^= std::byte{1};
      }
    }
    StoreAgain();
  };
  std::uint64_t known_before = 0;
  for (int nth = 1;; ++nth) {
    int calls = 0;
    const auto verified = VerifiedChunks::Create();
    std::string saved;
    const auto throwing = [&](const PhaseEvent&) {
      saved = verified->Encode();  // as of a process that is killed now
      if (++calls == nth) throw std::runtime_error("thrown by a test");
    };
    const VerifyOptions options{.storage = storage_, .verified = verified, .on_progress = throwing};
    const auto interrupted = Verify("ckpt", options);
    if (interrupted.ok()) break;
    const VerifyReport report = CheckWith(VerifiedChunks::Decode(saved).value());
    EXPECT_EQ(report.verdict, Verdict::kCommitted);
    EXPECT_EQ(report.bytes_checked + report.bytes_known, whole.bytes_checked);
    EXPECT_GE(report.bytes_known, known_before);
    known_before = report.bytes_known;
    damage_all();
    const VerifyReport damaged = CheckWith(VerifiedChunks::Decode(saved).value());
    EXPECT_EQ(damaged.bytes_known, report.bytes_known);
    EXPECT_EQ(damaged.violation_count > 0, report.bytes_checked > structure);
    damage_all();  // back
  }
  EXPECT_GT(known_before, 0u);
}

TEST_F(VerifiedChunksTest, NoOtherTextIsDecoded) {
  CheckWith(verified_);
  const std::string text = verified_->Encode();
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(VerifiedChunks::Decode(text.substr(0, size)).ok()) << size;
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(VerifiedChunks::Decode(damaged).ok()) << at;
  }
  EXPECT_EQ(VerifiedChunks::Decode("{}").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(VerifiedChunks::Decode("").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(VerifiedChunks::Decode(text.substr(0, text.size() - 1)).status().code(),
            Code::kCorrupt);
  std::string later = text;
  later[later.find('1')] = '2';
  EXPECT_EQ(VerifiedChunks::Decode(later).status().code(), Code::kUnsupported);
}

// What is beyond the bound is read again.
TEST_F(VerifiedChunksTest, RangesAreBounded) {
  const std::string id(32, 'a');
  std::string text = "sealpoint verify state 1\nbegun 1\ncheckpoint " + id + " " + id + " " + id;
  text += "\nblob " + id + " 0";
  constexpr std::size_t kMax = std::size_t{1} << 18;
  for (std::size_t i = 0; i <= kMax; ++i) {
    text += " " + std::to_string(2 * i) + "-" + std::to_string(2 * i + 1);
  }
  text += "\n";
  text += "digest " + ComputeDigest(AsBytes(text)).ToHex() + "\n";
  const std::string kept = VerifiedChunks::Decode(text).value()->Encode();
  EXPECT_THAT(kept.substr(kept.size() - 100), HasSubstr("-" + std::to_string(2 * kMax - 1) + "\n"));
}

// Lines that no version writes, below a digest that is right.
TEST_F(VerifiedChunksTest, SealedNonsenseIsDamage) {
  const std::string id(32, 'a');
  for (const std::string& lines :
       {std::string(), std::string("began 1\n"), std::string("begun x\n"), std::string("begun \n"),
        std::string("begun 1x\n"), std::string("begun 99999999999999999999\n"),
        std::string("begun 1\nblob ") + id + " 1 1-2\n",
        std::string("begun 1\ncheckpoint ") + id + " " + id + "\n",
        "begun 1\ncheckpoint " + id + " " + id + " " + id + "\nblob " + id + "\n",
        "begun 1\ncheckpoint " + id + " " + id + " " + id + "\nblob " + id + " 1 2-2\n",
        "begun 1\ncheckpoint " + id + " " + id + " " + id + "\nblob " + id + " 1 2\n",
        "begun 1\ncheckpoint " + id + " " + id + " " + id + "\nblob x 1 1-2\n"}) {
    const std::string text = "sealpoint verify state 1\n" + lines;
    const std::string sealed = text + "digest " + ComputeDigest(AsBytes(text)).ToHex() + "\n";
    const Status error = VerifiedChunks::Decode(sealed).status();
    EXPECT_EQ(error.code(), Code::kCorrupt) << sealed;
    EXPECT_THAT(error.message(), HasSubstr("is damaged"));
  }
}

}  // namespace
}  // namespace sealpoint::testing
