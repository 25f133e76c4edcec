// SPDX-License-Identifier: Apache-2.0
//
// What the preflight of a save asks a series, and what it leaves when it refuses.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lib/base/endian.h"
#include "lib/format/constants.h"
#include "lib/format/fields.h"
#include "lib/promote/staged_folder.h"
#include "sealpoint/saver.h"
#include "sealpoint/series.h"
#include "tests/support/container/format_surgery.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;

class SeriesPreflightTest : public ::testing::Test {
 protected:
  Result<CommitInfo> Save(const std::string& series = "run", bool allow_fallback = false) {
    return SaveTo(SaveTarget::InSeries(series), allow_fallback);
  }
  Result<CommitInfo> SaveTo(const SaveTarget& target, bool allow_fallback) {
    const auto engine = SmallEngine(storage_, 8);
    const auto comm = SelfCommunicator();
    const auto saver = Saver::Create(*engine, *comm).value();
    Declaration declaration;
    EXPECT_TRUE(declaration.AddObject({.name = "o", .media_type = "text/plain"}).ok());
    Sources sources(declaration);
    EXPECT_TRUE(sources.BindObject("o", AsBytes("object")).ok());
    return saver->Save(target, {.step = 7, .allow_fallback = allow_fallback}, sources);
  }
  // A checkpoint of a version of the format that does not exist yet.
  static MiniContainer OfALaterVersion(std::uint64_t sequence) {
    MiniContainer container = BuildInSeries(2, 1, sequence);
    internal::StoreLe(MutableByteSpan(container.marker()),
                      internal::format::HeaderFields::kVersion.at, std::uint32_t{7});
    ResealMarker(container.marker());
    return container;
  }
  // Where the local copies of a series lie.
  std::string CopiesOf(const std::string& series) const {
    return internal::promote::StagedFolderOf(*memory_, "local", series).value().path;
  }
  void Put(const std::string& name, const MiniSpec& spec) {
    StoreFiles(*memory_, "run/" + name, BuildMini(spec).files);
  }

  const std::shared_ptr<Storage> memory_ = MemoryStorage();
  const std::shared_ptr<FailingStorage> storage_ = std::make_shared<FailingStorage>(memory_);
};

