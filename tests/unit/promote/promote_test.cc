// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/promote.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/format/fields.h"
#include "lib/format/trailer.h"
#include "lib/promote/promote_files.h"
#include "sealpoint/digest.h"
#include "sealpoint/object_store.h"
#include "sealpoint/verify.h"
#include "tests/support/container/format_surgery.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/support/storage/memory_object_store.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

using ::testing::HasSubstr;

// Two blobs: plain chunks of several pieces, a coded one, padding between them, a scalar.
MiniSpec SpecOf(std::uint8_t attempt, std::uint64_t seed = 1) {
  MiniSpec spec{.attempt = MiniSpec::MakeId(attempt)};
  spec.tensors.push_back(CutTensor("w", DType::kInt8, {9000}, NoiseBytes(seed, 9000),
                                   {Region::Of({{0}, {5000}}), Region::Of({{5000}, {4000}})},
                                   {0, 1}));
  spec.tensors.push_back(
      CutTensor("coded", DType::kBf16, {3000}, Bytes(6000), {Region::Whole({3000})}, {1}));
  spec.tensors.back().codec = Codec::kByteSplitZstd;
  spec.objects.push_back({.name = "rng", .bytes = NoiseBytes(3, 100), .blob = 0});
  return spec;
}

class PromoteTest : public ::testing::Test {
 protected:
  PromoteTest() { StoreFiles(*from_, "local", good_.files); }

  Result<PromoteReport> Run(PromoteOptions options = {}) {
    options.from_storage = from_;
    if (!options.to_storage) options.to_storage = to_;
    options.memory_budget_bytes = 2 * 4096;  // a page for each thread
    return Promote({.from = "local", .to = "run/final"}, options);
  }
  std::map<std::string, Bytes> Files(const Storage& storage, const std::string& path) const {
    std::map<std::string, Bytes> files;
    const auto directory = storage.OpenDirectory(path);
    if (!directory.ok()) return files;
    const auto entries = (*directory)->List().value();
    for (const EntryInfo& entry : entries) {
      const auto file = (*directory)->OpenForRead(entry.name, IoMode::kBuffered);
      if (!file.ok()) continue;  // a promotion under way has removed it
      Bytes& bytes = files[entry.name];
      bytes.resize(entry.size_bytes);
      EXPECT_TRUE((*file)->ReadAt(0, bytes).ok());
    }
    return files;
  }
  std::map<std::string, Bytes> Final() const { return Files(*to_, "run/final"); }
  bool IsCommitted() const { return Final().contains("COMMIT"); }

  MiniContainer good_ = BuildMini(SpecOf(0xa7));
  std::shared_ptr<Storage> from_ = MemoryStorage();
  std::shared_ptr<Storage> to_ = MemoryStorage();
};

TEST_F(PromoteTest, CopiesEveryByteOnce) {
  const auto seen = std::make_shared<FailingStorage>(to_);
  const auto first = Run({.to_storage = seen});
  ASSERT_TRUE(first.ok()) << first.error().ToString();
  const auto calls = seen->calls();
  const auto count = [&](StorageOp op) {
    return std::count_if(calls.begin(), calls.end(),
                         [&](const StorageCall& call) { return call.op == op; });
  };
  EXPECT_EQ(count(StorageOp::kClose), count(StorageOp::kCreate))
      << "a close may report what is lost";
  EXPECT_EQ(first->blobs_copied, 2u);
  EXPECT_EQ(first->attempt, good_.attempt);
  EXPECT_EQ(Final(), good_.files);
  const auto second = Run();
  ASSERT_TRUE(second.ok()) << second.error().ToString();
  EXPECT_TRUE(second->was_committed);
  EXPECT_EQ(second->bytes_copied, 0u);
  EXPECT_EQ(Files(*from_, "local"), good_.files);
}

// Another process goes on with what is there, and with what comes late: no void marker is in its
// way.
// Files of kinds that this version does not know go along; other programs' do not.
TEST_F(PromoteTest, TakesSideFilesAlong) {
  const std::string name = MiniSpec::MakeId(0xa7).ToHex() + ".sig";
  const Bytes content = NoiseBytes(9, 10000);
  ReplaceFile(*from_, "local", name, &content);
  ReplaceFile(*from_, "local", "notes.txt", &content);
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(Final().at(name), content);
  EXPECT_FALSE(Final().contains("notes.txt"));
  EXPECT_EQ(Final().size(), good_.files.size() + 1);
}

