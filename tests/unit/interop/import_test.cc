// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sealpoint/interop.h"
#include "tests/support/safetensors/safetensors_file.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/support/storage/write_file.h"

namespace sealpoint {
namespace {

using ::testing::Contains;
using testing::CountingBytes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::SafetensorsFileOf;

class ImportTest : public ::testing::Test {
 protected:
  ImportTest() {
    EngineOptions options{.memory_budget_bytes = 2 * kMiB, .staging_buffer_size_bytes = kMiB / 4};
    options.storage = storage_;
    engine_ = Engine::Create(options).value();
  }
  void Write(const std::string& path, std::string_view content) {
    testing::WriteFile(*storage_, path, content);
  }
  // Two tensors and an empty one.
  void WriteModel(const std::string& path, const std::string& metadata = R"({"format":"pt"})") {
    Write(path,
          SafetensorsFileOf(R"({"__metadata__":)" + metadata +
                                R"(,"b":{"dtype":"U16","shape":[2,2],"data_offsets":[0,8]},)"
                                R"("a":{"dtype":"U8","shape":[3],"data_offsets":[8,11]},)"
                                R"("none":{"dtype":"F32","shape":[0],"data_offsets":[11,11]}})",
                            "12345678abc"));
  }
  std::unique_ptr<SafetensorsModel> Model(const std::string& path) {
    return SafetensorsModel::Open(path, {.storage = storage_}).value();
  }
  Result<CommitInfo> Import(const std::string& path, const ImportOptions& options = {}) {
    return ImportSafetensors(*engine_, *Model(path), "out", options);
  }
  std::unique_ptr<Checkpoint> Open() {
    return Checkpoint::Open("out", {.storage = storage_}).value();
  }
  static std::string BytesOf(const Checkpoint& checkpoint, const std::string& tensor) {
    std::string bytes(checkpoint.FindTensor(tensor)->raw_bytes, '.');
    ReadRequest request;
    request.Add(tensor, MutableMemoryView::Host(bytes.data(), bytes.size()));
    const auto loaded = checkpoint.Load(request, LoadContract::Partial());
    EXPECT_TRUE(loaded.ok()) << loaded.error().ToString();
    return bytes;
  }
  std::vector<std::string> Left() {
    std::vector<std::string> names;
    for (const EntryInfo& entry : storage_->OpenDirectory("out").value()->List().value()) {
      names.push_back(entry.name);
    }
    return names;
  }

