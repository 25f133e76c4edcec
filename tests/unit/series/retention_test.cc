// SPDX-License-Identifier: Apache-2.0
#include "lib/series/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/errors.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::internal::series {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MiniSpec;
using ::testing::Not;

constexpr std::uint64_t kSecond = 1'000'000'000;

// Committed checkpoints "c9", "c8", …, newest first, whole, with step 10 times their number.
class RetentionTest : public ::testing::Test {
 protected:
  void AddOlder(CheckpointSummary summaries = {.is_whole = true}) {
    const auto number = static_cast<std::uint8_t>(9 - summaries_.size());
    SeriesEntry entry{.name = StrCat("c", number), .verdict = Verdict::kCommitted};
    entry.attempt = MiniSpec::MakeId(number);
    entry.parent = MiniSpec::MakeId(static_cast<std::uint8_t>(number - 1));
    entry.sequence = number;
    entry.step = 10u * number;
    listing_.entries.push_back(entry);
    summaries_.push_back(std::move(summaries));
  }
  void AddOlder(int count) {
    for (int i = 0; i < count; ++i) AddOlder();
  }
  void AddMadeAt(std::uint64_t seconds) {
    AddOlder({.is_whole = true, .created_unix_ns = seconds * kSecond});
  }
  void AddWithMetric(std::optional<double> metric) {
    AddOlder({.is_whole = true, .metric = metric});
  }
  std::vector<std::string> Kept(const RetentionPolicy& policy) const {
    std::vector<std::string> names;
    for (const PruneDecision& decision : DecideRetention(listing_, policy, summaries_)) {
      EXPECT_THAT(decision.reasons, Not(IsEmpty())) << decision.entry.name;
      if (decision.keep) names.push_back(decision.entry.name);
    }
    return names;
  }
  std::vector<std::string> ReasonsFor(std::size_t i, const RetentionPolicy& policy) const {
    return DecideRetention(listing_, policy, summaries_).at(i).reasons;
  }

  SeriesListing listing_;
  std::vector<CheckpointSummary> summaries_;
};

TEST(RetentionPolicyTest, RefusesAPolicyThatIsNone) {
  EXPECT_TRUE(CheckPolicy({}).ok());
  const std::vector<RetentionPolicy> wrong = {
      {.keep_last = 1},
      {.keep_last = 0},
      {.keep_per_period = {{.period = std::chrono::seconds(0), .count = 1}}},
      {.keep_per_period = {{.period = std::chrono::seconds(-1), .count = 1}}},
      {.keep_per_period = {{.period = std::chrono::hours(1), .count = 0}}},
      {.keep_best = KeepBest{.metric = "metric.loss", .count = 0}},
      {.keep_best = KeepBest{.metric = "loss"}},
      {.keep_best = KeepBest{.metric = "training.loss"}},
      {.keep_best = KeepBest{.metric = "metric."}},
      {.keep_best = KeepBest{}},
      {.keep_within = std::chrono::seconds(-1)},
  };
  for (const RetentionPolicy& policy : wrong) {
    EXPECT_THAT(CheckPolicy(policy), testing::FailsRule(Code::kInvalidArgument, "R-SER-14"));
  }
  EXPECT_TRUE(CheckPolicy({.keep_per_period = {{std::chrono::seconds(1), 1}},
                           .keep_best = KeepBest{.metric = "metric.x"}})
                  .ok());
  EXPECT_EQ(CheckPolicy({.keep_last = 1}).message(), "keep_last is 1, expected at least 2");
}

TEST_F(RetentionTest, KeepsTheNewest) {
  AddOlder(4);
  EXPECT_THAT(Kept({.keep_last = 2}), ElementsAre("c9", "c8"));
  EXPECT_THAT(Kept({.keep_last = 3}), ElementsAre("c9", "c8", "c7"));
  EXPECT_THAT(Kept({.keep_last = 5}), ElementsAre("c9", "c8", "c7", "c6"));
  EXPECT_THAT(ReasonsFor(0, {}), ElementsAre("one of the newest 2"));
  EXPECT_THAT(ReasonsFor(2, {}), ElementsAre("no rule keeps it"));
}

TEST_F(RetentionTest, OnlyWholeOnesCount) {
  AddOlder();
  AddOlder({.damage = "Incomplete: x"});
  AddOlder(2);
  AddOlder({.damage = "Corrupt: y"});
  EXPECT_THAT(Kept({.keep_last = 2}), ElementsAre("c9", "c8", "c7"));
  EXPECT_THAT(ReasonsFor(1, {}), ElementsAre("incomplete, and newer than the newest 2 whole ones: "
                                             "Incomplete: x"));
  EXPECT_THAT(ReasonsFor(4, {}), ElementsAre("no rule keeps it; not whole: Corrupt: y"));
}