TEST_F(PromoteTest, GoesToAnObjectStoreWhateverRequestHasTrouble) {
  const auto promote_to = [&](const std::shared_ptr<MemoryObjectStore>& store) {
    const std::shared_ptr<Storage> objects = ObjectStorage(store).value();
    return Promote({.from = "local", .to = "mem://bucket/run"},
                   {.from_storage = from_, .to_storage = objects});
  };
  const auto whole = std::make_shared<MemoryObjectStore>();
  ASSERT_TRUE(promote_to(whole).ok());
  for (std::uint64_t number = 0; number < whole->request_count(); ++number) {
    for (const Trouble trouble : kTroubles) {
      const auto first = std::make_shared<MemoryObjectStore>();
      first->FailAt(number, trouble);
      const bool is_promoted = promote_to(first).ok();
      first->Settle();
      const auto second = std::make_shared<MemoryObjectStore>();
      for (const auto& [key, content] : first->Objects()) second->Set(key, content);
      EXPECT_EQ(second->Objects().contains("run/COMMIT") || !is_promoted, true) << number;
      const auto again = promote_to(second);
      ASSERT_TRUE(again.ok()) << number << " " << again.error().ToString();
      EXPECT_EQ(again->was_committed, first->Objects().contains("run/COMMIT")) << number;
      for (const auto& [name, bytes] : good_.files) {
        ASSERT_EQ(second->Objects().at("run/" + name), bytes) << number << " " << name;
      }
    }
  }
}

// An object store is asked as often whatever number of blobs there is: each is put, and that is
// all.
TEST_F(PromoteTest, LooksAtManyBlobsAtOnce) {
  std::vector<std::uint64_t> looks;
  for (const std::uint32_t blob_count : {2u, 30u}) {
    MiniSpec spec{.attempt = MiniSpec::MakeId(0xa7)};
    for (std::uint32_t i = 0; i < blob_count; ++i) {
      spec.tensors.push_back(CutTensor("w" + std::to_string(i), DType::kInt8, {100},
                                       NoiseBytes(i, 100), {Region::Whole({100})},
                                       {static_cast<int>(i)}));
    }
    from_ = MemoryStorage();
    StoreFiles(*from_, "local", BuildMini(spec).files);
    const auto store = std::make_shared<MemoryObjectStore>();
    const std::shared_ptr<Storage> objects = ObjectStorage(store).value();
    ASSERT_TRUE(Promote({.from = "local", .to = "mem://bucket/run"},
                        {.from_storage = from_, .to_storage = objects})
                    .ok());
    looks.push_back(store->count(Request::kHead) + store->count(Request::kGet) +
                    store->count(Request::kList));
  }
  EXPECT_EQ(looks[0], looks[1]);
  EXPECT_LE(looks[0], 12u);
}

// R-STG-02: no byte of a blob is copied that was not verified.
TEST_F(PromoteTest, RefusesADamagedByteAnywhere) {
  for (const auto& [number, blob] : good_.blobs) {
    const Bytes& bytes = good_.files.at(blob.name);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      Bytes damaged = bytes;
      damaged[i] ^= std::byte{0x10};
      ReplaceFile(*from_, "local", blob.name, &damaged);
      to_ = MemoryStorage();
      const auto promoted = Run();
      ASSERT_FALSE(promoted.ok()) << "byte " << i;
      ASSERT_EQ(promoted.error().place().path, "local/" + blob.name) << "byte " << i;
      ASSERT_FALSE(promoted.error().place().rule.empty()) << promoted.error().ToString();
      ASSERT_FALSE(IsCommitted());
      ASSERT_FALSE(Final().contains(blob.name)) << "byte " << i;
    }
    ReplaceFile(*from_, "local", blob.name, &bytes);
  }
}

