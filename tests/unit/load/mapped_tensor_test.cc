// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/mapped_tensor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/macros.h"
#include "tests/support/container/rule_matchers.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/storage/forwarding_storage.h"
#include "tests/unit/load/load_fixture.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kRows = 64;
const Shape kShape = {kRows, 64};
constexpr std::uint64_t kTensorBytes = kRows * 64 * 4;
const Region kTop = Region::Of({{0, 0}, {40, 64}});
const Region kBottom = Region::Of({{40, 0}, {24, 64}});

Bytes Content() { return NoiseBytes(7, kTensorBytes); }

// "w" in one shard, "halves" in two blobs, "coded" with a codec, "scalar" and "none".
MiniSpec AllForms() {
  MiniSpec spec;
  const Bytes zeros(kTensorBytes);
  const Region whole = Region::Whole(kShape);
  spec.tensors.push_back(CutTensor("coded", DType::kF32, kShape, zeros, {whole}, {0}));
  spec.tensors.back().codec = Codec::kZstd;
  spec.tensors.push_back(
      CutTensor("halves", DType::kF32, kShape, Content(), {kTop, kBottom}, {0, 1}));
  spec.tensors.push_back(CutTensor("none", DType::kF32, {0, 3}, {}, {}, {}));
  spec.tensors.push_back(
      CutTensor("scalar", DType::kF32, {}, NoiseBytes(3, 4), {Region::Whole({})}, {1}));
  spec.tensors.push_back(CutTensor("w", DType::kF32, kShape, Content(), {whole}, {0}));
  return spec;
}

// Cuts every blob off when it has been opened.
class TruncatingStorage final : public ForwardingStorage {
 public:
  using ForwardingStorage::ForwardingStorage;
  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override {
    SEALPOINT_ASSIGN_OR_RETURN(auto inner, ForwardingStorage::OpenDirectory(path));
    return std::unique_ptr<Directory>(std::make_unique<Folder>(std::move(inner), truncates_));
  }
  bool* truncates() const { return truncates_.get(); }

 private:
  class Folder final : public ForwardingDirectory {
   public:
    Folder(std::unique_ptr<Directory> inner, std::shared_ptr<bool> truncates)
        : ForwardingDirectory(std::move(inner)), truncates_(std::move(truncates)) {}
    Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name,
                                                      IoMode mode) const override {
      auto file = ForwardingDirectory::OpenForRead(name, mode);
      if (file && *truncates_ && name.ends_with(".blob")) {
        std::filesystem::resize_file(path() + "/" + std::string(name), 4096);
      }
      return file;
    }

   private:
    const std::shared_ptr<bool> truncates_;
  };

  const std::shared_ptr<bool> truncates_ = std::make_shared<bool>(false);
};

class MappedTensorTest : public ::testing::Test {
 protected:
  MappedTensorTest() : container_(BuildMini(AllForms())) {
    Store();
    checkpoint_ = Checkpoint::Open(dir_ / "c").value();
  }
  void Store() { StoreFiles(*DefaultStorage(), dir_ / "c", container_.files); }
  void FlipFirstChunkOf(int blob) {
    const auto& record = container_.blobs.at(blob).records.back();
    container_.blob(blob)[record.offset + 1] ^= std::byte{1};
    std::filesystem::remove_all(dir_ / "c");
    Store();
    checkpoint_ = Checkpoint::Open(dir_ / "c").value();
  }
  std::string BlobPath(int number) const {
    return dir_ / ("c/" + container_.blobs.at(number).name);
  }

  TempDir dir_;
  MiniContainer container_;
  std::unique_ptr<Checkpoint> checkpoint_;
};

Bytes Copy(ByteSpan bytes) { return {bytes.begin(), bytes.end()}; }

TEST_F(MappedTensorTest, OneShardIsTheWholeTensor) {
  for (const int threads : {1, 3}) {
    const auto mapped = MapTensor(*checkpoint_, "w", {.threads = threads}).value();
    EXPECT_EQ(mapped->info(), checkpoint_->FindTensor("w").value());
    ASSERT_TRUE(mapped->whole().has_value());
    EXPECT_EQ(Copy(*mapped->whole()), Content());
    EXPECT_EQ(mapped->descriptor(), std::nullopt);
  }
}

TEST_F(MappedTensorTest, SeveralShardsAreAListOfViews) {
  const auto mapped = MapTensor(*checkpoint_, "halves").value();
  ASSERT_EQ(mapped->shards().size(), 2u);
  EXPECT_EQ(mapped->whole(), std::nullopt);
  EXPECT_EQ(mapped->shards()[0].region, kTop);
  EXPECT_EQ(mapped->shards()[1].region, kBottom);
  Bytes all = Copy(mapped->shards()[0].bytes);
  const Bytes rest = Copy(mapped->shards()[1].bytes);
  all.insert(all.end(), rest.begin(), rest.end());
  EXPECT_EQ(all, Content());
}

TEST_F(MappedTensorTest, ScalarsAndEmptyTensors) {
  const auto scalar = MapTensor(*checkpoint_, "scalar").value();
  EXPECT_EQ(Copy(scalar->whole().value()), NoiseBytes(3, 4));
  for (const bool host_copy : {false, true}) {
    const auto none = MapTensor(*checkpoint_, "none", {.host_copy = host_copy}).value();
    EXPECT_TRUE(none->shards().empty());
    EXPECT_TRUE(none->whole().value().empty());
  }
}