TEST_F(RetentionTest, CopiesCountOnceAndStayTogether) {
  AddOlder(2);
  listing_.entries[1] = listing_.entries[0];
  listing_.entries[1].name = "copy of c9";
  AddOlder(2);
  listing_.entries.push_back(listing_.entries[2]);
  listing_.entries.back().name = "copy of c7";
  EXPECT_THAT(Kept({.keep_last = 2}), ElementsAre("c9", "copy of c9", "c7", "copy of c7"));
  EXPECT_THAT(ReasonsFor(4, {}), ElementsAre("a copy of c7"));
}

// Each has a file of 10 bytes of its own, and shares one of 100 with those of its number.
class BoundedTest : public RetentionTest {
 protected:
  void AddSharing(std::uint64_t number) {
    AddOlder({.is_whole = true,
              .files = {{.size_bytes = 10}, {.size_bytes = 100, .file_number = number}}});
  }
};

TEST_F(BoundedTest, TheNewestStayThatFit) {
  for (const unsigned number : {1u, 1u, 1u, 2u, 2u, 1u}) AddSharing(number);
  EXPECT_THAT(Kept({.max_bytes = 1000}), ElementsAre("c9", "c8", "c7", "c6", "c5", "c4"));
  // The oldest shares the base of the newest, so that it adds little.
  EXPECT_THAT(Kept({.max_bytes = 140}), ElementsAre("c9", "c8", "c7", "c4"));
  EXPECT_THAT(Kept({.max_bytes = 139}), ElementsAre("c9", "c8", "c7"));
  EXPECT_THAT(Kept({.max_bytes = 240}), ElementsAre("c9", "c8", "c7", "c6"));
  EXPECT_THAT(Kept({.max_bytes = 1}), ElementsAre("c9", "c8")) << "whatever they hold";
  EXPECT_THAT(Kept({.keep_last = 3, .max_bytes = 1}), ElementsAre("c9", "c8", "c7"));
  EXPECT_THAT(ReasonsFor(2, {.max_bytes = 140}), ElementsAre("among the newest of 140 bytes"));
  EXPECT_THAT(ReasonsFor(3, {.max_bytes = 140}),
              ElementsAre("does not fit in 140 bytes: it would add 110 to 130"));
}

TEST_F(BoundedTest, BeforeOtherRulesItTakesFromWhatTheyKeep) {
  for (const unsigned number : {1u, 1u, 2u, 3u, 4u}) AddSharing(number);
  EXPECT_THAT(Kept({.keep_every_n_steps = 20, .max_bytes = 230}), ElementsAre("c9", "c8", "c6"));
  EXPECT_THAT(Kept({.keep_every_n_steps = 20, .max_bytes = 229}), ElementsAre("c9", "c8"));
  EXPECT_THAT(ReasonsFor(3, {.keep_every_n_steps = 20, .max_bytes = 229}),
              ElementsAre("step 60 is a multiple of 20",
                          "does not fit in 229 bytes: it would add 110 to 120"));
  listing_.entries[4].is_kept = true;
  EXPECT_THAT(Kept({.max_bytes = 229}), ElementsAre("c9", "c8", "c5")) << "pinned";
}

TEST_F(BoundedTest, ADamagedOneIsNoReasonToLoseAWholeOne) {
  AddOlder({.damage = "Incomplete: x", .files = {{.size_bytes = 500}}});
  for (const unsigned number : {1u, 1u, 1u}) AddSharing(number);
  AddOlder({.damage = "Corrupt: y", .files = {{.size_bytes = 1}}});
  EXPECT_THAT(Kept({.max_bytes = 200}), ElementsAre("c9", "c8", "c7"));
  EXPECT_THAT(Kept({.max_bytes = 1000}), ElementsAre("c9", "c8", "c7", "c6"));
  EXPECT_THAT(ReasonsFor(4, {.max_bytes = 1000}),
              ElementsAre("no rule keeps it; not whole: Corrupt: y"));
}

TEST_F(RetentionTest, KeepsMultiplesOfAStep) {
  AddOlder(6);  // steps 90 to 40
  listing_.entries[4].step = kNoStep;
  EXPECT_THAT(Kept({.keep_every_n_steps = 20}), ElementsAre("c9", "c8", "c6", "c4"));
  EXPECT_THAT(ReasonsFor(3, {.keep_every_n_steps = 20}),
              ElementsAre("step 60 is a multiple of 20"));
  EXPECT_THAT(Kept({.keep_every_n_steps = kNoStep}), ElementsAre("c9", "c8"));
}