// A blob that is whole, and one whose header is, but of another checkpoint.
TEST_F(PromoteTest, RefusesPartsOfAnotherBlob) {
  const Bytes other = BuildMini(SpecOf(0xa7, 2)).blob(0);
  ReplaceFile(*from_, "local", good_.blobs.at(0).name, &other);
  EXPECT_EQ(Run().status().place().rule, "R-BLB-03");
  MiniSpec later = SpecOf(0xa7);
  later.step = 77;
  const Bytes later_blob = BuildMini(later).blob(0);
  Bytes mixed = good_.blob(0);
  ASSERT_FALSE(std::equal(mixed.begin(), mixed.begin() + format::kHeaderSize, later_blob.begin()));
  std::copy_n(later_blob.begin(), format::kHeaderSize, mixed.begin());
  ReplaceFile(*from_, "local", good_.blobs.at(0).name, &mixed);
  EXPECT_EQ(Run().status().place().rule, "R-BLB-03");
}

// Chunks and a table that agree with each other, but are not what the index pins.
TEST_F(PromoteTest, RefusesATableThatIsNotThePinnedOne) {
  Bytes other = BuildMini(SpecOf(0xa7, 2)).blob(0);
  const Bytes& good = good_.blob(0);
  ASSERT_EQ(other.size(), good.size());
  std::copy(good.end() - format::kTrailerSize, good.end(), other.end() - format::kTrailerSize);
  ReplaceFile(*from_, "local", good_.blobs.at(0).name, &other);
  const auto promoted = Run();
  ASSERT_FALSE(promoted.ok());
  EXPECT_EQ(promoted.error().place().rule, "R-BLB-05") << promoted.error().ToString();
  EXPECT_FALSE(IsCommitted());
}

// Tables that are pinned, and say of the chunk area what is not so.
TEST_F(PromoteTest, RefusesRecordsThatDoNotFollowEachOther) {
  using Records = std::vector<format::ChunkRecord>;
  Bytes area;
  struct Row {
    const char* what;
    std::function<void(Records&)> change;
    std::optional<std::size_t> bad{};  // the record at whose offset the error is
  };
  const Row rows[] = {
      {"overlap", [](Records& records) { records[1].offset -= 64; }, 1},
      {"pass the end of 64 bits",
       [](Records& records) {
         records[1].offset = std::uint64_t{0} - 64;
         records[1].stored_size = records[1].raw_size = 128;
       },
       1},
      {"pass the end of the area",
       [](Records& records) { records.back().stored_size = records.back().raw_size = 1 << 20; }, 2},
      {"one takes the whole area",
       [&](Records& records) {
         const auto begin = static_cast<std::ptrdiff_t>(records[0].offset);
         const ByteSpan rest(area.begin() + begin, area.end());
         records[0].stored_size = records[0].raw_size = static_cast<std::uint32_t>(rest.size());
         records[0].raw_digest = ComputeDigest(rest);
       }},
  };
  for (const Row& row : rows) {
    MiniSpec spec = SpecOf(0xa7);
    std::vector<std::uint64_t> offsets;
    spec.hooks.chunk_area = [&](int blob, Bytes& bytes) {
      if (blob == 0) area = bytes;
    };
    spec.hooks.records = [&](int blob, Records& records) {
      if (blob != 0) return;
      ASSERT_EQ(records.size(), 3u);
      row.change(records);
      for (const format::ChunkRecord& record : records) offsets.push_back(record.offset);
    };
    const MiniContainer bad = BuildMini(spec);
    from_ = MemoryStorage();
    StoreFiles(*from_, "local", bad.files);
    const Status status = Run().status();
    EXPECT_THAT(status, FailsRule(Code::kCorrupt, "R-REC-04")) << row.what;
    EXPECT_EQ(status.place().offset, row.bad ? std::optional(offsets.at(*row.bad)) : std::nullopt)
        << row.what;
    EXPECT_FALSE(IsCommitted());
  }
}

TEST_F(PromoteTest, RefusesAnExtensionThatNothingAnnounces) {
  MiniSpec spec = SpecOf(0xa7);
  spec.hooks.trailer_bytes = [](int, Bytes& trailer) {
    trailer[format::TrailerFields::kExtension.at] = std::byte{1};
    ResealTrailer(trailer);
  };
  from_ = MemoryStorage();
  StoreFiles(*from_, "local", BuildMini(spec).files);
  EXPECT_THAT(Run().status(), FailsRule(Code::kUnsupported, "R-HDR-06"));
}