  std::shared_ptr<testing::FailingStorage> storage_ =
      std::make_shared<testing::FailingStorage>(MemoryStorage());
  std::unique_ptr<Engine> engine_;
};

TEST_F(ImportTest, KeepsTensorsAndSaysWhereTheyCameFrom) {
  WriteModel("m/x.safetensors");
  std::vector<std::uint64_t> seen;
  const auto info =
      Import("m/x.safetensors", {.commit = {.step = 7, .provenance = {{"who", "me"}}},
                                 .on_progress = [&](std::uint64_t n) { seen.push_back(n); }});
  ASSERT_TRUE(info.ok()) << info.error().ToString();
  EXPECT_EQ(info->tensor_count, 3);
  const auto checkpoint = Open();
  EXPECT_EQ(checkpoint->step(), 7);
  EXPECT_THAT(checkpoint->provenance(), Contains(Pair("who", "me")));
  EXPECT_THAT(checkpoint->provenance(), Contains(Pair("convert.from", "safetensors")));
  EXPECT_EQ(BytesOf(*checkpoint, "a"), "abc");
  EXPECT_EQ(BytesOf(*checkpoint, "b"), "12345678");
  EXPECT_EQ(checkpoint->FindTensor("b")->dtype, DType::kUInt16);
  EXPECT_EQ(checkpoint->FindTensor("b")->shape, (Shape{2, 2}));
  EXPECT_EQ(checkpoint->FindTensor("none")->shape, (Shape{0}));
  EXPECT_THAT(seen, ElementsAre(8, 11));
  ASSERT_EQ(checkpoint->object_count(), 1);
  EXPECT_EQ(AsText(checkpoint->ReadObject("sealpoint.tree").value()),
            R"({"a":{"$":"tensor","name":"a"},"b":{"$":"tensor","name":"b"},)"
            R"("none":{"$":"tensor","name":"none"}})");
}

TEST_F(ImportTest, KeepsWhatIsNoTensor) {
  WriteModel(
      "m/x.safetensors",
      R"({"k":"v","sealpoint.object.rng":"[\"a/b\", \"Zm9v\"]","sealpoint.tree":"{\"s\":1}"})");
  ASSERT_TRUE(Import("m").ok());
  const auto checkpoint = Open();
  EXPECT_THAT(checkpoint->provenance(), Contains(Pair("convert.from", "hf")));
  EXPECT_EQ(checkpoint->FindObject("rng")->media_type, "a/b");
  EXPECT_EQ(AsText(checkpoint->ReadObject("rng").value()), "foo");
  EXPECT_EQ(AsText(checkpoint->ReadObject("sealpoint.tree").value()), R"({"s":1})");
  EXPECT_EQ(AsText(checkpoint->ReadObject("safetensors.metadata").value()), R"({"k": "v"})");
}

TEST_F(ImportTest, TakesWhatMatches) {
  WriteModel("m/x.safetensors", R"({"k":"v"})");
  ASSERT_TRUE(Import("m", {.match = {"n*", "b"}}).ok());
  const auto checkpoint = Open();
  ASSERT_EQ(checkpoint->tensor_count(), 2);
  EXPECT_EQ(checkpoint->tensor_name(0), "b");
  EXPECT_EQ(checkpoint->object_count(), 1);
}

TEST_F(ImportTest, RefusesPatternsThatMatchNothing) {
  WriteModel("m/x.safetensors");
  EXPECT_EQ(Import("m", {.match = {"a", "x*"}}).status().code(), Code::kNotFound);
  EXPECT_EQ(Import("m", {.match = {"a\\"}}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(storage_->OpenDirectory("out").status().code(), Code::kNotFound);
}

TEST_F(ImportTest, RefusesObjectsThatAreNone) {
  WriteModel("m/x.safetensors", R"({"sealpoint.object.rng":"x"})");
  const Status error = Import("m").status();
  EXPECT_EQ(error.code(), Code::kCorrupt);
  EXPECT_EQ(error.place().object, "rng");
  EXPECT_EQ(error.place().path, "m");
}

TEST_F(ImportTest, LargeTensorsAreStoredInParts) {
  const std::string bytes = CountingBytes(200'000);
  Write("m/x.safetensors",
        SafetensorsFileOf(R"({"t":{"dtype":"U16","shape":[10,10000],"data_offsets":[0,200000]}})",
                          bytes));
  ASSERT_TRUE(Import("m", {.chunk_size_bytes = 16 * kKiB, .buffer_size_bytes = 70'000}).ok());
  auto checkpoint = Open();
  EXPECT_EQ(BytesOf(*checkpoint, "t"), bytes);
  const auto shards = checkpoint->Shards("t").value();
  ASSERT_EQ(shards.size(), 4);
  // Chunks end where parts do.
  EXPECT_EQ(shards[0].region.run, (sealpoint::Run{0, 4 * 16 * kKiB / 2}));
  EXPECT_EQ(checkpoint->FindTensor("t")->chunk_size_bytes, 16 * kKiB);
}

// The buffer may be smaller than a chunk.
TEST_F(ImportTest, ChunksMayBeLargerThanTheBuffer) {
  const std::string bytes = CountingBytes(200'000);
  Write("m/x.safetensors",
        SafetensorsFileOf(R"({"t":{"dtype":"U8","shape":[200000],"data_offsets":[0,200000]}})",
                          bytes));
  ASSERT_TRUE(Import("m", {.buffer_size_bytes = 64 * kKiB}).ok());
  EXPECT_EQ(BytesOf(*Open(), "t"), bytes);
}

TEST_F(ImportTest, RefusesOptionsThatAreNone) {
  WriteModel("m/x.safetensors");
  EXPECT_EQ(Import("m", {.buffer_size_bytes = 64 * kKiB - 1}).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Import("m", {.chunk_size_bytes = 0}).status().code(), Code::kInvalidArgument);
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(ImportTest, UsesTheCodec) {
  const std::string bytes(100'000, 'x');
  Write("m/x.safetensors",
        SafetensorsFileOf(R"({"t":{"dtype":"U8","shape":[100000],"data_offsets":[0,100000]}})",
                          bytes));
  ASSERT_TRUE(Import("m", {.codec = Codec::kZstd}).ok());
  EXPECT_LT(Open()->TensorChunks("t")->stored_bytes, 1000);
}

TEST_F(ImportTest, NeedsAnEmptyDirectory) {
  WriteModel("m/x.safetensors");
  ASSERT_TRUE(storage_->CreateDirectories("out").ok());
  ASSERT_TRUE(Import("m").ok());
  EXPECT_EQ(Import("m").status().code(), Code::kAlreadyExists);
  EXPECT_EQ(BytesOf(*Open(), "a"), "abc");
}

TEST_F(ImportTest, LeavesADirectoryOfOthersAlone) {
  WriteModel("m/x.safetensors");
  Write("out/notes.txt", "x");
  EXPECT_EQ(Import("m").status().code(), Code::kAlreadyExists);
  EXPECT_THAT(Left(), ElementsAre("notes.txt"));
}

TEST_F(ImportTest, JoinsTheBoxesOfRanks) {
  const auto file = [](const std::string& bytes, const std::string& offset) {
    return SafetensorsFileOf(
        R"({"__metadata__":{"DCP_SHARDING_INFO":"{\"t\":{\"saved_offsets\":[)" + offset +
            R"(]}}"},"t":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]}})",
        bytes);
  };
  Write("m/shard-1.safetensors", file("abef", "0,0"));
  Write("m/shard-2.safetensors", file("cdgh", "0,2"));
  ASSERT_TRUE(Import("m").ok());
  const auto checkpoint = Open();
  EXPECT_EQ(BytesOf(*checkpoint, "t"), "abcdefgh");
  EXPECT_EQ(checkpoint->Shards("t")->size(), 2);
  EXPECT_EQ(checkpoint->object_count(), 1);
}

TEST_F(ImportTest, AfterAnErrorNothingIsLeftButTheDirectory) {
  WriteModel("m/x.safetensors");
  const auto model = Model("m");
  for (const auto op :
       {testing::StorageOp::kList, testing::StorageOp::kCreate, testing::StorageOp::kWrite,
        testing::StorageOp::kSyncFile, testing::StorageOp::kPublish}) {
    storage_->Heal();
    storage_->Fail({.op = op, .path = "out"});
    EXPECT_FALSE(ImportSafetensors(*engine_, *model, "out").ok()) << static_cast<int>(op);
    EXPECT_THAT(Left(), IsEmpty()) << static_cast<int>(op);
  }
  storage_->Heal();
  storage_->Fail({.op = testing::StorageOp::kCreateDirectories});
  EXPECT_EQ(ImportSafetensors(*engine_, *model, "out").status().code(), Code::kIo);
}

// The marker may be there: its blobs stay.
TEST_F(ImportTest, AnUnknownOutcomeRemovesNothing) {
  WriteModel("m/x.safetensors");
  const auto model = Model("m");
  bool is_published = false;
  storage_->SetHook([&](testing::StorageOp op, std::string_view) {
    if (op != testing::StorageOp::kPublish || is_published) return;
    is_published = true;
    storage_->Fail({.op = testing::StorageOp::kSyncDirectory});
  });
  const auto info = ImportSafetensors(*engine_, *model, "out");
  ASSERT_FALSE(info.ok());
  EXPECT_TRUE(OutcomeIsUnknown(info.error()));
  storage_->Heal();
  EXPECT_EQ(BytesOf(*Open(), "a"), "abc");
}

}  // namespace
}  // namespace sealpoint