TEST_F(RetentionTest, KeepsTheNewestOfEachPeriod) {
  for (const std::uint64_t minute : {240u, 190u, 181u, 179u, 130u, 119u, 10u})
    AddMadeAt(60 * minute);
  const RetentionPolicy hourly{.keep_per_period = {{std::chrono::hours(1), 4}}};
  // Hours 4, 3, 3, 2, 2, 1, 0.
  EXPECT_THAT(Kept(hourly), ElementsAre("c9", "c8", "c6", "c4"));
  EXPECT_THAT(ReasonsFor(3, hourly), ElementsAre("the newest of its period of 3600 s"));
  EXPECT_THAT(Kept({.keep_per_period = {{std::chrono::hours(1), 9}}}), Contains("c3"));
  EXPECT_THAT(Kept({.keep_per_period = {{std::chrono::hours(24), 9}}}), ElementsAre("c9", "c8"));
  // Each entry keeps its own.
  EXPECT_THAT(
      Kept({.keep_per_period = {{std::chrono::hours(24), 1}, {std::chrono::minutes(1), 3}}}),
      ElementsAre("c9", "c8", "c7"));
}

TEST_F(RetentionTest, AClockThatWasSetBackKeepsMoreAndNotLess) {
  for (const std::uint64_t hour : {1u, 5u, 1u, 5u, 4u}) AddMadeAt(3600 * hour);
  EXPECT_THAT(Kept({.keep_per_period = {{std::chrono::hours(1), 9}}}),
              ElementsAre("c9", "c8", "c7", "c6", "c5"));
}

TEST_F(RetentionTest, KeepsWhatWasMadeShortlyBeforeTheNewest) {
  AddOlder({.damage = "Incomplete: x", .created_unix_ns = 900 * kSecond});
  for (const std::uint64_t second : {100u, 95u, 90u, 89u, 200u}) AddMadeAt(second);
  const RetentionPolicy policy{.keep_within = std::chrono::seconds(10)};
  EXPECT_TRUE(NeedsAllSummaries(policy));
  // The last one is of a clock that was set back.
  EXPECT_THAT(Kept(policy), ElementsAre("c9", "c8", "c7", "c6", "c4"));
  EXPECT_THAT(ReasonsFor(3, policy), ElementsAre("made within 10 s before the newest"));
}

// Not made in 1970: no period is theirs, and nothing is measured from them.
TEST_F(RetentionTest, WhatHasNoCreationTimeIsOfNoPeriod) {
  for (const std::uint64_t second : {0u, 7200u, 0u, 7190u, 0u}) AddMadeAt(second);
  EXPECT_THAT(Kept({.keep_per_period = {{std::chrono::minutes(1), 9}}}),
              ElementsAre("c9", "c8", "c6"));
  EXPECT_THAT(Kept({.keep_within = std::chrono::seconds(10)}), ElementsAre("c9", "c8", "c6"));
}

TEST_F(RetentionTest, OfAPeriodAWholeOneIsKept) {
  AddMadeAt(7200);
  AddMadeAt(7200);
  AddOlder({.damage = "Incomplete: x", .created_unix_ns = 3700 * kSecond});
  AddMadeAt(3600);
  EXPECT_THAT(Kept({.keep_per_period = {{std::chrono::hours(1), 2}}}),
              ElementsAre("c9", "c8", "c6"));
}

TEST_F(RetentionTest, KeepsTheBest) {
  for (const double value : {5.0, 4.0, 1.0, 3.0, 1.0, 2.0}) AddWithMetric(value);
  RetentionPolicy policy{.keep_best = KeepBest{.metric = "metric.loss", .count = 1}};
  EXPECT_THAT(Kept(policy), ElementsAre("c9", "c8", "c7")) << "of equal ones the newer";
  policy.keep_best->count = 3;
  EXPECT_THAT(Kept(policy), ElementsAre("c9", "c8", "c7", "c5", "c4"));
  policy.keep_best->best = BestMetric::kGreatest;
  EXPECT_THAT(Kept(policy), ElementsAre("c9", "c8", "c6"));
  EXPECT_THAT(ReasonsFor(0, policy),
              ElementsAre("one of the newest 2", "one of the best 3 by metric.loss"));
}

TEST_F(RetentionTest, OfCopiesTheFirstWholeOneIsAmongTheBest) {
  AddOlder(2);
  AddOlder({.damage = "Incomplete: x"});
  AddWithMetric(1.0);
  AddWithMetric(1.0);
  AddWithMetric(2.0);
  AddWithMetric(3.0);
  for (const std::size_t copy : {3u, 4u}) {
    listing_.entries[copy].attempt = listing_.entries[2].attempt;
  }
  const RetentionPolicy policy{.keep_best = KeepBest{.metric = "metric.loss", .count = 2}};
  EXPECT_THAT(Kept(policy), ElementsAre("c9", "c8", "c7", "c6", "c5", "c4"));
  EXPECT_THAT(ReasonsFor(3, policy), ElementsAre("one of the best 2 by metric.loss"));
  EXPECT_THAT(ReasonsFor(4, policy), ElementsAre("a copy of c7"));
}