TEST_F(PromoteTest, BoundsTheManifestThatItReads) {
  std::uint64_t largest = 0;
  for (const int blob : {0, 1}) {
    const ByteSpan trailer = ByteSpan(good_.blob(blob)).last(format::kTrailerSize);
    largest = std::max(largest, format::DecodeTrailer(trailer).value().manifest_size);
  }
  EXPECT_THAT(Run({.limits = {.manifest_size_max_bytes = largest - 1}}).status(),
              FailsRule(Code::kLimitExceeded, "R-IDX-01"));
  EXPECT_TRUE(Run({.limits = {.manifest_size_max_bytes = largest}}).ok());
}

// An error of the place of either side says so, and what the caller saw as failed may be done.
TEST_F(PromoteTest, SaysWhoseErrorItIs) {
  const auto run = [&](StorageFault fault) {
    to_ = MemoryStorage();
    const auto failing = std::make_shared<FailingStorage>(to_);
    failing->Fail(std::move(fault));
    return Run({.to_storage = failing, .threads = 1});
  };
  EXPECT_THAT(run({.op = StorageOp::kWrite, .name = ".blob"}).status().place().path,
              HasSubstr("run/final/"));
  EXPECT_EQ(
      run({.op = StorageOp::kPreallocate, .error = {Code::kNoSpace, "injected"}}).status().code(),
      Code::kNoSpace);
  const auto promoted = run({.op = StorageOp::kPublish, .name = ".blob", .takes_effect = true});
  ASSERT_TRUE(promoted.ok()) << promoted.error().ToString();
  EXPECT_EQ(promoted->blobs_copied, 1u) << "of one it was said that it is there already";
}

// What lies where the other nodes' blobs and the index are to be is not published with the rest.
TEST_F(PromoteTest, PublishesOnlyWhatIsAsItIsPinned) {
  const std::string other = good_.blobs.at(1).name;
  ReplaceFile(*from_, "local", other, nullptr);
  StoreFiles(*to_, "run/final", {{other, Bytes(7)}});
  EXPECT_THAT(Run().status(), HasCode(Code::kIncomplete));
  EXPECT_FALSE(IsCommitted());
  ReplaceFile(*from_, "local", other, &good_.blob(1));
  Bytes index = good_.index();
  index.back() ^= std::byte{1};
  to_ = MemoryStorage();
  StoreFiles(*to_, "run/final", {{good_.index_name, index}});
  EXPECT_THAT(Run().status(), HasCode(Code::kCorrupt));
  EXPECT_FALSE(IsCommitted());
  to_ = MemoryStorage();
  ASSERT_TRUE(Run().ok());
  ReplaceFile(*to_, "run/final", other, nullptr);
  EXPECT_THAT(Run().status(), HasCode(Code::kIncomplete)) << "it is committed, and not whole";
}

TEST_F(PromoteTest, IsEndedByItsCallerWhileItWaits) {
  ReplaceFile(*from_, "local", good_.blobs.at(1).name, nullptr);
  int calls = 0;
  const auto promoted =
      Run({.deadline = std::chrono::milliseconds(500), .on_progress = [&](const PhaseEvent& event) {
             if (event.bytes_done >= good_.blob(0).size() && ++calls >= 3) throw 1;
           }});
  EXPECT_THAT(promoted.status(), HasCode(Code::kCancelled));
}

// On both sides. What is left out matters to nobody: leftovers, and the hint of R-STG-10.
TEST_F(PromoteTest, AnyOtherFailureIsTheAnswer) {
  const auto source = from_;
  for (const bool is_source : {false, true}) {
    for (int nth = 1;; ++nth) {
      to_ = MemoryStorage();
      const auto failing = std::make_shared<FailingStorage>(is_source ? source : to_);
      failing->Fail({.any_op = true, .nth = nth});
      from_ = is_source ? failing : source;
      const auto promoted =
          Run({.to_storage = is_source ? to_ : std::shared_ptr<Storage>(failing), .threads = 1});
      if (failing->fault_count() == 0) {
        EXPECT_GT(nth, 15);
        break;
      }
      const auto calls = failing->calls();
      const auto failed = std::ranges::find(calls, Code::kIo, &StorageCall::code);
      ASSERT_NE(failed, calls.end());
      const bool is_of_no_matter = failed->op == StorageOp::kRemove ||
                                   (failed->op == StorageOp::kList && !is_source) ||
                                   failed->name.ends_with(".given-up");
      EXPECT_EQ(promoted.ok(), is_of_no_matter) << nth << " " << failed->name;
      if (!promoted.ok()) {
        EXPECT_THAT(promoted.error().message(), HasSubstr("injected")) << failed->name;
      }
    }
  }
}

