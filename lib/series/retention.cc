// SPDX-License-Identifier: Apache-2.0
#include "lib/series/retention.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/series/distinct_bytes.h"

namespace sealpoint::internal::series {
namespace {

constexpr std::string_view kMetricPrefix = "metric.";
constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;

Status BadPolicy(std::string message) {
  return RuleError(Code::kInvalidArgument, "R-SER-14", message);
}

// The decisions about the committed checkpoints of a listing, newest first.
class Retention {
 public:
  Retention(const SeriesListing& listing, const RetentionPolicy& policy,
            const std::vector<CheckpointSummary>& summaries, const std::vector<SeriesDelta>& deltas,
            std::vector<PruneDecision>& decisions)
      : listing_(listing),
        policy_(policy),
        summaries_(summaries),
        deltas_(deltas),
        decisions_(decisions),
        branches_(listing.branches()) {
    while (count_ < decisions.size() && IsCommitted(decisions[count_].entry)) ++count_;
  }

  void Decide() {
    KeepBranches();
    KeepLast();
    KeepSteps();
    for (const KeepPerPeriod& periods : policy_.keep_per_period) KeepPeriods(periods);
    if (policy_.keep_best) KeepBestOnes(*policy_.keep_best);
    KeepChecked();
    KeepWithin();
    KeepPinned();
    KeepCopies();
    if (policy_.max_bytes > 0) KeepWhatFits();
    KeepBases();
    for (std::size_t i = 0; i < count_; ++i) ExplainDeletion(i);
  }

 private:
  static bool IsCommitted(const SeriesEntry& entry) { return entry.verdict == Verdict::kCommitted; }
  // Summaries are there for all that a rule looks at (NeedsAllSummaries, SummarizeNewest).
  bool is_whole(std::size_t i) const { return summaries_[i].is_whole; }
  // A creation time of 0 is not known.
  bool HasTime(std::size_t i) const { return is_whole(i) && summaries_[i].created_unix_ns != 0; }
  const AttemptId& attempt(std::size_t i) const { return decisions_[i].entry.attempt; }
  void Keep(std::size_t i, std::string reason) {
    decisions_[i].keep = true;
    decisions_[i].reasons.push_back(std::move(reason));
  }

  bool is_of_a_branch(std::size_t i) const { return branches_.contains(attempt(i)); }

  void KeepBranches() {
    for (std::size_t i = 0; i < count_; ++i) {
      if (is_of_a_branch(i)) Keep(i, "on another branch of a fork than the newest");
    }
  }

  // A damaged one that is newer than the last of them stays as well: it does not count, and whoever
  // looks into the damage wants it.
  void KeepLast() {
    std::set<AttemptId>& whole = last_;
    for (std::size_t i = 0; i < count_ && whole.size() < policy_.keep_last; ++i) {
      if (is_of_a_branch(i)) continue;
      if (is_whole(i)) {
        whole.insert(attempt(i));
        Keep(i, StrCat("one of the newest ", policy_.keep_last));
      } else {
        last_damaged_.insert(attempt(i));
        Keep(i, StrCat("incomplete, and newer than the newest ", policy_.keep_last,
                       " whole ones: ", summaries_[i].damage));
      }
    }
  }

  void KeepSteps() {
    const std::uint64_t n = policy_.keep_every_n_steps;
    for (std::size_t i = 0; n > 0 && i < count_; ++i) {
      const std::uint64_t step = decisions_[i].entry.step;
      if (step != kNoStep && step % n == 0) Keep(i, StrCat("step ", step, " is a multiple of ", n));
    }
  }

  // From the newest to the oldest, one is kept if it was made in another period than the last one
  // that was. So a clock that was set back keeps more rather than less.
  void KeepPeriods(const KeepPerPeriod& periods) {
    const auto seconds = static_cast<std::uint64_t>(periods.period.count());
    std::optional<std::uint64_t> last_period;
    std::uint32_t kept = 0;
    for (std::size_t i = 0; i < count_ && kept < periods.count; ++i) {
      if (!HasTime(i)) continue;
      const std::uint64_t period = summaries_[i].created_unix_ns / kNanosecondsPerSecond / seconds;
      if (last_period == period) continue;
      last_period = period;
      ++kept;
      Keep(i, StrCat("the newest of its period of ", seconds, " s"));
    }
  }

