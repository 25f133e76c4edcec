// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
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
  for (const char* const path :
       {"/a", "mem://bucket2/a", "mem://bucket/../a", "other://bucket", "mem://BUCKET/a"}) {
    EXPECT_EQ(storage_->OpenDirectory(path).error().code(), Code::kInvalidArgument) << path;
    EXPECT_EQ(storage_->CreateDirectories(path).code(), Code::kInvalidArgument) << path;
  }
  WriteFile(*root_, "top", "1");
  for (const char* const path : {"mem://bucket/", "MEM://bucket", "Mem://bucket/"}) {
    EXPECT_EQ(ReadFile(**storage_->OpenDirectory(path), "top"), "1") << path;
  }
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
  EXPECT_EQ(b->OpenSubdirectory("g").error().code(), Code::kIo) << "an object";
  EXPECT_EQ(b->CreateExclusive(std::string(1024, 'x'), {}).error().code(), Code::kIo);
}

TEST_F(ObjectStorageTest, AnObjectIsThereWhenItIsComplete) {
  for (const std::size_t size : {0u, 5u, 65536u, 65537u, 300000u}) {
    const std::string name = std::to_string(size);
    const std::string text = Text(size);
    const auto file = root_->CreateExclusive(name, {}).value();
    ASSERT_TRUE(file->WriteAt(0, AsBytes(text)).ok());
    EXPECT_EQ(root_->Stat(name).error().code(), Code::kNotFound);
    ASSERT_TRUE(file->Sync().ok());
    EXPECT_EQ(ReadFile(*root_, name), text);
    EXPECT_EQ(file->WriteAt(size, AsBytes("x")).code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(store_->count(Request::kComplete), 3u) << "of those that fill a part";
  {
    const auto abandoned = root_->CreateExclusive("given up", {}).value();
    ASSERT_TRUE(abandoned->WriteAt(0, AsBytes(Text(200000))).ok());
    EXPECT_EQ(store_->unfinished_uploads(), 1u);
  }
  EXPECT_EQ(store_->unfinished_uploads(), 0u);
  EXPECT_EQ(root_->Stat("given up").error().code(), Code::kNotFound);
}

TEST_F(ObjectStorageTest, HolesAndSecondWritesAreRefused) {
  for (const std::uint64_t offset : {1u, 65536u, 200000u}) {
    const auto file = root_->CreateExclusive("hole", {}).value();
    ASSERT_TRUE(file->WriteAt(offset, AsBytes("x")).ok());
    EXPECT_EQ(file->Sync().code(), Code::kInvalidArgument) << offset;
    EXPECT_EQ(file->Close().code(), Code::kInvalidArgument) << "it is poisoned";
  }
  const auto file = root_->CreateExclusive("twice", {}).value();
  ASSERT_TRUE(file->WriteAt(0, AsBytes(Text(65536))).ok());
  EXPECT_EQ(file->WriteAt(0, AsBytes("x")).code(), Code::kInvalidArgument);
  EXPECT_EQ(file->WriteAt(65536, AsBytes("x")).code(), Code::kInvalidArgument) << "poisoned";
  EXPECT_EQ(file->Preallocate(9).code(), Code::kInvalidArgument);
  EXPECT_EQ(file->Sync().code(), Code::kInvalidArgument);

  const auto apart = root_->CreateExclusive("apart", {}).value();
  ASSERT_TRUE(apart->WriteAt(0, AsBytes(Text(65530))).ok());
  ASSERT_TRUE(apart->WriteAt(65536, AsBytes(Text(6))).ok());
  EXPECT_EQ(apart->Sync().code(), Code::kInvalidArgument) << "two parts, and 6 bytes lack";
}

TEST_F(ObjectStorageTest, ACompleteObjectTakesNothing) {
  const auto file = root_->CreateExclusive("f", {}).value();
  EXPECT_TRUE(file->Preallocate(std::uint64_t{1} << 40).ok());
  EXPECT_EQ(file->Preallocate(std::uint64_t{1} << 63).code(), Code::kInvalidArgument);
  EXPECT_TRUE(file->WriteAt(0, AsBytes("x")).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_EQ(store_->count(Request::kPutIfAbsent), 1u);
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(file->Close().code(), Code::kInvalidArgument);
  EXPECT_EQ(file->Sync().code(), Code::kInvalidArgument);
  EXPECT_EQ(file->Preallocate(1).code(), Code::kInvalidArgument);
  EXPECT_EQ(file->WriteAt(1, AsBytes("x")).code(), Code::kInvalidArgument);
  const auto far = root_->CreateExclusive("far", {}).value();
  EXPECT_EQ(far->WriteAt(std::uint64_t{1} << 63, AsBytes("x")).code(), Code::kInvalidArgument);
  EXPECT_EQ(far->Close().code(), Code::kInvalidArgument);
}

TEST_F(ObjectStorageTest, AnUploadThatCannotBeginPoisonsTheFile) {
  const auto file = root_->CreateExclusive("f", {}).value();
  store_->FailAt(0, Trouble::kRefused);
  EXPECT_EQ(file->WriteAt(0, AsBytes(Text(65536))).code(), Code::kIo);
  EXPECT_EQ(file->WriteAt(65536, AsBytes(Text(65536))).code(), Code::kIo);
  EXPECT_EQ(file->Close().code(), Code::kIo);
  EXPECT_EQ(store_->count(Request::kComplete), 0u);
}

// Who waits for memory of a file that fails meanwhile is told.
TEST_F(ObjectStorageTest, AFailureEndsTheWaitForMemory) {
  const auto file = root_->CreateExclusive("f", {}).value();
  Status status;
  std::thread writer([&] {
    for (std::uint64_t part = 1; part < 9 && status.ok(); ++part) {
      status = file->WriteAt(part * 65536, AsBytes("x"));
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(file->WriteAt(std::uint64_t{1} << 63, AsBytes("x")).code(), Code::kInvalidArgument);
  writer.join();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
}

// A part that fails while another thread waits to complete the object.
TEST_F(ObjectStorageTest, WhoCompletesHearsOfThePartsUnderWay) {
  store_->forgets_parts = true;
  store_->on_part = [] { std::this_thread::sleep_for(std::chrono::milliseconds(200)); };
  const auto file = root_->CreateExclusive("f", {}).value();
  store_->FailAt(1, Trouble::kRefused);
  std::thread writer([&] { EXPECT_EQ(file->WriteAt(0, AsBytes(Text(65536))).code(), Code::kIo); });
  while (store_->count(Request::kStartUpload) == 0) std::this_thread::yield();
  EXPECT_EQ(file->Sync().code(), Code::kIo);
  writer.join();
  EXPECT_EQ(store_->count(Request::kComplete), 0u);
}

// A sanitizer ends the program if an allocation fails.
#if !defined(SEALPOINT_TEST_SANITIZED)
TEST_F(ObjectStorageTest, APartThatFitsNoMemoryIsNoSpace) {
  store_->part_size = std::uint64_t{1} << 50;
  const auto root = ObjectStorage(store_).value()->OpenDirectory("mem://bucket").value();
  const auto file = root->CreateExclusive("f", {}).value();
  EXPECT_EQ(file->WriteAt(0, AsBytes("x")).code(), Code::kNoSpace);
  EXPECT_EQ(file->Close().code(), Code::kNoSpace);
}
#endif

// The last part has trouble: nothing is completed.
TEST_F(ObjectStorageTest, AFailedLastPartIsNotCompleted) {
  store_->forgets_parts = true;
  const auto file = root_->CreateExclusive("f", {}).value();
  ASSERT_TRUE(file->WriteAt(0, AsBytes(Text(65536 + 10))).ok());
  store_->FailAt(0, Trouble::kRefused);
  EXPECT_EQ(file->Sync().code(), Code::kIo);
  EXPECT_EQ(store_->count(Request::kComplete), 0u);
  EXPECT_EQ(file->Close().code(), Code::kIo);
}

TEST_F(ObjectStorageTest, OfTwoThatMakeAFixedNameOneIsTold) {
  const auto one = root_->CreateExclusive("export", {}).value();
  const auto two = root_->CreateExclusive("export", {}).value();
  EXPECT_TRUE(one->Close().ok());
  EXPECT_EQ(two->Close().code(), Code::kAlreadyExists);
  // The caller says that a name is random; how it looks says nothing.
  const std::string name = std::string(32, '7') + ".blob";
  WriteFile(*root_, name, "x");
  EXPECT_EQ(root_->CreateExclusive(name, {}).error().code(), Code::kAlreadyExists);
  store_->ResetCounts();
  const auto again = root_->CreateExclusive(name, {.is_name_random = true}).value();
  EXPECT_TRUE(again->Close().ok());
  EXPECT_EQ(store_->request_count(), 1u) << "no look and no condition";
  EXPECT_EQ(store_->count(Request::kPut), 1u);
}

class CountedMemory final : public PartBudget {
 public:
  explicit CountedMemory(std::uint64_t max) : max_(max) {}
  bool TryTake(std::uint64_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (used + bytes > max_) return false;
    used += bytes;
    return true;
  }
  void Give(std::uint64_t bytes) override {
    const std::lock_guard lock(mutex_);
    used -= bytes;
  }
  std::uint64_t used = 0;

 private:
  const std::uint64_t max_;
  std::mutex mutex_;
};

// Four threads take the pieces of six files from one queue, as those of the engine do. Beyond one
// part for each file there is little memory, the storage's or somebody else's, or none.
TEST_F(ObjectStorageTest, ManyFilesShareLittleMemory) {
  constexpr std::size_t kFiles = 6;
  constexpr std::size_t kPiece = 10'000;
  constexpr std::size_t kSize = 40 * 64 * 1024 + 123;
  const std::string text = Text(kSize);
  const std::pair<bool, std::size_t> rows[] = {{false, 2}, {true, 0}, {true, 3}};
  for (const auto& [is_counted, parts] : rows) {
    const auto store = std::make_shared<MemoryObjectStore>();
    store->sends_behind = true;
    const auto storage = ObjectStorage(store, {.upload_memory_bytes = 2 * 64 * kKiB}).value();
    const auto root = storage->OpenDirectory("mem://bucket").value();
    CountedMemory memory(parts * store->part_size);
    std::vector<std::unique_ptr<WritableFile>> files;
    for (std::size_t i = 0; i < kFiles; ++i) {
      files.push_back(root->CreateExclusive(std::to_string(i), {}).value());
      if (is_counted) files.back()->ChargePartsTo(memory);
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
      EXPECT_EQ(ReadFile(*root, std::to_string(i)), text);
    }
    EXPECT_LE(store->held_bytes_max(), (parts + kFiles) * store->part_size);
    files.clear();
    EXPECT_EQ(memory.used, 0u);
  }
}

TEST_F(ObjectStorageTest, AFailedPartPoisonsTheFile) {
  for (const bool behind : {false, true}) {
    store_->sends_behind = behind;
    const auto file = root_->CreateExclusive("f", {}).value();
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

// In pages, as a promotion does that waits for the last of many.
TEST_F(ObjectStorageTest, OneListingAnswersForEachNameOnce) {
  std::vector<std::string> names;
  for (int i = 0; i < 9; ++i) store_->Set("d/" + names.emplace_back(1, 'a' + i), Bytes(1));
  store_->page_size = 3;
  const auto directory = root_->OpenSubdirectory("d").value();
  const auto ask = [&](std::size_t begin, std::uint64_t lists) {
    store_->ResetCounts();
    const auto page = directory->StatEach(std::span(names).subspan(begin, 3)).value();
    EXPECT_EQ(store_->count(Request::kList), lists) << begin;
    EXPECT_EQ(store_->request_count(), lists) << begin;
    return std::count_if(page.begin(), page.end(), [](const auto& one) { return one.ok(); });
  };
  for (const std::size_t begin : {0u, 3u, 6u}) EXPECT_EQ(ask(begin, begin == 0 ? 3 : 0), 3);
  EXPECT_EQ(ask(6, 3), 3) << "asked again";
  EXPECT_TRUE(directory->Remove("b").ok());
  EXPECT_EQ(ask(3, 0), 3) << "what was done to one name leaves the others known";
  EXPECT_EQ(ask(0, 3), 2);
  store_->Set("d/b", Bytes(1));
  EXPECT_EQ(ask(0, 3), 3) << "what lacked is looked for again";
}

TEST_F(ObjectStorageTest, TroubleWithALookIsNotAnAbsence) {
  const auto trouble = [&](std::uint64_t number) { store_->FailAt(number, Trouble::kRefused); };
  WriteFile(*root_, "d", "an object");
  trouble(0);
  EXPECT_EQ(root_->CreateExclusive("f", {}).error().code(), Code::kIo);
  trouble(0);
  EXPECT_EQ(root_->Stat("f").error().code(), Code::kIo);
  trouble(1);
  EXPECT_EQ(root_->OpenSubdirectory("none").error().code(), Code::kIo);
  trouble(0);
  EXPECT_EQ(root_->List().error().code(), Code::kIo);
  trouble(0);
  EXPECT_EQ(root_->ReadFileIn("a", "f", 9).error().code(), Code::kIo);
  trouble(0);
  EXPECT_EQ(root_->RemoveSubdirectory("a").code(), Code::kIo);
  trouble(0);
  EXPECT_EQ(root_->OpenForRead("d", IoMode::kBuffered).error().code(), Code::kIo);
}

TEST_F(ObjectStorageTest, NamesAreOfOneComponent) {
  for (const std::string name : {"", "..", "a/b"}) {
    EXPECT_EQ(root_->CreateExclusive(name, {}).error().code(), Code::kInvalidArgument) << name;
    EXPECT_EQ(root_->ReadFileIn(name, "f", 9).error().code(), Code::kInvalidArgument) << name;
    EXPECT_EQ(root_->ReadFileIn("a", name, 9).error().code(), Code::kInvalidArgument) << name;
    for (const auto& [from, to] : {std::pair<std::string, std::string>{name, "f"}, {"f", name}}) {
      EXPECT_EQ(root_->PublishExclusive(from, to, PublishMethod::kPutIfAbsent).code(),
                Code::kInvalidArgument)
          << name;
    }
  }
  ASSERT_TRUE(root_->CreateExclusive(std::string(1024, 'x'), {}).ok()) << "the longest key";
  EXPECT_EQ(root_->CreateExclusive(std::string(1025, 'x'), {}).error().code(), Code::kIo);
}

TEST_F(ObjectStorageTest, ADirectoryIsEmptyIfNothingIsBelow) {
  store_->Set("object/f", Bytes(1));
  store_->Set("deep/er/f", Bytes(1));
  ASSERT_TRUE(storage_->CreateDirectories("mem://bucket/made/inside").ok());
  for (const char* const name : {"object", "deep", "made"}) {
    EXPECT_EQ(root_->RemoveSubdirectory(name).code(), Code::kIo) << name;
  }
  ASSERT_TRUE(storage_->CreateDirectories("mem://bucket/alone").ok());
  EXPECT_TRUE(root_->RemoveSubdirectory("alone").ok());
}

TEST_F(ObjectStorageTest, ACopyWithTheEtagOfOtherContentIsNotKept) {
  struct Row {
    const char* source;
    const char* copy;
    bool is_kept;
  };
  const Row rows[] = {{"5", "6", false},  {"5", "5", true},     {"", "5", true},
                      {"5", "", true},    {"\"5\"", "5", true}, {"5", "\"5\"", true},
                      {"5-2", "6", true}, {"6", "5-2", true},   {"\"5\"", "\"6\"", false}};
  ASSERT_TRUE(storage_->CreateDirectories("mem://bucket/to").ok());
  const auto directory = root_->OpenSubdirectory("to").value();
  store_->Set("from/f", Bytes(3));
  for (const Row& row : rows) {
    store_->etag = row.source;
    store_->copy_etag = row.copy;
    const Status copied = directory->LinkFrom("mem://bucket/from", "f", 2);
    EXPECT_EQ(copied.ok(), row.is_kept) << row.source << " " << row.copy;
    EXPECT_EQ(store_->Objects().count("to/f"), row.is_kept ? 1u : 0u) << row.source;
  }
}

TEST_F(ObjectStorageTest, WhatCannotBeCopiedIsSaid) {
  store_->Set("from/f", Bytes(3));
  EXPECT_EQ(root_->LinkFrom("mem://other/from", "f", 9).code(), Code::kUnsupported);
  EXPECT_EQ(root_->LinkFrom("mem://bucket/from", "f", 1).code(), Code::kUnsupported);
  EXPECT_EQ(root_->LinkFrom("mem://bucket/from", "a/f", 9).code(), Code::kInvalidArgument);
  EXPECT_EQ(root_->LinkFrom("mem://bucket/from", "g", 9).code(), Code::kNotFound);
  EXPECT_EQ(store_->count(Request::kCopy), 0u);
  EXPECT_TRUE(root_->LinkFrom("mem://bucket/from", "f", 2).ok());
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
  for (const char* const said :
       {"mem://bucket", "accepted a second put of the same key", "If-None-Match"}) {
    EXPECT_NE(refused.message().find(said), std::string::npos) << refused.ToString();
  }
  EXPECT_TRUE(Names(*root_).empty());
  store_->ignores_condition = false;
  for (const std::uint64_t request : {1u, 2u}) {  // the second put, the removal
    store_->FailAt(request, Trouble::kRefused);
    EXPECT_EQ(root_->Probe("probe").error().code(), Code::kIo) << request;
    static_cast<void>(root_->Remove("probe"));
  }
  store_->has_condition = false;
  EXPECT_EQ(root_->Probe("probe").error().place().rule, "R-CMT-04");
}

TEST(Directory, OfAFileSystemPutsNothingConditionally) {
  const auto storage = MemoryStorage();
  const auto root = storage->OpenDirectory("/").value();
  EXPECT_EQ(root->PutIfAbsent("a", {}).code(), Code::kUnsupported);
}

}  // namespace
}  // namespace sealpoint::testing