TEST_F(PromoteTest, RefusesWhatIsNotCommittedOrShort) {
  Bytes longer = good_.blob(0);
  longer.resize(longer.size() + 4096);
  ReplaceFile(*from_, "local", good_.blobs.at(0).name, &longer);
  EXPECT_FALSE(Run().ok());
  EXPECT_FALSE(IsCommitted());
  Bytes shortened = good_.blob(0);
  shortened.resize(shortened.size() - 4096);
  ReplaceFile(*from_, "local", good_.blobs.at(0).name, &shortened);
  EXPECT_EQ(Run().error().code(), Code::kIncomplete);
  ReplaceFile(*from_, "local", "COMMIT", nullptr);
  EXPECT_EQ(Run().error().code(), Code::kUncommitted);
  EXPECT_FALSE(IsCommitted());
}

// R-STG-04: two nodes, each with one of the blobs. Who comes first cannot publish, and says for
// whom it waited.
TEST_F(PromoteTest, PublishesWhenTheBlobsOfAllNodesAreThere) {
  const std::string other = good_.blobs.at(1).name;
  ReplaceFile(*from_, "local", other, nullptr);
  const auto alone = Run({.deadline = std::chrono::milliseconds(30)});
  ASSERT_EQ(alone.error().code(), Code::kTimeout);
  EXPECT_EQ(alone.error().place().rule, "R-STG-06");
  EXPECT_THAT(alone.error().message(), HasSubstr(other.substr(0, 32)));
  EXPECT_FALSE(IsCommitted());

  Result<PromoteReport> first = Status(Code::kIo, "not begun");
  std::thread node([&] { first = Run(); });
  const auto second_node = MemoryStorage();
  auto files = good_.files;
  files.erase(good_.blobs.at(0).name);
  StoreFiles(*second_node, "local", files);
  const auto second = Promote({.from = "local", .to = "run/final"},
                              {.from_storage = second_node, .to_storage = to_});
  node.join();
  ASSERT_TRUE(second.ok()) << second.error().ToString();
  ASSERT_TRUE(first.ok()) << first.error().ToString();
  EXPECT_EQ(first->blobs_found, 1u);  // what the first try had copied
  EXPECT_EQ(first->blobs_copied, 0u);
  EXPECT_EQ(Final(), good_.files);
}

// R-STG-10. Another node cannot read its blob: who waits for that hears why, who begins again then
// is not ended by it, and what says it is gone at the end.
TEST_F(PromoteTest, WhoWaitsIsToldOfAFailureElsewhere) {
  const std::string mine = good_.blobs.at(0).name;
  const std::string other = good_.blobs.at(1).name;
  ReplaceFile(*from_, "local", other, nullptr);
  const auto other_node = MemoryStorage();
  StoreFiles(*other_node, "local", good_.files);
  ReplaceFile(*other_node, "local", mine, nullptr);
  const auto other_runs = [&] {
    return Promote({.from = "local", .to = "run/final"},
                   {.from_storage = other_node, .to_storage = to_})
        .status();
  };
  Bytes damaged = good_.blob(1);
  damaged[5000] ^= std::byte{1};
  for (const Bytes& content : {damaged, good_.blob(1)}) {
    ReplaceFile(*other_node, "local", other, &content);
    Status first;
    std::thread node([&] { first = Run({.deadline = std::chrono::hours(1)}).status(); });
    while (!Final().contains(mine)) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it looks several times
    const Status second = other_runs();
    node.join();
    const bool is_good = content == good_.blob(1);
    EXPECT_EQ(second.code(), is_good ? Code::kOk : Code::kCorrupt) << second.ToString();
    if (is_good) {
      EXPECT_TRUE(first.ok()) << first.ToString();
    } else {
      EXPECT_THAT(first, FailsRule(Code::kIncomplete, "R-STG-10"));
      EXPECT_THAT(first.message(), HasSubstr(second.place().rule));
      EXPECT_THAT(first.message(), HasSubstr(other.substr(0, 32)));
    }
  }
  EXPECT_EQ(Final(), good_.files);
}