  void KeepBestOnes(const KeepBest& rule) {
    std::vector<std::size_t> ranked;
    // A copy comes right after what it is a copy of: they have sequence and attempt in common.
    std::optional<AttemptId> last;
    for (std::size_t i = 0; i < count_; ++i) {
      if (!is_whole(i) || !summaries_[i].metric || last == attempt(i)) continue;
      last = attempt(i);
      ranked.push_back(i);
    }
    const bool least = rule.best == BestMetric::kLeast;
    // Stable: of equal ones the newer comes first.
    std::stable_sort(ranked.begin(), ranked.end(), [&](std::size_t a, std::size_t b) {
      const double x = *summaries_[a].metric;
      const double y = *summaries_[b].metric;
      return least ? x < y : x > y;
    });
    ranked.resize(std::min<std::size_t>(ranked.size(), rule.count));
    for (const std::size_t i : ranked) {
      Keep(i, StrCat("one of the best ", rule.count, " by ", rule.metric));
    }
  }

  void KeepChecked() {
    std::set<AttemptId> checked;
    for (std::size_t i = 0; i < count_ && checked.size() < policy_.keep_checked; ++i) {
      if (!is_whole(i) || !summaries_[i].is_checked) continue;
      if (checked.insert(attempt(i)).second) {
        Keep(i, StrCat("one of the newest ", policy_.keep_checked, " checked ones"));
      }
    }
  }

  // Measured from the newest whole one and not from now: a training that stopped long ago loses
  // nothing, and a clock that was set back keeps more rather than less.
  void KeepWithin() {
    const auto seconds = static_cast<std::uint64_t>(policy_.keep_within.count());
    if (seconds == 0) return;
    const auto second_of = [&](std::size_t i) {
      return summaries_[i].created_unix_ns / kNanosecondsPerSecond;
    };
    std::optional<std::uint64_t> newest;
    for (std::size_t i = 0; i < count_; ++i) {
      if (!HasTime(i)) continue;
      if (!newest) newest = second_of(i);
      if (second_of(i) >= *newest || *newest - second_of(i) <= seconds) {
        Keep(i, StrCat("made within ", seconds, " s before the newest"));
      }
    }
  }

  void KeepPinned() {
    for (std::size_t i = 0; i < count_; ++i) {
      if (decisions_[i].entry.is_kept) Keep(i, "a KEEP file pins it");
      if (decisions_[i].entry.is_link) Keep(i, "a symbolic link, which is not removed");
    }
  }

  // What is kept is kept under all its names.
  void KeepCopies() {
    for (std::size_t i = 0; i < count_; ++i) {
      if (decisions_[i].keep) continue;
      const auto same = [&](const PruneDecision& other) {
        return other.keep && IsCommitted(other.entry) && other.entry.attempt == attempt(i);
      };
      const auto kept = std::find_if(decisions_.begin(), decisions_.end(), same);
      if (kept != decisions_.end()) Keep(i, StrCat("a copy of ", kept->entry.name));
    }
  }

  // Calls `visit` with each committed checkpoint that entry `i` needs, or may need, and with the
  // reason.
  template <typename Visit>
  void ForEachBase(std::size_t i, const Visit& visit) const {
    const auto delta = std::ranges::find(deltas_, i, &SeriesDelta::entry);
    for (std::size_t base = 0; base < count_; ++base) {
      const SeriesEntry& entry = decisions_[base].entry;
      std::string why = delta != deltas_.end() ? WhyNeeded(listing_.entries, *delta, entry)
                                               : WhyMayBeNeeded(decisions_[i].entry, entry);
      if (!why.empty()) visit(base, std::move(why));
    }
  }

  // R-DLT-12. One reason for each base, by the newest of those that need it.
  void KeepBases() {
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < decisions_.size(); ++i) {
      if (decisions_[i].keep) kept.push_back(i);
    }
    std::set<std::size_t> bases;
    for (std::size_t next = 0; next < kept.size(); ++next) {
      ForEachBase(kept[next], [&](std::size_t base, std::string why) {
        if (!decisions_[base].keep) kept.push_back(base);
        if (bases.insert(base).second) Keep(base, std::move(why));
      });
    }
  }

