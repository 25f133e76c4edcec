// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sealpoint/object_store.h"
#include "tests/support/storage/memory_object_store.h"
#include "tests/unit/storage/storage_fixture.h"

// What an object store does otherwise than other storages (storage_fixture.cc), and its parts.

namespace sealpoint::testing {
namespace {

class ObjectStorageTest : public ::testing::Test {
 protected:
  std::unique_ptr<Directory> OpenRoot() const {
    return storage_->OpenDirectory("mem://bucket").value();
  }
  static std::string Text(std::size_t size, char first = 'a') {
    std::string text(size, first);
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + (i * 7 + i / 26) % 26);
    return text;
  }

  const std::shared_ptr<MemoryObjectStore> store_ = std::make_shared<MemoryObjectStore>();
  const std::shared_ptr<Storage> storage_ =
      ObjectStorage(store_, {.upload_memory_bytes = 2 * 64 * kKiB}).value();
  const std::unique_ptr<Directory> root_ = OpenRoot();
};

TEST_F(ObjectStorageTest, NeedsAStoreWithAUriAndParts) {
  EXPECT_EQ(ObjectStorage(nullptr).error().code(), Code::kInvalidArgument);
  for (const char* const uri : {"", "bucket", "s3://bucket/a"}) {
    EXPECT_EQ(ObjectStorage(std::make_shared<MemoryObjectStore>(uri)).error().code(),
              Code::kInvalidArgument);
  }
  const auto store = std::make_shared<MemoryObjectStore>();
  store->part_size = 0;
  EXPECT_EQ(ObjectStorage(store).error().code(), Code::kInvalidArgument);
}

TEST_F(ObjectStorageTest, PathsBeginWithItsUri) {
  for (const char* const path : {"/a", "mem://bucket2/a", "mem://bucket/../a", "other://bucket"}) {
    EXPECT_EQ(storage_->OpenDirectory(path).error().code(), Code::kInvalidArgument) << path;
    EXPECT_EQ(storage_->CreateDirectories(path).code(), Code::kInvalidArgument) << path;
  }
  WriteFile(*root_, "top", "1");
  EXPECT_EQ(ReadFile(**storage_->OpenDirectory("mem://bucket/"), "top"), "1");
}

TEST_F(ObjectStorageTest, APrefixIsADirectoryWhileItHasAnObject) {
  store_->Set("a/b/f", Bytes(3));
  store_->Set("folder/", Bytes());  // as consoles make them
  store_->Set("a//odd", Bytes(1));  // no name below a/
  const auto a = root_->OpenSubdirectory("a").value();
  EXPECT_EQ(Names(*a), std::vector<std::string>{"b"});
  EXPECT_EQ(Names(*root_), (std::vector<std::string>{"a", "folder"}));
  EXPECT_TRUE(Names(**root_->OpenSubdirectory("folder")).empty());
  EXPECT_TRUE(root_->RemoveSubdirectory("folder").ok());
  EXPECT_EQ(root_->RemoveSubdirectory("a").code(), Code::kIo);
  EXPECT_TRUE(root_->RemoveSubdirectory("missing").ok());
  EXPECT_EQ(root_->OpenForRead("a", IoMode::kBuffered).error().code(), Code::kNotFound);
  const auto b = a->OpenSubdirectory("b").value();
  EXPECT_TRUE(b->Remove("f").ok());
  EXPECT_TRUE(b->Remove("f").ok()) << "once more";
  EXPECT_EQ(a->OpenSubdirectory("b").error().code(), Code::kNotFound);
  WriteFile(*b, "g", "x");
  EXPECT_TRUE(a->OpenSubdirectory("b").ok()) << "there again with its first object";
  EXPECT_EQ(b->CreateExclusive(std::string(1024, 'x'), IoMode::kBuffered).error().code(),
            Code::kIo);
}

TEST_F(ObjectStorageTest, AnObjectIsThereWhenItIsComplete) {
  for (const std::size_t size : {0u, 5u, 65536u, 65537u, 300000u}) {
    const std::string name = std::to_string(size);
    const std::string text = Text(size);
    const auto file = root_->CreateExclusive(name, IoMode::kBuffered).value();
    ASSERT_TRUE(file->WriteAt(0, AsBytes(text)).ok());
    EXPECT_EQ(root_->Stat(name).error().code(), Code::kNotFound);
    ASSERT_TRUE(file->Sync().ok());
    EXPECT_EQ(ReadFile(*root_, name), text);
    EXPECT_EQ(file->WriteAt(size, AsBytes("x")).code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(store_->count(Request::kComplete), 3u) << "of those that fill a part";
  {
    const auto given_up = root_->CreateExclusive("given up", IoMode::kBuffered).value();
    ASSERT_TRUE(given_up->WriteAt(0, AsBytes(Text(200000))).ok());
    EXPECT_EQ(store_->unfinished_uploads(), 1u);
  }
  EXPECT_EQ(store_->unfinished_uploads(), 0u);
  EXPECT_EQ(root_->Stat("given up").error().code(), Code::kNotFound);
}

TEST_F(ObjectStorageTest, HolesAndSecondWritesAreRefused) {
  for (const std::uint64_t offset : {1u, 65536u, 200000u}) {
    const auto file = root_->CreateExclusive("hole", IoMode::kBuffered).value();
    ASSERT_TRUE(file->WriteAt(offset, AsBytes("x")).ok());
    EXPECT_EQ(file->Sync().code(), Code::kInvalidArgument) << offset;
    EXPECT_EQ(file->Close().code(), Code::kInvalidArgument) << "it is poisoned";
  }
  const auto file = root_->CreateExclusive("twice", IoMode::kBuffered).value();
  ASSERT_TRUE(file->WriteAt(0, AsBytes(Text(65536))).ok());
  EXPECT_EQ(file->WriteAt(0, AsBytes("x")).code(), Code::kInvalidArgument);
}

TEST_F(ObjectStorageTest, OfTwoThatMakeAFixedNameOneIsTold) {
  const auto one = root_->CreateExclusive("export", IoMode::kBuffered).value();
  const auto two = root_->CreateExclusive("export", IoMode::kBuffered).value();
  EXPECT_TRUE(one->Close().ok());
  EXPECT_EQ(two->Close().code(), Code::kAlreadyExists);
  const std::string random = std::string(32, '7') + ".blob";
  store_->ResetCounts();
  WriteFile(*root_, random, "x");
  EXPECT_EQ(store_->request_count(), 1u) << "a random id needs no look and no condition";
  EXPECT_EQ(store_->count(Request::kPut), 1u);
}

// Four threads take the pieces of six files from one queue, as those of the engine do. The memory
// is that of two parts: less than one for each file.
TEST_F(ObjectStorageTest, ManyFilesShareLittleMemory) {
  constexpr std::size_t kFiles = 6;
  constexpr std::size_t kPiece = 10'000;
  constexpr std::size_t kSize = 40 * 64 * 1024 + 123;
  store_->sends_behind = true;
  const std::string text = Text(kSize);
  std::vector<std::unique_ptr<WritableFile>> files;
  for (std::size_t i = 0; i < kFiles; ++i) {
    files.push_back(root_->CreateExclusive(std::to_string(i), IoMode::kBuffered).value());
  }
  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (std::size_t job = next++; job / kFiles * kPiece < kSize; job = next++) {
        const std::size_t offset = job / kFiles * kPiece;
        const auto piece = AsBytes(text).subspan(offset, std::min(kPiece, kSize - offset));
        EXPECT_TRUE(files[job % kFiles]->WriteAt(offset, piece).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < kFiles; ++i) {
    ASSERT_TRUE(files[i]->Close().ok());
    EXPECT_EQ(ReadFile(*root_, std::to_string(i)), text);
  }
  EXPECT_LE(store_->held_bytes_max(), (2 + kFiles) * store_->part_size);
}

TEST_F(ObjectStorageTest, AFailedPartPoisonsTheFile) {
  for (const bool behind : {false, true}) {
    store_->sends_behind = behind;
    const auto file = root_->CreateExclusive("f", IoMode::kBuffered).value();
    store_->FailAt(2, Trouble::kLostReply);  // the begin and a part go well
    Status status;
    for (std::size_t i = 0; i < 6; ++i) {
      status = file->WriteAt(i * 65536, AsBytes(Text(65536)));
    }
    status = file->Sync();
    EXPECT_EQ(status.code(), Code::kIo) << status.ToString();
    EXPECT_EQ(file->Close(), status);
    EXPECT_EQ(root_->Stat("f").error().code(), Code::kNotFound);
  }
  EXPECT_EQ(store_->unfinished_uploads(), 0u);
}

TEST_F(ObjectStorageTest, LargeObjectsOfAListingAreOpenedWithoutARequest) {
  store_->Set("d/large", Bytes(100'000, std::byte{1}));
  store_->Set("d/small", Bytes(100, std::byte{2}));
  store_->page_size = 1;
  const auto directory = root_->OpenSubdirectory("d").value();
  const std::vector<std::string> names{"large", "small"};
  const auto found = directory->StatEach(names).value();
  EXPECT_EQ(found[0].value(), (EntryInfo{"large", EntryKind::kFile, 100'000}));
  EXPECT_EQ(found[1].value().size_bytes, 100u);
  EXPECT_EQ(store_->count(Request::kList), 4u) << "of the root, of the opening, of each page";
  EXPECT_EQ(directory->OpenForRead("large", IoMode::kBuffered).value()->size_bytes(), 100'000u);
  EXPECT_EQ(store_->count(Request::kGet), 0u);
  EXPECT_EQ(ReadFile(*directory, "small").size(), 100u);
  EXPECT_EQ(store_->count(Request::kGet), 1u);

  const auto file = directory->OpenForRead("large", IoMode::kDirect).value();
  store_->Set("d/large", Bytes(100'000, std::byte{3}));
  Bytes out(10);
  EXPECT_EQ(file->ReadAt(0, out).code(), Code::kIo) << "another object";
  EXPECT_TRUE(directory->Remove("large").ok());
  EXPECT_EQ(file->ReadAt(0, out).code(), Code::kIncomplete) << "no object";
  EXPECT_EQ(directory->StatEach(names).value()[0].error().code(), Code::kNotFound);
  store_->Set("d/large", Bytes(1));
  EXPECT_TRUE(directory->StatEach(names).value()[0].ok()) << "what lacked is listed again";
}

TEST_F(ObjectStorageTest, ProbeFindsTheConditionOrRefusesTheServer) {
  EXPECT_EQ(root_->Probe("probe").value(),
            (Capabilities{.publish = PublishMethod::kPutIfAbsent, .directory_sync = true}));
  EXPECT_EQ(store_->request_count(), 4u) << "with that of the opening";
  EXPECT_TRUE(Names(*root_).empty());
  EXPECT_EQ(root_->PublishExclusive("a", "b", PublishMethod::kPutIfAbsent).code(),
            Code::kUnsupported);
  store_->ignores_condition = true;
  const Status refused = root_->Probe("probe").error();
  EXPECT_EQ(refused.code(), Code::kUnsupported);
  EXPECT_EQ(refused.place().rule, "R-CMT-04");
  for (const char* const said : {"mem://bucket", "took a second put", "If-None-Match"}) {
    EXPECT_NE(refused.message().find(said), std::string::npos) << refused.ToString();
  }
  EXPECT_TRUE(Names(*root_).empty());
}

TEST(Directory, OfAFileSystemPutsNothingConditionally) {
  const auto storage = MemoryStorage();
  const auto root = storage->OpenDirectory("/").value();
  EXPECT_EQ(root->PutIfAbsent("a", {}).code(), Code::kUnsupported);
}

}  // namespace
}  // namespace sealpoint::testing
