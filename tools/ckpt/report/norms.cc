// SPDX-License-Identifier: Apache-2.0
//
// Norms of values and of updates: from the store, or computed.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "sealpoint/checkpoint.h"
#include "sealpoint/content.h"
#include "sealpoint/phases.h"
#include "tools/ckpt/content.h"
#include "tools/ckpt/report/collect.h"
#include "tools/ckpt/report/stats_store.h"
#include "tools/common/limits.h"

namespace sealpoint::tools::report {
namespace {

// How many prefixes a person still looks through.
constexpr std::size_t kLayersMax = 24;
constexpr std::size_t kDepthMax = 8;

// How many prefixes of so many parts there are, or one more than are few.
std::size_t CountPrefixes(const Checkpoint& checkpoint, std::size_t depth) {
  std::set<std::string> prefixes;
  for (std::size_t i = 0; i < checkpoint.tensor_count() && prefixes.size() <= kLayersMax; ++i) {
    prefixes.insert(PrefixOf(std::string(checkpoint.tensor_name(i)), depth));
  }
  return prefixes.size();
}

// The least depth that tells as many prefixes apart as the greatest does that has few.
std::size_t DepthFor(const Checkpoint& checkpoint) {
  std::size_t depth = kDepthMax;
  while (depth > 1 && CountPrefixes(checkpoint, depth) > kLayersMax) --depth;
  const std::size_t count = CountPrefixes(checkpoint, depth);
  while (depth > 1 && CountPrefixes(checkpoint, depth - 1) == count) --depth;
  return depth;
}

// What is read of all checkpoints, so that the time left can be told.
class Meter {
 public:
  void Plan(std::uint64_t bytes) { planned_ += bytes; }
  // Begins a part that was planned as so many bytes.
  void Begin(std::uint64_t planned) { current_ = planned; }
  void Set(std::uint64_t done, std::uint64_t total) {
    planned_ = planned_ - current_ + total;  // of a comparison: known when it has read the tables
    current_ = total;
    line_.Set("norms", done_ + done, planned_);
  }
  void End() {
    done_ += current_;
    current_ = 0;
  }

 private:
  ProgressLine line_;
  std::uint64_t planned_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t current_ = 0;
};

class Norms {
 public:
  Norms(const CollectOptions& options, ReportData& data)
      : options_(options), data_(data), store_(StatsStore::OfSeries(options.series)) {}

  void Run() {
    data_.store = store_.path();
    if (!options_.norms && !store_.exists()) return;
    for (auto step = data_.steps.rbegin(); step != data_.steps.rend(); ++step) {
      if (step->has_place() && step->is_open && step->is_good()) steps_.push_back(&*step);
    }
    for (const Step* step : steps_) {
      if (options_.norms) meter_.Plan(2 * step->raw_bytes);
    }
    for (Step* step : steps_) Look(*step);
  }

 private:
  struct Opened {
    std::unique_ptr<Checkpoint> checkpoint;
    ContentKey key;
    const Step* step = nullptr;
  };

  void Look(Step& step) {
    auto checkpoint = Checkpoint::Open(step.entry.path, {.limits = TypedLimits()});
    if (!checkpoint) {
      step.norms_problem = checkpoint.error();
      return;
    }
    if (options_.depth) data_.depth = *options_.depth;
    if (!options_.depth && &step == steps_.front()) SetDepth();
    Opened opened{.key = ContentKey::Of(**checkpoint), .step = &step};
    opened.checkpoint = *std::move(checkpoint);
    meter_.Begin(step.raw_bytes);
    FindValues(opened, step);
    meter_.End();
    meter_.Begin(step.raw_bytes);
    FindUpdate(opened, step);
    meter_.End();
    if (step.norms_problem.ok()) Remember(std::move(opened));
  }

  // By the names of the newest one, which people know.
  void SetDepth() {
    const auto newest = Checkpoint::Open(steps_.back()->entry.path, {.limits = TypedLimits()});
    if (newest) data_.depth = DepthFor(**newest);
  }

  // Its parent first, then the others from the newest on.
  std::vector<const Opened*> Before(const Step& step) const {
    std::vector<const Opened*> before;
    for (auto one = recent_.rbegin(); one != recent_.rend(); ++one) {
      if (one->step->entry.sequence < step.entry.sequence) before.push_back(&*one);
    }
    std::ranges::stable_partition(
        before, [&](const Opened* one) { return one->step->entry.attempt == step.entry.parent; });
    return before;
  }

  // The parent is close by but in forks of many branches.
  void Remember(Opened opened) {
    constexpr std::size_t kRecentMax = 2;
    recent_.push_back(std::move(opened));
    if (recent_.size() > kRecentMax) recent_.erase(recent_.begin());
  }