TEST_F(MappedTensorTest, WhatCannotBeMapped) {
  EXPECT_EQ(MapTensor(*checkpoint_, "x").error().code(), Code::kNotFound);
  EXPECT_EQ(MapTensor(*checkpoint_, "w", {.threads = -1}).error().code(), Code::kInvalidArgument);
  const Status coded = MapTensor(*checkpoint_, "coded").error();
  EXPECT_EQ(coded.code(), Code::kUnsupported);
  EXPECT_EQ(coded.place().tensor, "coded");
  const auto copy = MapTensor(*checkpoint_, "coded", {.host_copy = true}).value();
  EXPECT_EQ(Copy(copy->whole().value()), Bytes(kTensorBytes));
  const auto memory = MemoryStorage();
  StoreFiles(*memory, "c", container_.files);
  const auto in_memory = Checkpoint::Open("c", {.storage = memory}).value();
  EXPECT_EQ(MapTensor(*in_memory, "w").error().code(), Code::kUnsupported);
  EXPECT_EQ(Copy(MapTensor(*in_memory, "w", {.host_copy = true}).value()->whole().value()),
            Content());
}

TEST_F(MappedTensorTest, DamageIsFoundAndNamed) {
  FlipFirstChunkOf(1);  // its last chunk is that of "scalar" or of "halves"
  int found = 0;
  for (const char* const name : {"halves", "scalar"}) {
    for (const bool host_copy : {false, true}) {
      const auto mapped = MapTensor(*checkpoint_, name, {.host_copy = host_copy});
      if (mapped) continue;
      ++found;
      EXPECT_THAT(mapped.error(), BreaksRule(Code::kCorrupt, "R-CHK-02",
                                             container_.blobs.at(1).records.back().offset));
      EXPECT_EQ(mapped.error().place().tensor, name);
      EXPECT_EQ(mapped.error().place().path, BlobPath(1));
    }
  }
  EXPECT_EQ(found, 2);
  EXPECT_TRUE(MapTensor(*checkpoint_, "w").ok());
}

TEST_F(MappedTensorTest, AFileThatBecomesShorterIsAnError) {
  const auto storage = std::make_shared<TruncatingStorage>(DefaultStorage());
  const auto checkpoint = Checkpoint::Open(dir_ / "c", {.storage = storage}).value();
  (void)checkpoint->TensorChunks("w").value();  // the tables are read
  *storage->truncates() = true;
  const Status status = MapTensor(*checkpoint, "w").error();
  EXPECT_EQ(status.code(), Code::kIncomplete) << status.ToString();
  EXPECT_EQ(status.place().rule, "R-BLB-01");
  EXPECT_EQ(status.place().path, BlobPath(0));
}

TEST_F(MappedTensorTest, AMappingOutlivesTheCheckpoint) {
  const auto mapped = MapTensor(*checkpoint_, "w").value();
  checkpoint_.reset();
  std::filesystem::remove_all(dir_ / "c");
  EXPECT_EQ(Copy(mapped->whole().value()), Content());
}

TEST_F(MappedTensorTest, AHostCopyCannotChange) {
  const auto copy = MapTensor(*checkpoint_, "halves", {.threads = 2, .host_copy = true}).value();
  const int fd = copy->descriptor().value();
  const char byte = 1;
  EXPECT_EQ(pwrite(fd, &byte, 1, 0), -1);
  EXPECT_EQ(ftruncate(fd, 0), -1);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  // What happens to the file no longer matters.
  std::filesystem::resize_file(BlobPath(0), 4096);
  std::filesystem::resize_file(BlobPath(1), 4096);
  Bytes all = Copy(copy->shards()[0].bytes);
  const Bytes rest = Copy(copy->shards()[1].bytes);
  all.insert(all.end(), rest.begin(), rest.end());
  EXPECT_EQ(all, Content());
}

TEST_F(MappedTensorTest, OtherProcessesMapTheHostCopy) {
  auto copy = MapTensor(*checkpoint_, "w", {.host_copy = true}).value();
  const std::string path =
      "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(copy->descriptor().value());
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const auto other = Checkpoint::Open(dir_ / "c").value();
  EXPECT_EQ(MapSealed(*other, "scalar", fd).error().code(), Code::kInvalidArgument);
  const auto mapped = MapSealed(*other, "w", fd).value();
  close(fd);
  copy.reset();
  EXPECT_EQ(Copy(mapped->whole().value()), Content());
}

TEST_F(MappedTensorTest, MemoryThatIsNotSealedIsRefused) {
  const int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(fd, kTensorBytes), 0);
  for (const int seals : {0, F_SEAL_WRITE, F_SEAL_WRITE | F_SEAL_SHRINK}) {
    ASSERT_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
    EXPECT_EQ(MapSealed(*checkpoint_, "w", fd).error().code(), Code::kInvalidArgument);
  }
  ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_EQ(MapSealed(*checkpoint_, "w", fd).value()->whole().value().size(), kTensorBytes);
  close(fd);
  EXPECT_EQ(MapSealed(*checkpoint_, "w", -1).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace sealpoint::testing