// It comes from elsewhere, and is whole, damaged, of another blob, or out of date.
TEST_F(PromoteTest, WhatSaysThatABlobWasGivenUpIsAHintOnly) {
  ReplaceFile(*from_, "local", good_.blobs.at(1).name, nullptr);
  const std::string missing = good_.blobs.at(1).name.substr(0, 32);
  const std::string copied = good_.blobs.at(0).name.substr(0, 32);
  const std::string name = good_.attempt.ToHex() + ".probe.given-up";
  const std::vector<std::pair<std::string, Code>> rows = {
      {"", Code::kTimeout},
      {std::string(33, '\n'), Code::kTimeout},
      {missing + "\nwhy", Code::kTimeout},
      {missing + "\n" + std::string(1000, 'x') + "\n", Code::kTimeout},
      {std::string(32, 'a') + "\nwhy\n", Code::kTimeout},
      {copied + "\nwhy\n", Code::kTimeout},
      {missing + "\n\x1b[31mwhy\n", Code::kIncomplete}};
  for (const auto& [text, code] : rows) {
    to_ = MemoryStorage();
    const ByteSpan bytes = AsBytes(text);
    StoreFiles(*to_, "run/final", {{name, Bytes(bytes.begin(), bytes.end())}});
    const Status status = Run({.deadline = std::chrono::milliseconds(30)}).status();
    EXPECT_EQ(status.code(), code) << text << ": " << status.ToString();
    EXPECT_EQ(status.message().find('\x1b'), std::string::npos);
    EXPECT_EQ(Final().contains(name), !text.starts_with(copied)) << "who has the blob removes it";
  }
}

TEST_F(PromoteTest, RefusesWhatIsInTheWay) {
  const std::string blob = good_.blobs.at(0).name;
  const Bytes same_length(good_.blob(0).size());
  const Bytes other_marker = BuildMini(SpecOf(0xa8)).marker();
  const std::vector<std::pair<std::string, Bytes>> in_the_way = {
      {blob, Bytes(7)}, {blob, same_length}, {"COMMIT", other_marker}, {"COMMIT", Bytes(512)}};
  for (const auto& [name, bytes] : in_the_way) {
    to_ = MemoryStorage();
    StoreFiles(*to_, "run/final", {{name, bytes}});
    const auto promoted = Run();
    ASSERT_FALSE(promoted.ok()) << name;
    EXPECT_EQ(promoted.error().place().path, "run/final/" + name);
    EXPECT_EQ(promoted.error().code(), name == blob ? Code::kCorrupt : Code::kAlreadyExists);
    EXPECT_EQ(Final().at(name), bytes);
  }
}

TEST_F(PromoteTest, RefusesAPlaceThatCannotPublish) {
  const auto seen = std::make_shared<FailingStorage>(to_);
  seen->Claim(Capabilities{.publish = PublishMethod::kNone, .directory_sync = true});
  EXPECT_THAT(Run({.to_storage = seen}).status(), FailsRule(Code::kUnsupported, "R-CMT-04"));
  seen->Claim(Capabilities{.publish = PublishMethod::kLink, .directory_sync = false});
  EXPECT_THAT(Run({.to_storage = seen}).status(), FailsRule(Code::kUnsupported, "R-CMT-05"));
  EXPECT_TRUE(Final().empty());
}