TEST_F(RetentionTest, AMetricThatIsNoNumberIsNeverTheBest) {
  for (const std::string text : {"nan", "-nan", "NaN", "inf", "-inf", "", " 1", "1 ", "1,5", "0x10",
                                 "1e999", "+1", "one", "1.0f"}) {
    EXPECT_FALSE(ParseMetric(text).has_value()) << text;
  }
  EXPECT_EQ(ParseMetric("1.25"), 1.25);
  EXPECT_EQ(ParseMetric("-3e-2"), -0.03);
  EXPECT_EQ(ParseMetric("7"), 7.0);
  AddOlder(2);
  AddWithMetric(std::nullopt);
  AddWithMetric(9);
  AddOlder({.damage = "Incomplete: x", .metric = 1.0});
  EXPECT_THAT(Kept({.keep_best = KeepBest{.metric = "metric.loss", .count = 5}}),
              ElementsAre("c9", "c8", "c6"));
}

TEST_F(RetentionTest, AMetricThatNoneHasDeletesNothing) {
  AddOlder(2);
  const RetentionPolicy policy{.keep_best = KeepBest{.metric = "metric.los"}};
  const auto check = [&] {
    return CheckSomeIsRanked(policy, summaries_, DecideRetention(listing_, policy, summaries_));
  };
  EXPECT_TRUE(check().ok()) << "nothing would go";
  AddOlder(1);
  EXPECT_THAT(check(), testing::FailsRule(Code::kInvalidArgument, "R-SER-14"));
  AddWithMetric(1);
  EXPECT_TRUE(check().ok());
}

TEST_F(RetentionTest, KeepsWhatIsPinnedOrLinked) {
  AddOlder(5);
  listing_.entries[3].is_kept = true;
  listing_.entries[4].is_link = true;
  EXPECT_THAT(Kept({}), ElementsAre("c9", "c8", "c6", "c5"));
  EXPECT_THAT(ReasonsFor(3, {}), ElementsAre("a KEEP file pins it"));
}

TEST_F(RetentionTest, WhatIsNotCommittedIsNeitherCountedNorDeleted) {
  AddOlder(3);
  listing_.entries.push_back({.name = "attempt", .verdict = Verdict::kUncommitted});
  listing_.entries.push_back(
      {.name = "damaged", .verdict = Verdict::kCorrupt, .problem = Status(Code::kCorrupt, "bits")});
  EXPECT_THAT(Kept({}), ElementsAre("c9", "c8", "attempt", "damaged"));
  EXPECT_THAT(ReasonsFor(3, {}), ElementsAre("never committed"));
  EXPECT_THAT(ReasonsFor(4, {}),
              ElementsAre(HasSubstr("the sequence in its marker is unknown: bits")));
}

TEST_F(RetentionTest, KeepsTheNewestCheckedOnes) {
  for (const bool is_checked : {false, false, true, false, true, true}) {
    AddOlder({.is_whole = true, .is_checked = is_checked});
  }
  AddOlder({.damage = "Incomplete: x", .is_checked = true});
  EXPECT_THAT(Kept({.keep_checked = 2}), ElementsAre("c9", "c8", "c7", "c5"));
  EXPECT_THAT(ReasonsFor(4, {.keep_checked = 2}), ElementsAre("one of the newest 2 checked ones"));
  EXPECT_THAT(Kept({.keep_checked = 9}), ElementsAre("c9", "c8", "c7", "c5", "c4"));
  const RetentionPolicy bounded{.keep_checked = 2, .max_bytes = 1'000'000};
  EXPECT_THAT(Kept(bounded), ElementsAre("c9", "c8", "c7", "c5"));
}

TEST(RetentionPolicyTest, AsksForAllSummariesOnlyIfItNeedsThem) {
  EXPECT_FALSE(NeedsAllSummaries({.keep_every_n_steps = 5}));
  EXPECT_TRUE(NeedsAllSummaries({.keep_per_period = {{std::chrono::hours(1), 1}}}));
  EXPECT_TRUE(NeedsAllSummaries({.keep_best = KeepBest{.metric = "metric.x"}}));
  EXPECT_TRUE(NeedsAllSummaries({.keep_checked = 1}));
}

}  // namespace
}  // namespace sealpoint::internal::series
