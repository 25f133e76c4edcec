// SPDX-License-Identifier: Apache-2.0
//
// The bytes that reach the storage are not those that were hashed, or are in the wrong place: a bit
// flips in a buffer, a write is lost, misdirected or old. This cannot be noticed while saving;
// readers find it and say where.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "sealpoint/verify.h"
#include "tests/faults/tiny_state.h"
#include "tests/support/process/results.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::testing {
namespace {

using ::testing::AnyOf;

constexpr TinyState kState{.generation = 4};
constexpr const char* kDir = "run/ckpt";
using WriteHook = std::function<void(std::string_view, WriteRequest&)>;

struct BadSave {
  std::shared_ptr<Storage> memory = MemoryStorage();
  Status status{};
};

// Buffers of a page, so that a blob is several writes.
BadSave SaveThrough(const WriteHook& hook) {
  BadSave save;
  const auto storage = std::make_shared<FailingStorage>(save.memory);
  const auto engine = SmallEngine(storage, 8, 4096);
  storage->SetWriteHook(hook);
  save.status = SaveByHand(*engine, kDir, kState).status();
  return save;
}

// The name of the file without its id.
std::string KindOf(std::string_view name) {
  return std::string(name.substr(name.find('.') == std::string_view::npos ? 0 : name.find('.')));
}

// The unpublished marker is the marker.
std::string NameOnDisk(std::string_view written) {
  return written.ends_with(".commit") ? "COMMIT" : std::string(written);
}

// Verification names the file and a place at or before the damage, or, if the whole section has one
// digest, that digest close behind it. A load is right or an error.
void ExpectFound(const BadSave& save, const std::string& name, std::uint64_t offset) {
  const VerifyReport report = Verify(kDir, {.storage = save.memory}).value();
  EXPECT_NE(report.verdict, Verdict::kCommitted);
  const bool is_named =
      std::any_of(report.violations.begin(), report.violations.end(), [&](const Status& violation) {
        return violation.place().path.ends_with(name) &&
               violation.place().offset.value_or(0) < offset + 256;
      });
  EXPECT_TRUE(is_named) << (report.violations.empty() ? "" : report.violations[0].ToString());
  const auto checkpoint = Checkpoint::Open(kDir, {.storage = save.memory});
  if (!checkpoint.ok()) return;
  const auto loaded = LoadAndCompare(**checkpoint, kState);
  EXPECT_TRUE(!loaded.ok() || loaded->empty()) << *loaded;
}

// Spoils the n-th write of a save: each of them, one save each. Returns the number of saves.
std::uint64_t ForEachWrite(const std::function<void(WriteRequest&, const Bytes& before)>& spoil) {
  for (std::uint64_t nth = 1; !::testing::Test::HasFailure(); ++nth) {
    std::uint64_t writes = 0;
    std::uint64_t offset = 0;
    std::string name;
    Bytes before;
    const BadSave save = SaveThrough([&](std::string_view written, WriteRequest& request) {
      if (++writes == nth) {
        name = NameOnDisk(written);
        offset = request.offset + request.data.size();
        spoil(request, before);
      }
      before = request.data;
    });
    if (writes < nth) return nth - 1;
    SCOPED_TRACE("write " + std::to_string(nth) + " of " + std::to_string(writes) + ", " +
                 KindOf(name) + ": " + save.status.ToString());
    if (save.status.ok()) {
      ExpectFound(save, name, offset);
    } else {
      // The committer saw that a blob is shorter or longer than its summary says.
      EXPECT_THAT(save.status, FailsRule(Code::kIncomplete, "R-CMT-02"));
    }
  }
  return 0;
}

// Every 23rd byte of all files, one save each.
TEST(ProducerFaultsTest, ABitThatFlipsBehindTheDigest) {
  std::uint64_t saves = 0;
  for (std::uint64_t at = 0; !HasFailure(); at += 23, ++saves) {
    std::uint64_t begin = 0;  // of this write among all bytes written
    std::uint64_t offset = 0;
    std::string name;
    const BadSave save = SaveThrough([&](std::string_view written, WriteRequest& request) {
      if (at >= begin && at < begin + request.data.size()) {
        name = NameOnDisk(written);
        offset = request.offset + at - begin;
        request.data[at - begin] ^= std::byte{16};
      }
      begin += request.data.size();
    });
    if (name.empty()) break;
    SCOPED_TRACE(KindOf(name) + " " + std::to_string(offset));
    ASSERT_TRUE(save.status.ok()) << save.status.ToString();
    ExpectFound(save, name, offset);
  }
  EXPECT_GT(saves, 300u);
  RecordRun({.row = "fault-producer-bits",
             .title = "Saves with a bit that flips between digest and storage",
             .command = "ctest --test-dir build/dev -R fault.producer",
             .counts = {{"saves", saves}}});
}

TEST(ProducerFaultsTest, WritesThatAreLostMisdirectedOrOld) {
  std::uint64_t saves = 0;
  saves += ForEachWrite([](WriteRequest& request, const Bytes&) { request.is_lost = true; });
  saves += ForEachWrite([](WriteRequest& request, const Bytes&) { request.offset += 4096; });
  saves += ForEachWrite([](WriteRequest& request, const Bytes& before) {
    // The first write has no predecessor: what was there before is nothing.
    const std::size_t size = request.data.size();
    request.data = before;
    request.data.resize(size);
  });
  EXPECT_GT(saves, 15u);
  RecordRun({.row = "fault-producer-writes",
             .title = "Saves with one write lost, misdirected or old",
             .command = "ctest --test-dir build/dev -R fault.producer",
             .counts = {{"saves", saves}}});
}

// Synced, and yet another content is on the disk than was in the cache: each page reads as zeros.
TEST(ProducerFaultsTest, OldContentBehindASuccessfulSync) {
  const auto memory = MemoryStorage();
  ASSERT_TRUE(SaveByHand(*SmallEngine(memory), kDir, kState).ok());
  for (const std::string& name : FileNames(*memory, kDir)) {
    const std::uint64_t size = ReadWholeFile(*memory, kDir, name).size();
    for (std::uint64_t page = 0; page < size; page += 4096) {
      SCOPED_TRACE(KindOf(name) + " " + std::to_string(page));
      const auto storage = std::make_shared<FailingStorage>(memory);
      storage->SetReadHook([&](std::string_view read, std::uint64_t offset, MutableByteSpan bytes) {
        for (std::uint64_t i = 0; read == name && i < bytes.size(); ++i) {
          if ((offset + i) / 4096 * 4096 == page) bytes[i] = std::byte{0};
        }
      });
      const BadSave save{.memory = storage};
      ExpectFound(save, name, page + 4095);
    }
  }
}

// A storage that reports operations as done that are not. The library cannot detect this
// (spec/commit.md 2.1 reads back only after errors), and a reader still gets nothing wrong.
TEST(ProducerFaultsTest, APublicationThatIsOnlyClaimedIsNoCheckpoint) {
  const auto memory = MemoryStorage();
  const auto storage = std::make_shared<FailingStorage>(memory);
  storage->Fail({.op = StorageOp::kPublish, .is_lie = true});
  EXPECT_TRUE(SaveByHand(*SmallEngine(storage), kDir, kState).ok());
  EXPECT_THAT(Checkpoint::Open(kDir, {.storage = memory}).status(), HasCode(Code::kUncommitted));
}

}  // namespace
}  // namespace sealpoint::testing