  void FindValues(const Opened& opened, Step& step) {
    auto found = store_.FindValues(opened.key);
    if (!found && options_.norms) found = Compute(opened, step);
    if (!found) return;
    step.values.emplace();
    for (const TensorValues& tensor : *found) {
      if (!tensor.values) continue;
      const ValueStatistics& values = *tensor.values;
      (*step.values)[PrefixOf(tensor.name, data_.depth)].Add(
          {.value_count = values.value_count,
           .nan_count = values.nan_count,
           .infinity_count = values.positive_infinity_count + values.negative_infinity_count,
           .squares = values.squares});
    }
  }

  std::optional<std::vector<TensorValues>> Compute(const Opened& opened, Step& step) {
    ContentOptions options{.threads = options_.threads};
    options.on_progress = [this](const PhaseEvent& event) {
      meter_.Set(event.bytes_done, event.bytes_total);
    };
    const auto tensors = ComputeStatistics(*opened.checkpoint, options);
    if (!tensors) {
      SetProblem(step, tensors.error());
      return std::nullopt;
    }
    if (options_.store) NoteStored(store_.PutValues(opened.key, *tensors));
    std::vector<TensorValues> all;
    for (const TensorStatistics& tensor : *tensors) all.push_back({tensor.name, tensor.values});
    return all;
  }

  void FindUpdate(const Opened& opened, Step& step) {
    const std::vector<const Opened*> all = Before(step);
    for (const Opened* before : all) {
      const auto found = store_.FindUpdate(opened.key, before->key);
      if (found) return SetUpdate(*before, *found, step);
    }
    if (!options_.norms || all.empty() || !step.norms_problem.ok()) return;
    const auto found = CompareWith(*all.front(), opened, step);
    if (found) SetUpdate(*all.front(), *found, step);
  }

  void SetUpdate(const Opened& before, const std::vector<TensorUpdate>& tensors, Step& step) const {
    step.update_squares.emplace();
    step.update_since = before.step->entry.name;
    for (const TensorUpdate& tensor : tensors) {
      (*step.update_squares)[PrefixOf(tensor.name, data_.depth)] += tensor.l2 * tensor.l2;
    }
  }

  // Tensors of both that could be compared; 0 for those that are equal.
  std::optional<std::vector<TensorUpdate>> CompareWith(const Opened& before, const Opened& opened,
                                                       Step& step) {
    CompareOptions options{.numeric = true, .threads = options_.threads};
    options.on_progress = [this](const PhaseEvent& event) {
      meter_.Set(event.bytes_done, event.bytes_total);
    };
    const auto report = Compare(*before.checkpoint, *opened.checkpoint, options);
    if (!report) {
      SetProblem(step, report.error());
      return std::nullopt;
    }
    std::map<std::string_view, const TensorDifference*> differences;
    for (const TensorDifference& tensor_difference : report->tensors) {
      if (tensor_difference.change != ContentChange::kNone)
        differences[tensor_difference.second_name] = &tensor_difference;
    }
    std::vector<TensorUpdate> all;
    for (std::size_t i = 0; i < opened.checkpoint->tensor_count(); ++i) {
      const std::string_view name = opened.checkpoint->tensor_name(i);
      const auto found = differences.find(name);
      if (found == differences.end()) {
        all.push_back({.name = std::string(name)});
      } else if (found->second->numeric) {
        all.push_back({.name = std::string(name), .l2 = found->second->numeric->l2});
      }
    }
    if (options_.store) NoteStored(store_.PutUpdate(opened.key, before.key, all));
    return all;
  }

  // The first one is the cause. Damage that was found is a verdict.
  static void SetProblem(Step& step, const Status& problem) {
    step.norms_problem = problem;
    const Verdict verdict = VerdictOf(problem);
    const bool is_damage = verdict == Verdict::kCorrupt || verdict == Verdict::kIncomplete;
    if (!is_damage || !problem.place().path.starts_with(step.entry.path)) return;
    step.verdict = verdict;
    step.violations.push_back(problem);
    ++step.violation_count;
  }
  void NoteStored(const Status& status) {
    if (data_.store_problem.ok()) data_.store_problem = status;
  }

  const CollectOptions& options_;
  ReportData& data_;
  const StatsStore store_;
  Meter meter_;
  std::vector<Step*> steps_;    // the oldest first
  std::vector<Opened> recent_;  // the oldest first
};

}  // namespace

void CollectNorms(const CollectOptions& options, ReportData& data) { Norms(options, data).Run(); }

}  // namespace sealpoint::tools::report