// The next number would be 0 (R-MRK-04): a checkpoint that no reader opens.
TEST_F(SeriesPreflightTest, ASequenceThatCannotGoOnIsRefused) {
  Put("last", {.parent = MiniSpec::MakeId(1), .sequence = ~std::uint64_t{0}});
  const auto saved = Save();
  EXPECT_THAT(saved.status(), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(saved.error().message(), HasSubstr("the parent's sequence is 18446744073709551615"));
  EXPECT_EQ(saved.error().place().path, "run/last");
}

// Behind a newer one that is not read, what is saved now would be older for who reads both.
TEST_F(SeriesPreflightTest, AMarkerThatIsNotReadIsOnlyPassedOverIfAsked) {
  Put("known", {.attempt = MiniSpec::MakeId(1)});
  StoreFiles(*memory_, "run/later", OfALaterVersion(5).files);
  const Status refused = Save().status();
  EXPECT_THAT(refused, FailsRule(Code::kUnsupported, "R-HDR-05"));
  EXPECT_THAT(refused.message(), HasSubstr("the marker of later in it is unsupported"));
  EXPECT_THAT(refused.message(), HasSubstr("allow_fallback"));
  const CommitInfo saved = Save("run", true).value();
  EXPECT_EQ(saved.parent, MiniSpec::MakeId(2));
  EXPECT_EQ(saved.sequence, 6u);
}

TEST_F(SeriesPreflightTest, AnOlderMarkerOfALaterVersionIsNoParent) {
  Put("known", {.attempt = MiniSpec::MakeId(4), .parent = MiniSpec::MakeId(3), .sequence = 6});
  StoreFiles(*memory_, "run/later", OfALaterVersion(5).files);
  EXPECT_THAT(Save().status(), HasCode(Code::kUnsupported));
  EXPECT_EQ(Save("run", true).value().parent, MiniSpec::MakeId(4));
}

TEST_F(SeriesPreflightTest, ADamagedMarkerIsOnlyPassedOverIfAsked) {
  Put("known", {.attempt = MiniSpec::MakeId(1)});
  MiniContainer damaged = BuildInSeries(2, 1, 2);
  damaged.marker()[200] ^= std::byte{1};
  StoreFiles(*memory_, "run/damaged", damaged.files);
  EXPECT_THAT(Save().status(), FailsRule(Code::kCorrupt, "R-HDR-04"));
  EXPECT_EQ(Save("run", true).value().parent, MiniSpec::MakeId(1));
}

TEST_F(SeriesPreflightTest, AStagedSaveAsksTheLocalPlaceAsWell) {
  const SaveTarget target = SaveTarget::Staged("local", SaveTarget::InSeries("run"));
  StoreFiles(*memory_, JoinPath(CopiesOf("run"), "later"), OfALaterVersion(5).files);
  EXPECT_THAT(SaveTo(target, false).status(), FailsRule(Code::kUnsupported, "R-HDR-05"));
  EXPECT_EQ(SaveTo(target, true).value().sequence, 6u);
}

TEST_F(SeriesPreflightTest, AStagedSaveOfASequenceThatCannotGoOnIsRefused) {
  const MiniSpec last{.parent = MiniSpec::MakeId(1), .sequence = ~std::uint64_t{0}};
  StoreFiles(*memory_, JoinPath(CopiesOf("run"), "last"), BuildMini(last).files);
  const Status status =
      SaveTo(SaveTarget::Staged("local", SaveTarget::InSeries("run")), false).status();
  EXPECT_THAT(status, HasCode(Code::kInvalidArgument));
  EXPECT_EQ(status.place().path, JoinPath(CopiesOf("run"), "last"));
  const SaveTarget given = SaveTarget::Staged(
      "other", SaveTarget::Directory("final", ParentRef{MiniSpec::MakeId(1), ~std::uint64_t{0}}));
  EXPECT_THAT(SaveTo(given, false).status(), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(memory_->OpenDirectory("other").status(), HasCode(Code::kNotFound));
}

// It would be a save without staging.
TEST_F(SeriesPreflightTest, AStagedSaveNeedsALocalPlace) {
  const SaveTarget target = SaveTarget::Staged("", SaveTarget::Directory("final"));
  EXPECT_THAT(SaveTo(target, false).status(), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(memory_->OpenDirectory("final").status(), HasCode(Code::kNotFound));
}

// Before a byte is written to the local place.
TEST_F(SeriesPreflightTest, AStagedSaveLooksAtBothPlaces) {
  const SaveTarget target = SaveTarget::Staged("local", SaveTarget::Directory("final"));
  const auto expect = [&](const Status& status, Code code) {
    EXPECT_THAT(status, HasCode(code)) << status.ToString();
    for (const std::string& change : storage_->changes()) {
      EXPECT_FALSE(change.starts_with("create ") && change.ends_with(".blob")) << change;
    }
  };
  storage_->Fail({.op = StorageOp::kOpenDirectory, .name = "final"});
  expect(SaveTo(target, false).status(), Code::kIo);
  storage_->Heal();
  StoreFiles(*memory_, JoinPath(CopiesOf("."), "final"), BuildInSeries(2, 1, 5).files);
  expect(SaveTo(target, false).status(), Code::kAlreadyExists);
  storage_->Claim(Capabilities{.publish = PublishMethod::kNone, .directory_sync = true});
  expect(SaveTo(SaveTarget::Staged("local2", SaveTarget::Directory("final")), false).status(),
         Code::kUnsupported);
}

TEST_F(SeriesPreflightTest, AStagedSaveNeedsRoomForWhatItWrites) {
  const auto engine = SmallEngine(storage_, 8);
  const auto comm = SelfCommunicator();
  const auto saver =
      Saver::Create(*engine, *comm,
                    {.unpromoted_max = 1, .promote_threads = 2, .promote_memory_bytes = 2 * 4096})
          .value();
  const Bytes content = NoiseBytes(1, 40000);
  Declaration declaration;
  declaration.Add({.tensor = ByteTensor("w", content.size())}).value();
  Sources sources(declaration);
  ASSERT_TRUE(sources.Bind(0, MemoryView::Host(std::span(content))).ok());
  for (const std::uint64_t free : {std::uint64_t{39999}, std::uint64_t{40000}}) {
    storage_->Claim(SpaceInfo{.free_bytes = free});
    const Status status =
        saver->Save(SaveTarget::Staged("local", SaveTarget::InSeries("run")), {.step = 1}, sources)
            .status();
    if (free == content.size()) {
      EXPECT_TRUE(status.ok()) << status.ToString();
    } else {
      EXPECT_THAT(status, FailsRule(Code::kNoSpace, "R-CMT-08"));
    }
  }
  EXPECT_TRUE(saver->WaitForPromotions(std::chrono::minutes(1)));
  EXPECT_TRUE(saver->TakePromotions().at(0).status.ok());
}

TEST_F(SeriesPreflightTest, AProbeOfAnotherLengthIsNotThatOfThisSave) {
  storage_->SetWriteHook([](std::string_view name, WriteRequest& request) {
    if (name.ends_with(".shared")) request.data.resize(8);
  });
  EXPECT_THAT(Save().status(), FailsRule(Code::kIo, "R-CMT-09"));
}

TEST_F(SeriesPreflightTest, ARefusalLeavesNoDirectory) {
  storage_->Claim(Capabilities{.publish = PublishMethod::kNone, .directory_sync = true});
  EXPECT_THAT(Save("new/run").status(), HasCode(Code::kUnsupported));
  EXPECT_THAT(memory_->OpenDirectory("new").status(), HasCode(Code::kNotFound));
  ASSERT_TRUE(memory_->CreateDirectories("run/other").ok());
  EXPECT_THAT(Save().status(), HasCode(Code::kUnsupported));
  EXPECT_TRUE(memory_->OpenDirectory("run/other").ok());
  EXPECT_EQ(memory_->OpenDirectory("run").value()->List()->size(), 1u);
}

TEST_F(SeriesPreflightTest, AnyErrorOfALookAtTheSeriesRefuses) {
  for (int code = 1; code <= static_cast<int>(Code::kInternal); ++code) {
    Put("a" + std::to_string(code), {.attempt = MiniSpec::MakeId(static_cast<std::uint8_t>(code))});
    storage_->Fail({.op = StorageOp::kRead,
                    .path = "a" + std::to_string(code) + "/COMMIT",
                    .nth = 0,
                    .error = {static_cast<Code>(code), "injected"}});
    const auto saved = Save();
    ASSERT_FALSE(saved.ok()) << code;
    EXPECT_THAT(saved.error().message(), HasSubstr("cannot be read"));
    storage_->Heal();
  }
}

// A thousand checkpoints of two hundred files: one look at each marker, and at no other file.
TEST_F(SeriesPreflightTest, ASaveAsksEachOlderCheckpointOnce) {
  constexpr int kCheckpoints = 300;
  constexpr int kFiles = 100;
  const Bytes byte(1);
  for (int i = 0; i < kCheckpoints; ++i) {
    AttemptId id;
    id.bytes[0] = static_cast<std::byte>(1 + i / 256);
    id.bytes[1] = static_cast<std::byte>(i % 256);
    MiniSpec spec{.attempt = id, .sequence = static_cast<std::uint64_t>(i) + 1};
    spec.parent = i == 0 ? AttemptId() : MiniSpec::MakeId(0xee);
    auto files = BuildMini(spec).files;
    for (int file = static_cast<int>(files.size()); file < kFiles; ++file) {
      const auto blob = MiniSpec::MakeId<BlobId>(static_cast<std::uint8_t>(file));
      files[internal::format::BlobName(blob)] = byte;
    }
    StoreFiles(*memory_, "run/" + SeriesDirectoryName(spec.step, id), files);
  }
  storage_->ClearLog();
  const auto saved = Save();
  ASSERT_TRUE(saved.ok()) << saved.error().ToString();
  EXPECT_EQ(saved->sequence, static_cast<std::uint64_t>(kCheckpoints) + 1);
  EXPECT_LT(storage_->calls().size(), 5u * kCheckpoints / 2);
  storage_->ClearLog();
  EXPECT_EQ(Series("run", storage_).Newest()->entry.attempt, saved->attempt);
  EXPECT_LT(storage_->calls().size(), 5u * kCheckpoints / 2);
}

}  // namespace
}  // namespace sealpoint::testing