// As repair and a saver's queue call it.
TEST_F(PromoteTest, TakesGivenFilesOnlyOfACommittedCheckpoint) {
  const auto run = [&](const Bytes& marker, StorageFault fault) {
    const auto failing = std::make_shared<FailingStorage>(from_);
    failing->Fail(std::move(fault));
    const PromoteOptions options{.from_storage = failing,
                                 .to_storage = to_,
                                 .blobs = std::vector{good_.blobs.at(0).id, good_.blobs.at(1).id}};
    return internal::promote::PromoteGiven(
               {.from = "local", .to = "run/final"}, options,
               internal::container::GivenFiles{.marker = marker, .index = good_.index()})
        .status();
  };
  EXPECT_THAT(run(VoidMarker(0xa7), {.op = StorageOp::kLink}), HasCode(Code::kUncommitted));
  EXPECT_TRUE(Final().empty());
  EXPECT_THAT(run(good_.marker(), {.op = StorageOp::kOpenDirectory}), HasCode(Code::kIo));
  EXPECT_TRUE(run(good_.marker(), {.op = StorageOp::kLink}).ok());
}

TEST_F(PromoteTest, RefusesOptionsThatMeanNothing) {
  EXPECT_EQ(Run({.blobs = std::vector<BlobId>{MiniSpec::MakeId<BlobId>(99)}}).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Run({.threads = -1}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Run({.threads = 3}).error().code(), Code::kInvalidArgument);  // less than a page each
  EXPECT_EQ(Run({.deadline = std::chrono::milliseconds(0)}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Run({.on_progress = [](const PhaseEvent&) { throw 1; }}).error().code(),
            Code::kCancelled);
  EXPECT_FALSE(IsCommitted());
  EXPECT_TRUE(Run({.threads = kThreadsAuto, .deadline = kForever}).ok());
  EXPECT_THAT(
      Promote({.from = "local", .to = "local/final"}, {.from_storage = from_, .to_storage = from_})
          .status(),
      FailsRule(Code::kInvalidArgument, "R-STG-12"));
}

// Who committed it may have died before its sync.
TEST_F(PromoteTest, WhatIsCommittedAlreadyIsSynced) {
  ASSERT_TRUE(Run().ok());
  const auto failing = std::make_shared<FailingStorage>(to_);
  failing->Fail({.op = StorageOp::kSyncDirectory});
  EXPECT_EQ(Run({.to_storage = failing}).error().code(), Code::kIo);
}

// Each operation on the target fails once, with and without its effect: the target is committed and
// whole, or not committed; the source is as it was; the next try succeeds and leaves nothing else.
TEST_F(PromoteTest, EveryFaultLeavesAllOrNothing) {
  for (const bool takes_effect : {false, true}) {
    for (int nth = 1;; ++nth) {
      to_ = MemoryStorage();
      const auto failing = std::make_shared<FailingStorage>(to_);
      failing->Fail({.any_op = true, .nth = nth, .takes_effect = takes_effect});
      const auto promoted = Run({.to_storage = failing, .threads = 1});
      if (failing->fault_count() == 0) {
        EXPECT_GT(nth, 20);
        break;
      }
      if (IsCommitted() || promoted.ok()) {
        const auto report = Verify("run/final", {.storage = to_}).value();
        ASSERT_EQ(report.verdict, Verdict::kCommitted) << "fault " << nth;
      }
      // What could not be made durable is not promoted.
      const auto calls = failing->calls();
      const auto failed = std::find_if(calls.begin(), calls.end(), [](const StorageCall& call) {
        return call.code == Code::kIo;
      });
      ASSERT_NE(failed, calls.end());
      if (failed->op == StorageOp::kSyncFile || failed->op == StorageOp::kClose ||
          failed->op == StorageOp::kSyncDirectory) {
        EXPECT_FALSE(promoted.ok()) << "fault " << nth;
      }
      ASSERT_EQ(Files(*from_, "local"), good_.files);
      const auto again = Run();
      ASSERT_TRUE(again.ok()) << "fault " << nth << ": " << again.error().ToString();
      for (const auto& [name, bytes] : good_.files) ASSERT_EQ(Final().at(name), bytes);
    }
  }
}

// The final place of two nodes, each a process that may be killed at its nth step.
class KillingPlace {
 public:
  using Process = std::function<void(const std::shared_ptr<Storage>& storage)>;
  virtual ~KillingPlace() = default;
  virtual bool IsKilled(const Process& process, std::uint64_t nth) = 0;
  virtual std::shared_ptr<Storage> storage() const = 0;
  virtual std::string path() const = 0;
};

// By SIGKILL, before its nth operation.
class KillingDisk final : public KillingPlace {
 public:
  bool IsKilled(const Process& process, std::uint64_t nth) override {
    const pid_t child = fork();
    if (child == 0) {
      const auto seen = std::make_shared<FailingStorage>(PosixStorage());
      for (const StorageOp op : {StorageOp::kSyncFile, StorageOp::kSyncDirectory}) {
        seen->Fail({.op = op, .nth = 0, .is_lie = true});  // the power does not fail
      }
      seen->Claim(Capabilities{.publish = PublishMethod::kLink, .directory_sync = true});
      std::uint64_t count = 0;
      seen->SetHook([&](StorageOp, std::string_view) {
        if (++count == nth) static_cast<void>(raise(SIGKILL));
      });
      process(seen);
      _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  std::shared_ptr<Storage> storage() const override { return PosixStorage(); }
  std::string path() const override { return dir_.path() + "/final"; }

 private:
  TempDir dir_;
};

// Its nth request, and all that follow, never arrive.
class KillingObjects final : public KillingPlace {
 public:
  bool IsKilled(const Process& process, std::uint64_t nth) override {
    const auto store = std::make_shared<MemoryObjectStore>();
    for (const auto& [key, content] : store_->Objects()) store->Set(key, content);
    store_ = store;
    store->FailAt(nth - 1, Trouble::kDead);
    process(storage());
    return store->request_count() >= nth;
  }
  std::shared_ptr<Storage> storage() const override { return ObjectStorage(store_).value(); }
  std::string path() const override { return "mem://bucket/final"; }

 private:
  std::shared_ptr<MemoryObjectStore> store_ = std::make_shared<MemoryObjectStore>();
};

// Two nodes with a blob each: wherever one of them is killed, before the other began or when only
// its own part is missing, the final place is whole or uncommitted, and both go on to the same
// files.
class PromoteKilledTest : public PromoteTest, public ::testing::WithParamInterface<bool> {
 protected:
  PromoteKilledTest() {
    for (const int node : {0, 1}) {
      StoreFiles(*nodes_[node], "local", good_.files);
      ReplaceFile(*nodes_[node], "local", good_.blobs.at(1 - node).name, nullptr);
    }
  }
  bool Run(KillingPlace& place, int node, std::uint64_t nth = ~std::uint64_t{0}) {
    return place.IsKilled(
        [&](const std::shared_ptr<Storage>& storage) {
          static_cast<void>(Promote({.from = "local", .to = place.path()},
                                    {.from_storage = nodes_[node],
                                     .to_storage = storage,
                                     .threads = 1,
                                     .deadline = std::chrono::milliseconds(1)}));
        },
        nth);
  }
  // True if `node` was killed.
  bool KillOne(int node, bool is_last, std::uint64_t nth) {
    std::unique_ptr<KillingPlace> place = std::make_unique<KillingDisk>();
    if (GetParam()) place = std::make_unique<KillingObjects>();
    if (is_last) Run(*place, 1 - node);
    const bool is_killed = Run(*place, node, nth);
    const auto left = Files(*place->storage(), place->path());
    for (const auto& [name, bytes] : good_.files) {
      EXPECT_TRUE(!left.contains("COMMIT") || left.at(name) == bytes) << nth << " " << name;
    }
    Run(*place, 1 - node);
    Run(*place, node);
    auto files = Files(*place->storage(), place->path());
    std::erase_if(files, [](const auto& file) { return file.first.ends_with(".probe"); });
    EXPECT_EQ(files, good_.files) << nth;
    return is_killed;
  }

  const std::shared_ptr<Storage> nodes_[2] = {MemoryStorage(), MemoryStorage()};
};

TEST_P(PromoteKilledTest, AtEveryStep) {
  for (const int node : {0, 1}) {
    for (const bool is_last : {false, true}) {
#ifndef SEALPOINT_ALL_KILLS
      if (is_last == (node == 1)) continue;
#endif
      std::uint64_t nth = 1;
      while (KillOne(node, is_last, nth) && !HasFailure()) ++nth;
      EXPECT_GT(nth, 12u);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(FinalPlaces, PromoteKilledTest, ::testing::Bool());

}  // namespace
}  // namespace sealpoint::testing