  // Adds the files of a checkpoint, and of the bases that it needs, unless they are counted.
  // Returns by how many bytes they grow.
  std::uint64_t Count(std::size_t first, DistinctBytes& bytes, std::set<std::size_t>& counted,
                      std::vector<std::size_t>& added) const {
    std::uint64_t grown = 0;
    std::vector<std::size_t> next = {first};
    while (!next.empty()) {
      const std::size_t i = next.back();
      next.pop_back();
      if (!counted.insert(i).second) continue;
      added.push_back(i);
      grown += bytes.Add(summaries_[i].files);
      ForEachBase(i, [&](std::size_t base, const std::string&) { next.push_back(base); });
    }
    return grown;
  }

  bool IsFixed(std::size_t i) const {
    const auto is_pinned = [&](const PruneDecision& other) {
      return IsCommitted(other.entry) && other.entry.attempt == attempt(i) &&
             (other.entry.is_kept || other.entry.is_link);
    };
    return is_of_a_branch(i) || last_.contains(attempt(i)) || last_damaged_.contains(attempt(i)) ||
           std::any_of(decisions_.begin(), decisions_.end(), is_pinned);
  }

  // Takes from what the rules keep, the newest first. A copy stays or goes with what it is a copy
  // of, right behind which it comes.
  void KeepWhatFits() {
    const bool is_only_rule = policy_.keep_every_n_steps == 0 && policy_.keep_per_period.empty() &&
                              !policy_.keep_best && policy_.keep_checked == 0 &&
                              policy_.keep_within.count() == 0;
    DistinctBytes bytes;
    std::set<std::size_t> counted;
    std::vector<std::size_t> added;
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (IsFixed(i)) total += Count(i, bytes, counted, added);
    }
    for (std::size_t end = 0, begin = 0; begin < count_; begin = end) {
      while (end < count_ && attempt(end) == attempt(begin)) ++end;
      std::uint64_t grown = 0;
      bool is_wanted = decisions_[begin].keep;
      for (std::size_t i = begin; i < end; ++i) is_wanted |= is_only_rule && is_whole(i);
      if (!is_wanted || counted.contains(begin)) continue;
      added.clear();
      for (std::size_t i = begin; i < end; ++i) grown += Count(i, bytes, counted, added);
      const bool fits = policy_.max_bytes >= grown && total <= policy_.max_bytes - grown;
      for (std::size_t i = begin; i < end; ++i) {
        decisions_[i].keep = fits;
        if (fits) {
          if (is_only_rule) Keep(i, StrCat("among the newest of ", policy_.max_bytes, " bytes"));
          continue;
        }
        decisions_[i].reasons.push_back(StrCat("does not fit in ", policy_.max_bytes,
                                               " bytes: it would add ", grown, " to ", total));
      }
      if (fits) total += grown;
      for (const std::size_t i : fits ? std::vector<std::size_t>() : added) {
        static_cast<void>(bytes.Remove(summaries_[i].files));
        counted.erase(i);
      }
    }
  }

  void ExplainDeletion(std::size_t i) {
    if (decisions_[i].keep || !decisions_[i].reasons.empty()) return;
    const bool is_damaged = i < summaries_.size() && !summaries_[i].is_whole;
    const std::string damage = is_damaged ? StrCat("; not whole: ", summaries_[i].damage) : "";
    decisions_[i].reasons.push_back(StrCat("no rule keeps it", damage));
  }

  const SeriesListing& listing_;
  const RetentionPolicy& policy_;
  const std::vector<CheckpointSummary>& summaries_;
  const std::vector<SeriesDelta>& deltas_;
  std::vector<PruneDecision>& decisions_;
  std::size_t count_ = 0;               // of committed ones
  const std::set<AttemptId> branches_;  // R-SER-15
  std::set<AttemptId> last_;            // what KeepLast keeps because it is whole
  std::set<AttemptId> last_damaged_;    // and because it is newer
};

}  // namespace

