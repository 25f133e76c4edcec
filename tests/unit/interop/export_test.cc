// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "sealpoint/blob_writer.h"
#include "sealpoint/interop.h"
#include "sealpoint/object_store.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/support/storage/memory_object_store.h"
#include "tests/support/storage/write_file.h"

namespace sealpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using testing::StorageOp;

class ExportTest : public ::testing::Test {
 protected:
  ExportTest() {
    EngineOptions options{.memory_budget_bytes = 2 * kMiB, .staging_buffer_size_bytes = kMiB / 4};
    options.storage = storage_;
    engine_ = Engine::Create(options).value();
    std::iota(large_.begin(), large_.end(), std::uint16_t{0});
  }
  // Three tensors, and an object if it is asked for.
  void Save(bool with_object = false, const std::string& object = "rng") {
    static_cast<void>(storage_->CreateDirectories("in"));
    const auto writer = BlobWriter::Create(*engine_, "in").value();
    const std::string small = "abc";
    EXPECT_TRUE(writer
                    ->Add({.name = "a", .dtype = DType::kUInt8, .shape = {3}}, Region::Whole({3}),
                          MemoryView::Host(small.data(), 3))
                    .ok());
    EXPECT_TRUE(writer
                    ->Add({.name = "b", .dtype = DType::kUInt16, .shape = {5, 20'000}},
                          Region::Whole({5, 20'000}),
                          MemoryView::Host(large_.data(), large_.size() * 2))
                    .ok());
    EXPECT_TRUE(writer->AddEmpty({.name = "c", .dtype = DType::kF32, .shape = {0, 2}}).ok());
    if (with_object) {
      EXPECT_TRUE(writer->AddObject(object, "a/b", AsBytes("foo")).ok());
    }
    ASSERT_TRUE(Commit(*storage_, "in", {}, writer->Finish().value()).ok());
    checkpoint_ = Checkpoint::Open("in", {.storage = storage_}).value();
  }
  Result<ExportReport> Export(const std::string& path, ExportOptions options = {}) {
    options.storage = storage_;
    return ExportSafetensors(*checkpoint_, path, options);
  }
  std::unique_ptr<SafetensorsModel> Open(const std::string& path) {
    auto model = SafetensorsModel::Open(path, {.storage = storage_});
    EXPECT_TRUE(model.ok()) << model.error().ToString();
    return *std::move(model);
  }
  void ExpectTensors(const SafetensorsModel& model) {
    ASSERT_THAT(model.tensors(), SizeIs(3));
    std::string a(3, '.');
    EXPECT_TRUE(model.Read("a", MutableMemoryView::Host(a.data(), 3)).ok());
    EXPECT_EQ(a, "abc");
    std::vector<std::uint16_t> b(large_.size());
    EXPECT_TRUE(model.Read("b", MutableMemoryView::Host(b)).ok());
    EXPECT_EQ(b, large_);
    EXPECT_EQ(model.Find("b")->shape, (Shape{5, 20'000}));
    EXPECT_EQ(model.Find("c")->shape, (Shape{0, 2}));
  }
  std::vector<std::string> Names(const std::string& path) {
    std::vector<std::string> names;
    for (const EntryInfo& entry : storage_->OpenDirectory(path).value()->List().value()) {
      names.push_back(entry.name);
    }
    return names;
  }

  std::shared_ptr<testing::FailingStorage> storage_ =
      std::make_shared<testing::FailingStorage>(MemoryStorage());
  std::unique_ptr<Engine> engine_;
  std::vector<std::uint16_t> large_ = std::vector<std::uint16_t>(100'000);
  std::unique_ptr<Checkpoint> checkpoint_;
};

TEST_F(ExportTest, MakesAFile) {
  Save();
  ASSERT_TRUE(storage_->CreateDirectories("out").ok());
  std::vector<std::uint64_t> seen;
  const auto report = Export(
      "out/x.safetensors",
      {.shard_size_max_bytes = 1, .on_progress = [&](std::uint64_t n) { seen.push_back(n); }});
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  const auto model = Open("out/x.safetensors");
  ExpectTensors(*model);
  EXPECT_THAT(report->files, ElementsAre(Pair("x.safetensors", model->files()[0].size_bytes)));
  EXPECT_EQ(report->tensor_count, 3);
  EXPECT_EQ(report->raw_bytes, 200'003);
  EXPECT_EQ(report->object_count, 0);
  EXPECT_EQ(seen.back(), 200'003);
  EXPECT_THAT(Names("out"), ElementsAre("x.safetensors"));
  EXPECT_THAT(model->files()[0].metadata, ElementsAre(Pair("format", "pt")));
}

TEST_F(ExportTest, MakesADirectory) {
  Save();
  const auto report = Export("new/out", {.shard_size_max_bytes = 100});
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_THAT(Names("new/out"),
              ElementsAre("model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                          "model-00003-of-00003.safetensors", "model.safetensors.index.json"));
  ExpectTensors(*Open("new/out"));
  EXPECT_THAT(report->files, SizeIs(4));
}

TEST_F(ExportTest, MakesADirectoryInAnObjectStore) {
  Save();
  const auto store = std::make_shared<testing::MemoryObjectStore>();
  const auto objects = ObjectStorage(store).value();
  const std::string first = "out/model-00001-of-00003.safetensors";
  store->Set("out/.partial-0123abcd", Bytes(3));  // what a killed export left
  store->Set(first, Bytes(3));
  const auto make = [&](const std::string& path) {
    return ExportSafetensors(*checkpoint_, path, {.shard_size_max_bytes = 100, .storage = objects})
        .status();
  };
  EXPECT_EQ(make("mem://bucket/out").code(), Code::kAlreadyExists) << "its marker names nothing";
  const std::string_view name = std::string_view(first).substr(4);
  store->Set("out/.partial-0123abcd", {AsBytes(name).begin(), AsBytes(name).end()});
  ASSERT_TRUE(make("mem://bucket/out").ok());
  EXPECT_THAT(store->Objects(), SizeIs(4));
  ExpectTensors(*SafetensorsModel::Open("mem://bucket/out", {.storage = objects}).value());
  EXPECT_EQ(make("mem://bucket/out").code(), Code::kAlreadyExists);
  ASSERT_TRUE(make("mem://bucket/x.safetensors").ok());
  ExpectTensors(
      *SafetensorsModel::Open("mem://bucket/x.safetensors", {.storage = objects}).value());
}

TEST_F(ExportTest, TensorsAreCutAtElements) {
  Save();
  ASSERT_TRUE(Export("out", {.buffer_size_bytes = 65'537}).ok());
  EXPECT_THAT(Names("out"), ElementsAre("model.safetensors"));
  ExpectTensors(*Open("out"));
  EXPECT_EQ(Export("other", {.buffer_size_bytes = 65'535}).status().code(), Code::kInvalidArgument);
}

TEST_F(ExportTest, KeepsObjects) {
  Save(true);
  EXPECT_EQ(Export("out").value().object_count, 1);
  const SafetensorsFile file = Open("out")->files()[0];
  EXPECT_THAT(file.metadata, ElementsAre(Pair("format", "pt"),
                                         Pair("sealpoint.object.rng", R"(["a/b", "Zm9v"])")));
}

TEST_F(ExportTest, LeavesObjectsOut) {
  Save(true);
  EXPECT_EQ(Export("out", {.tensors_only = true}).value().object_count, 0);
  EXPECT_THAT(Open("out")->files()[0].metadata, SizeIs(1));
  EXPECT_EQ(Export("out2", {.match = {"a", "c"}}).value().tensor_count, 2);
  EXPECT_THAT(Open("out2")->files()[0].metadata, SizeIs(1));
  EXPECT_EQ(Export("out3", {.match = {"x"}}).status().code(), Code::kNotFound);
}

TEST_F(ExportTest, RefusesAnObjectThatIsNotWhatItsNameSays) {
  Save(true, "safetensors.metadata");
  const Status error = Export("out").status();
  EXPECT_EQ(error.code(), Code::kCorrupt);
  EXPECT_EQ(error.place().path, "in");
}

TEST_F(ExportTest, ReplacesNothing) {
  Save();
  testing::WriteFile(*storage_, "out/x.safetensors", std::string_view("old"));
  EXPECT_EQ(Export("out/x.safetensors").status().code(), Code::kAlreadyExists);
  EXPECT_EQ(Export("out").status().code(), Code::kAlreadyExists);
  EXPECT_EQ(AsText(testing::ReadFile(*storage_, "out/x.safetensors")), "old");
  EXPECT_TRUE(Export("out/y.safetensors").ok());
  testing::WriteFile(*storage_, "index/a.safetensors.index.json", std::string_view("{}"));
  EXPECT_EQ(Export("index").status().code(), Code::kAlreadyExists);
  // Files of other kinds may be there, such as a configuration.
  testing::WriteFile(*storage_, "other/config.json", std::string_view("{}"));
  EXPECT_TRUE(Export("other").ok());
}

TEST_F(ExportTest, RefusesIfThereIsNoRoom) {
  Save();
  storage_->Claim(SpaceInfo{.free_bytes = 200'003, .free_inodes = 100});
  EXPECT_EQ(Export("out").status().code(), Code::kNoSpace);
  EXPECT_THAT(Names("out"), IsEmpty());
}

TEST_F(ExportTest, TheRoomThatIsNeededIsThatOfTheFiles) {
  Save();
  const std::uint64_t size = Export("first").value().files.front().second;
  storage_->Claim(SpaceInfo{.free_bytes = size, .free_inodes = 100});
  EXPECT_TRUE(Export("second").ok());
  storage_->Claim(SpaceInfo{.free_bytes = size - 1, .free_inodes = 100});
  EXPECT_EQ(Export("third").status().code(), Code::kNoSpace);
}

TEST_F(ExportTest, BoundsTheHeader) {
  Save();
  EXPECT_EQ(Export("out", {.header_size_max_bytes = 20}).status().code(), Code::kLimitExceeded);
}

TEST_F(ExportTest, NothingIsPublishedThatIsNotDurable) {
  Save();
  storage_->ClearLog();
  ASSERT_TRUE(Export("out").ok());
  bool is_synced = false;
  bool is_closed = false;
  for (const auto& call : storage_->calls()) {
    if (call.op == StorageOp::kWrite) is_synced = is_closed = false;
    if (call.op == StorageOp::kSyncFile) is_synced = true;
    if (call.op == StorageOp::kClose) is_closed = true;
    EXPECT_TRUE(call.op != StorageOp::kPublish || (is_synced && is_closed));
  }
  EXPECT_TRUE(is_closed);
}

TEST_F(ExportTest, AfterAnErrorNoFileIsLeft) {
  Save(true);
  for (const auto op :
       {StorageOp::kCreateDirectories, StorageOp::kOpenDirectory, StorageOp::kList,
        StorageOp::kFreeSpace, StorageOp::kCreate, StorageOp::kWrite, StorageOp::kSyncFile,
        StorageOp::kClose, StorageOp::kPublish, StorageOp::kSyncDirectory}) {
    for (const int nth : {1, 2}) {
      static_cast<void>(storage_->CreateDirectories("out"));
      storage_->Heal();
      storage_->Fail({.op = op, .nth = nth, .persists = nth == 1});
      const auto report = Export("out");
      storage_->Heal();
      if (report.ok()) {
        EXPECT_EQ(nth, 2) << static_cast<int>(op);
        const auto directory = storage_->OpenDirectory("out").value();
        for (const std::string& name : Names("out")) EXPECT_TRUE(directory->Remove(name).ok());
      }
      EXPECT_THAT(Names("out"), IsEmpty()) << static_cast<int>(op);
    }
  }
}

// The head of the file, and what follows it.
TEST_F(ExportTest, EveryWriteCounts) {
  Save();
  for (const int nth : {1, 2}) {
    storage_->Heal();
    storage_->Fail({.op = StorageOp::kWrite, .name = "model.safetensors", .nth = nth});
    EXPECT_EQ(Export("out").status().code(), Code::kIo) << nth;
  }
}

// What is damaged in the checkpoint does not become a model.
TEST_F(ExportTest, VerifiesWhatItReads) {
  Save(true);
  for (const std::string tensor_or_object : {"b", "rng"}) {
    const std::string path = "out-" + tensor_or_object;
    storage_->SetReadHook([&](std::string_view name, std::uint64_t, MutableByteSpan bytes) {
      if (!name.ends_with(".blob")) return;
      if (tensor_or_object == "rng" && bytes.size() == 3) bytes[0] ^= std::byte{1};
      if (tensor_or_object == "b" && bytes.size() > 100'000) bytes[77'777] ^= std::byte{1};
    });
    const Status error = Export(path).status();
    EXPECT_EQ(error.code(), Code::kCorrupt) << tensor_or_object;
    storage_->Heal();
  }
  EXPECT_THAT(Names("out-b"), IsEmpty());
}

}  // namespace
}  // namespace sealpoint
