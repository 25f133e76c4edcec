// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/series.h"
#include "tests/unit/repack/repack_fixture.h"

namespace sealpoint::testing {
namespace {

using Strings = std::vector<std::string>;

// Three steps of weights and optimizer state; "run/2" is thinned.
class ThinTest : public RepackTest {
 protected:
  ThinTest() {
    for (std::uint8_t i = 1; i <= 3; ++i) {
      MiniSpec spec{.attempt = MiniSpec::MakeId(i), .sequence = i, .step = i};
      if (i > 1) spec.parent = MiniSpec::MakeId(static_cast<std::uint8_t>(i - 1));
      for (const char* name : {"model.w", "optimizer.m"}) {
        spec.tensors.push_back(
            CutTensor(name, DType::kInt8, {100}, NoiseBytes(i, 100), {Slice(0, 100)}));
      }
      spec.objects.push_back({.name = "optimizer.step", .bytes = NoiseBytes(i, 8)});
      StoreFiles(*storage_, "run/" + std::to_string(i), BuildMini(spec).files);
    }
  }
  Result<ThinReport> Thin(const std::string& path, bool remove_source, const std::string& to = "",
                          const Strings& drop = {"optimizer.*"}) const {
    return ThinCheckpoint({.from = path, .to = to},
                          {.drop = drop, .remove_source = remove_source, .repack = Small()});
  }
  Strings Names() const {
    Strings names;
    for (const SeriesEntry& entry : Series("run", storage_).List().value().entries) {
      names.push_back(entry.name);
    }
    return names;
  }
};

TEST_F(ThinTest, ADryRunRemovesNothing) {
  ThinOptions options{.drop = {"optimizer.*"}, .remove_source = true, .repack = Small()};
  options.repack.dry_run = true;
  EXPECT_FALSE(ThinCheckpoint({.from = "run/2", .to = ""}, options).value().is_source_removed);
  EXPECT_EQ(Names(), Strings({"3", "2", "1"}));
}

TEST_F(ThinTest, TakesThePlaceOfItsSource) {
  const auto thin = Thin("run/2", true);
  ASSERT_TRUE(thin.ok()) << thin.error().ToString();
  EXPECT_EQ(thin->path, "run/2-thin");
  EXPECT_TRUE(thin->is_source_removed);
  EXPECT_EQ(Names(), (Strings{"3", "2-thin", "1"}));
  EXPECT_TRUE(Series("run", storage_).List().value().forks.empty());
  const auto checkpoint = Open("run/2-thin");
  EXPECT_EQ(checkpoint->tensor_count(), 1u);
  EXPECT_EQ(checkpoint->object_count(), 0u);
  EXPECT_EQ(LoadWhole(*checkpoint, "model.w"), NoiseBytes(2, 100));
  EXPECT_EQ(FindDamage(storage_, "run/2-thin"), "");
}

TEST_F(ThinTest, IsResumedBetweenCopyAndDeletion) {
  const RepackReport made = Thin("run/2", false).value().made;
  EXPECT_EQ(Names().size(), 4u);
  const auto again = Thin("run/2", true);
  ASSERT_TRUE(again.ok()) << again.error().ToString();
  EXPECT_TRUE(again->made.was_committed);
  EXPECT_EQ(again->made.attempt, made.attempt);
  EXPECT_EQ(Names(), (Strings{"3", "2-thin", "1"}));
}

TEST_F(ThinTest, RefusesBeforeItWritesWhatCouldNotBeDeleted) {
  const Bytes keep;
  ReplaceFile(*storage_, "run/1", "KEEP", &keep);
  for (const std::string& name : {"1", "3"}) {
    EXPECT_THAT(Thin("run/" + name, true).status(), FailsRule(Code::kInvalidArgument, "R-SER-05"));
  }
  EXPECT_THAT(Thin("run/4", true).status(), HasCode(Code::kNotFound));
  EXPECT_THAT(Thin("run/2", true, "", {}).status(), HasCode(Code::kInvalidArgument));
  EXPECT_EQ(Names().size(), 3u);
  EXPECT_TRUE(Thin("run/3", false, "elsewhere/3").ok());
  EXPECT_EQ(Names().size(), 3u);
}

TEST_F(ThinTest, TheDefaultPlaceNeedsAName) {
  for (const std::string path : {"run/2/.", "run/2/..", "."}) {
    const Status status = Thin(path, false).status();
    EXPECT_THAT(status, HasCode(Code::kInvalidArgument)) << path;
    EXPECT_THAT(status.message(), ::testing::HasSubstr("ends with the checkpoint's name"));
    EXPECT_THAT(Thin(path, true, "elsewhere").status(), HasCode(Code::kInvalidArgument)) << path;
  }
  EXPECT_TRUE(Thin("run/2/.", false, "elsewhere").ok());
}

// Copying may take hours, in which the later one is lost.
TEST_F(ThinTest, LooksForALaterOneAgainBeforeItRemovesTheSource) {
  ThinOptions options{.drop = {"optimizer.*"}, .remove_source = true, .repack = Small()};
  options.repack.on_progress = [&](const PhaseEvent&) {
    for (const std::string& name : FileNames(*storage_, "run/3")) {
      if (name.ends_with(".blob")) ReplaceFile(*storage_, "run/3", name, nullptr);
    }
  };
  EXPECT_THAT(ThinCheckpoint({.from = "run/2", .to = ""}, options).status(),
              HasCode(Code::kInvalidArgument));
  EXPECT_THAT(Names(), ::testing::UnorderedElementsAre("3", "2-thin", "2", "1"));
}

// What was thinned would do for a deletion, but is not all that a training needs.
TEST_F(ThinTest, KeepsTheSourceWithoutALaterOneThatIsWhole) {
  ASSERT_TRUE(Thin("run/2", false).ok());
  for (const std::string& name : FileNames(*storage_, "run/3")) {
    if (name.ends_with(".blob")) ReplaceFile(*storage_, "run/3", name, nullptr);
  }
  EXPECT_THAT(Thin("run/2", true).status(), HasCode(Code::kInvalidArgument));
  EXPECT_THAT(Names(), ::testing::UnorderedElementsAre("3", "2-thin", "2", "1"));
}

}  // namespace
}  // namespace sealpoint::testing
