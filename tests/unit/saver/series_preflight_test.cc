// SPDX-License-Identifier: Apache-2.0
//
// What the preflight of a save asks a series, and what it leaves when it refuses.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lib/format/constants.h"
#include "sealpoint/saver.h"
#include "sealpoint/series.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;

class SeriesPreflightTest : public ::testing::Test {
 protected:
  Result<CommitInfo> Save(const std::string& series = "run") {
    const auto engine = SmallEngine(storage_, 8);
    const auto comm = SelfCommunicator();
    const auto saver = Saver::Create(*engine, *comm).value();
    Declaration declaration;
    EXPECT_TRUE(declaration.AddObject({.name = "o", .media_type = "text/plain"}).ok());
    Sources sources(declaration);
    EXPECT_TRUE(sources.BindObject("o", AsBytes("object")).ok());
    return saver->Save(SaveTarget::InSeries(series), {.step = 7}, sources);
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
    Id128 id;
    id.bytes[0] = static_cast<std::byte>(1 + i / 256);
    id.bytes[1] = static_cast<std::byte>(i % 256);
    MiniSpec spec{.attempt = id, .sequence = static_cast<std::uint64_t>(i) + 1};
    spec.parent = i == 0 ? Id128() : MiniSpec::MakeId(0xee);
    auto files = BuildMini(spec).files;
    for (int file = static_cast<int>(files.size()); file < kFiles; ++file) {
      Id128 blob = MiniSpec::MakeId(static_cast<std::uint8_t>(file));
      files[internal::BlobName(blob)] = byte;
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
