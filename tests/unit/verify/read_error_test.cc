// SPDX-License-Identifier: Apache-2.0
//
// A storage that cannot read some bytes: what lies beside them is judged all the same.
#include <memory>
#include <string>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "tests/unit/verify/verify_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::ElementsAre;

// Bytes [begin, end) of the file `name` cannot be read.
struct BadBytes {
  std::string name;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

class BadFile final : public ReadableFile {
 public:
  BadFile(std::unique_ptr<ReadableFile> file, BadBytes bad)
      : file_(std::move(file)), bad_(std::move(bad)) {}
  std::uint64_t size_bytes() const override { return file_->size_bytes(); }
  bool is_direct() const override { return file_->is_direct(); }
  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override {
    if (offset < bad_.end && offset + out.size() > bad_.begin) {
      return internal::MakeError(Code::kIo, "pread: input/output error");
    }
    return file_->ReadAt(offset, out);
  }

 private:
  std::unique_ptr<ReadableFile> file_;
  BadBytes bad_;
};

class BadDirectory final : public Directory {
 public:
  BadDirectory(std::unique_ptr<Directory> directory, BadBytes bad)
      : directory_(std::move(directory)), bad_(std::move(bad)) {}
  const std::string& path() const override { return directory_->path(); }
  Result<std::unique_ptr<WritableFile>> CreateExclusive(std::string_view name,
                                                        IoMode mode) override {
    return directory_->CreateExclusive(name, mode);
  }
  Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name,
                                                    IoMode mode) const override {
    SEALPOINT_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file,
                               directory_->OpenForRead(name, mode));
    if (name == bad_.name) file = std::make_unique<BadFile>(std::move(file), bad_);
    return file;
  }
  Result<EntryInfo> Stat(std::string_view name) const override { return directory_->Stat(name); }
  Result<std::vector<EntryInfo>> List() const override { return directory_->List(); }
  Status Remove(std::string_view name) override { return directory_->Remove(name); }
  Status PublishExclusive(std::string_view from, std::string_view to,
                          PublishMethod method) override {
    return directory_->PublishExclusive(from, to, method);
  }
  Status Sync() override { return directory_->Sync(); }
  Result<SpaceInfo> FreeSpace() const override { return directory_->FreeSpace(); }
  Result<Capabilities> Probe(std::string_view name) override { return directory_->Probe(name); }

 private:
  std::unique_ptr<Directory> directory_;
  BadBytes bad_;
};

class BadStorage final : public Storage {
 public:
  BadStorage(std::shared_ptr<Storage> storage, BadBytes bad)
      : storage_(std::move(storage)), bad_(std::move(bad)) {}
  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override {
    SEALPOINT_ASSIGN_OR_RETURN(std::unique_ptr<Directory> directory, storage_->OpenDirectory(path));
    std::unique_ptr<Directory> bad = std::make_unique<BadDirectory>(std::move(directory), bad_);
    return bad;
  }
  Status CreateDirectories(std::string_view path) override {
    return storage_->CreateDirectories(path);
  }
  Status RemoveDirectory(std::string_view path) override { return storage_->RemoveDirectory(path); }

 private:
  std::shared_ptr<Storage> storage_;
  BadBytes bad_;
};

class ReadErrors : public VerifyFixture {
 protected:
  VerifyReport CheckWithBad(const std::string& name, std::uint64_t begin, std::uint64_t end) {
    const auto bad = std::make_shared<BadStorage>(storage_, BadBytes{name, begin, end});
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

TEST_F(ReadErrors, ChunksOutsideAnUnreadablePieceAreJudged) {
  Store(ManyChunks());
  const auto& records = container_.blobs.at(0).records;
  for (const std::size_t i : {0u, 31u}) container_.blob(0)[records[i].offset] ^= std::byte{1};
  StoreAgain();
  // One page in the second piece of 4 MiB.
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

TEST_F(ReadErrors, OtherBlobsAreJudgedBesideAnUnreadableOne) {
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