Status CheckPolicy(const RetentionPolicy& policy) {
  if (policy.keep_last < 2) {
    return BadPolicy(StrCat("keep_last is ", policy.keep_last, ", expected at least 2"));
  }
  for (const KeepPerPeriod& periods : policy.keep_per_period) {
    if (periods.period < std::chrono::seconds(1)) {
      return BadPolicy(StrCat("a period is ", periods.period.count(), " s, expected at least 1 s"));
    }
    if (periods.count == 0) return BadPolicy("a number of periods is 0, expected at least 1");
  }
  if (policy.keep_within < std::chrono::seconds(0)) {
    return BadPolicy(
        StrCat("keep_within is ", policy.keep_within.count(), " s, expected 0 or more"));
  }
  if (!policy.keep_best) return Status();
  if (policy.keep_best->count == 0) {
    return BadPolicy("the number of best checkpoints is 0, expected at least 1");
  }
  const std::string& metric = policy.keep_best->metric;
  if (metric.size() > kMetricPrefix.size() && metric.starts_with(kMetricPrefix)) return Status();
  return BadPolicy(StrCat("the metric is \"", metric, "\", expected a key that begins with \"",
                          kMetricPrefix, "\""));
}

std::optional<double> ParseMetric(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool NeedsAllSummaries(const RetentionPolicy& policy) {
  return !policy.keep_per_period.empty() || policy.keep_best.has_value() ||
         policy.keep_checked > 0 || policy.keep_within > std::chrono::seconds(0) ||
         policy.max_bytes > 0;
}

Status CheckSomeIsRanked(const RetentionPolicy& policy,
                         const std::vector<CheckpointSummary>& summaries,
                         const std::vector<PruneDecision>& decisions) {
  const auto is_ranked = [](const CheckpointSummary& one) { return one.metric.has_value(); };
  const auto goes = [](const PruneDecision& one) { return !one.keep; };
  const auto is_checked = [](const CheckpointSummary& one) { return one.is_checked; };
  if (policy.keep_checked > 0 && std::none_of(summaries.begin(), summaries.end(), is_checked) &&
      std::any_of(decisions.begin(), decisions.end(), goes)) {
    return RuleError(Code::kInvalidArgument, "R-FPR-04",
                     "no checkpoint is checked for silent data corruption (sdc.state in its "
                     "provenance), so none is deleted");
  }
  if (!policy.keep_best || std::any_of(summaries.begin(), summaries.end(), is_ranked) ||
      std::none_of(decisions.begin(), decisions.end(), goes)) {
    return {};
  }
  return BadPolicy(StrCat("no checkpoint has a number as \"", policy.keep_best->metric,
                          "\" in its provenance, so the best is unknown and none is deleted"));
}

std::vector<PruneDecision> DecideRetention(const SeriesListing& listing,
                                           const RetentionPolicy& policy,
                                           const std::vector<CheckpointSummary>& summaries,
                                           const std::vector<SeriesDelta>& deltas) {
  std::vector<PruneDecision> decisions;
  decisions.reserve(listing.entries.size());
  for (const SeriesEntry& entry : listing.entries) {
    PruneDecision& decision = decisions.emplace_back(PruneDecision{.entry = entry, .keep = false});
    if (entry.verdict == Verdict::kCommitted) continue;
    decision.keep = true;
    decision.reasons.push_back(
        entry.verdict == Verdict::kUncommitted
            ? "never committed"
            : StrCat("the sequence in its marker is unknown: ", entry.problem.message()));
  }
  Retention(listing, policy, summaries, deltas, decisions).Decide();
  return decisions;
}

std::vector<std::size_t> DeletionOrder(const SeriesListing& listing,
                                       const std::vector<PruneDecision>& decisions,
                                       const std::vector<SeriesDelta>& deltas) {
  std::vector<std::size_t> order;
  std::set<std::size_t> seen;
  const auto take = [&](std::size_t i) {
    if (!decisions[i].keep && seen.insert(i).second) order.push_back(i);
  };
  const auto take_with_deltas = [&](std::size_t root) {
    const std::size_t begin = order.size();
    take(root);
    for (std::size_t next = begin; next < order.size(); ++next) {
      for (const SeriesDelta& delta : deltas) {
        const SeriesEntry& base = listing.entries[order[next]];
        if (!WhyNeeded(listing.entries, delta, base).empty()) take(delta.entry);
      }
    }
    std::reverse(order.begin() + static_cast<std::ptrdiff_t>(begin), order.end());
  };
  for (const SeriesDelta& delta : deltas) {
    if (delta.base.is_zero()) take_with_deltas(delta.entry);
  }
  for (std::size_t i = decisions.size(); i-- > 0;) take_with_deltas(i);
  return order;
}

}  // namespace sealpoint::internal::series
