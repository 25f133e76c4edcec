// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint is the same wherever it lies: no file stores a path, and content is pinned by
// digest.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "sealpoint/blob_writer.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/commit.h"
#include "sealpoint/verify.h"
#include "tests/support/process/temp_dir.h"

namespace sealpoint {
namespace {

namespace fs = std::filesystem;

class Places : public ::testing::Test {
 protected:
  Places() : original_(directory_ / "original") {
    fs::create_directory(original_);
    const auto engine = Engine::Create().value();
    const AttemptId attempt = AttemptId::FromHex(std::string(32, 'a')).value();
    std::vector<BlobSummary> summaries;
    for (std::uint64_t i = 0; i < 2; ++i) {
      const auto writer =
          BlobWriter::Create(*engine, original_, {.attempt = attempt, .step = 7}).value();
      const Region half = Region::Of({.offset = {500 * i}, .extent = {500}});
      EXPECT_TRUE(
          writer->Add(tensor_, half, MemoryView::Host(std::span(values_).subspan(500 * i, 500)))
              .ok());
      summaries.push_back(writer->Finish().value().front());
    }
    EXPECT_TRUE(
        Commit(engine->storage(), original_, {.attempt = attempt, .step = 7}, summaries).ok());
  }

  void ExpectReads(const std::string& path) const {
    const VerifyReport report = Verify(path).value();
    EXPECT_EQ(report.verdict, Verdict::kCommitted) << path;
    EXPECT_TRUE(report.notes.empty()) << report.notes.front();
    const auto checkpoint = Checkpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().ToString();
    std::vector<float> read(values_.size());
    ReadRequest request;
    request.Add("w", MutableMemoryView::Host(read));
    ASSERT_TRUE((*checkpoint)->Load(request).ok());
    EXPECT_EQ(read, values_);
  }

  testing::TempDir directory_;
  std::string original_;
  std::vector<float> values_ = std::vector<float>(1000, 0.25F);
  TensorSpec tensor_{.name = "w", .dtype = DType::kF32, .shape = {1000}};
};

TEST_F(Places, RenamedDirectory) {
  fs::rename(original_, directory_ / "another name");
  ExpectReads(directory_ / "another name");
}

TEST_F(Places, MovedBelowAnotherDirectory) {
  fs::create_directories(directory_ / "a/b");
  fs::rename(original_, directory_ / "a/b/c");
  ExpectReads(directory_ / "a/b/c");
}

TEST_F(Places, CopiedDirectory) {
  fs::copy(original_, directory_ / "copy");
  fs::remove_all(original_);
  ExpectReads(directory_ / "copy");
}

TEST_F(Places, LinkToTheDirectory) {
  fs::create_directory_symlink(original_, directory_ / "link");
  ExpectReads(directory_ / "link");
}

TEST_F(Places, DirectoryOfLinksToTheFiles) {
  fs::create_directory(directory_ / "farm");
  for (const auto& entry : fs::directory_iterator(original_)) {
    fs::create_symlink(entry.path(), directory_ / ("farm/" + entry.path().filename().string()));
  }
  ExpectReads(directory_ / "farm");
}

// A checkpoint whose blobs are those of an older one: the same at every level, and whole when the
// older one is gone.
TEST_F(Places, CheckpointOfHardLinkedBlobs) {
  const std::string second = directory_ / "second";
  fs::create_directory(second);
  const std::shared_ptr<Storage> storage = PosixStorage();
  std::vector<BlobSummary> summaries;
  for (const BlobId& blob : ListBlobs(*storage, original_).value()) {
    const std::string name = blob.ToHex() + ".blob";
    fs::create_hard_link(fs::path(original_) / name, fs::path(second) / name);
    summaries.push_back(ReadSummary(*storage, second, blob).value());
  }
  ASSERT_EQ(summaries.size(), 2u);
  const CommitOptions options{.step = 8, .reuses_blobs = true};
  ASSERT_TRUE(Commit(*storage, second, options, summaries).ok());
  for (const VerifyLevel level :
       {VerifyLevel::kFiles, VerifyLevel::kStructure, VerifyLevel::kFull}) {
    EXPECT_EQ(Verify(second, {.level = level}).value().verdict, Verdict::kCommitted);
  }
  ExpectReads(original_);
  ExpectReads(second);
  fs::remove_all(original_);
  ExpectReads(second);
}

TEST_F(Places, ReadOnlyDirectoryAndFiles) {
  const fs::perms writable = fs::perms::owner_write | fs::perms::group_write;
  for (const auto& entry : fs::directory_iterator(original_)) {
    fs::permissions(entry.path(), writable, fs::perm_options::remove);
  }
  fs::permissions(original_, writable, fs::perm_options::remove);
  ExpectReads(original_);
  fs::permissions(original_, fs::perms::owner_write, fs::perm_options::add);
}

TEST_F(Places, CopyWithoutOneBlobIsIncompleteAndNamesIt) {
  std::string missing;
  for (const auto& entry : fs::directory_iterator(original_)) {
    if (entry.path().extension() == ".blob") missing = entry.path().string();
  }
  fs::remove(missing);
  const VerifyReport report = Verify(original_).value();
  EXPECT_EQ(report.verdict, Verdict::kIncomplete);
  ASSERT_EQ(report.violations.size(), 1u);
  EXPECT_EQ(report.violations[0].place().path, missing);
  const auto opened = Checkpoint::Open(original_);
  EXPECT_EQ(opened.status().code(), Code::kIncomplete);
  EXPECT_EQ(opened.status().place().path, missing);
}

}  // namespace
}  // namespace sealpoint
