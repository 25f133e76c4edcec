// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/report/collect.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "sealpoint/checkpoint.h"
#include "sealpoint/phases.h"
#include "sealpoint/storage.h"
#include "tools/common/limits.h"

namespace sealpoint::tools::report {
namespace {

constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr double kSecondsPerNanosecond = 1e-9;
// Enough to say what is wrong with one checkpoint.
constexpr std::uint64_t kViolationsMax = 3;

template <typename Function>
void ForEach(int threads, std::size_t count, const Function& function) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> pool;
  const std::size_t size = std::min(static_cast<std::size_t>(threads), count);
  for (std::size_t i = 0; i < size; ++i) {
    pool.emplace_back([&] {
      for (std::size_t at = next++; at < count; at = next++) function(at);
    });
  }
}

// The path as system calls take it; nothing for a store.
std::optional<std::string> LocalPath(const std::string& path) {
  constexpr std::string_view kFile = "file://";
  if (path.starts_with(kFile)) return path.substr(kFile.size());
  if (path.find("://") != std::string::npos) return std::nullopt;
  return path;
}

std::optional<std::int64_t> BirthNs(const std::string& path) {
  struct statx found = {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_BTIME, &found) != 0) return std::nullopt;
  if ((found.stx_mask & STATX_BTIME) == 0) return std::nullopt;
  return found.stx_btime.tv_sec * static_cast<std::int64_t>(kNanosecondsPerSecond) +
         found.stx_btime.tv_nsec;
}

// File systems take their time from a clock that ticks some hundred times per second.
constexpr std::int64_t kTickNs = 20'000'000;

std::optional<double> SaveSeconds(const Step& step) {
  const auto path = LocalPath(step.entry.path);
  if (!path) return std::nullopt;
  const auto begin = BirthNs(*path);
  const auto end = BirthNs(JoinPath(*path, "COMMIT"));
  const auto made = static_cast<std::int64_t>(step.created_unix_ns);
  if (!begin || !end || made + kTickNs < *begin || *end + kTickNs < made || *end < *begin) {
    return std::nullopt;
  }
  return static_cast<double>(*end - *begin) * kSecondsPerNanosecond;
}

// A file of a file system, whatever its names.
using FileIdentity = std::pair<dev_t, ino_t>;

using BlobFileList = std::vector<std::pair<FileIdentity, std::uint64_t>>;

BlobFileList BlobFiles(const Step& step) {
  BlobFileList files;
  const auto path = LocalPath(step.entry.path);
  if (!path) return files;
  const auto directory = DefaultStorage()->OpenDirectory(step.entry.path);
  if (!directory) return files;
  (void)(*directory)->ForEachEntry([&](const EntryInfo& file) {
    struct stat found = {};
    if (file.name.ends_with(".blob") && ::stat(JoinPath(*path, file.name).c_str(), &found) == 0) {
      files.push_back({{found.st_dev, found.st_ino}, file.size_bytes});
    }
    return true;
  });
  return files;
}

class Collector {
 public:
  explicit Collector(const CollectOptions& options) : options_(options) {}

  Result<ReportData> Run() {
    const auto policy = PolicyOf(options_.rules);
    if (!policy) return policy.error();
    if (Status status = List(); !status.ok()) return status;
    CheckAll();
    DropWhatIsGone();
    CountBytes();
    SetIntervals();
    if (Status status = data_.has_rules ? Retain(*policy) : Status(); !status.ok()) return status;
    CountBytesToFree();
    return std::move(data_);
  }

 private:
  Status List() {
    const auto directory = DefaultStorage()->OpenDirectory(options_.series);
    if (!directory) return Status(directory.error()).AtPath(options_.series);
    Result<SeriesListing> listing = Series(options_.series).List();
    if (!listing) return listing.error();
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    data_.path = options_.series;
    data_.made_unix_ns = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
    data_.level = options_.level;
    data_.has_rules = options_.rules.any();
    data_.foreign = std::move(listing->foreign);
    data_.foreign_count = listing->foreign_count;
    const std::set<AttemptId> forks(listing->forks.begin(), listing->forks.end());
    for (SeriesEntry& entry : listing->entries) {
      Step& step = data_.steps.emplace_back();
      step.verdict = entry.verdict;
      step.is_fork = entry.verdict == Verdict::kCommitted && forks.contains(entry.attempt);
      step.entry = std::move(entry);
    }
    return {};
  }

  // The payload of one keeps all threads busy; else it is round trips that take the time.
  void CheckAll() {
    const bool is_full = options_.level == VerifyLevel::kFull;
    const std::size_t count = data_.steps.size();
    ForEach(is_full ? 1 : options_.threads, count, [&](std::size_t at) {
      Step& step = data_.steps[at];
      if (step.entry.verdict == Verdict::kUncommitted) return;
      Check(step, is_full ? options_.threads : 1);
      Open(step);
      step.save_seconds = step.is_open ? SaveSeconds(step) : std::nullopt;
    });
    line_.Clear();
  }

  void Check(Step& step, int threads) {
    VerifyOptions options{.level = options_.level,
                          .threads = threads,
                          .limits = TypedLimits(),
                          .violations_per_file_max = kViolationsMax};
    options.on_progress = [this](const PhaseEvent& done) {
      if (options_.level == VerifyLevel::kFull) {
        line_.Set("verify", done.bytes_done, done.bytes_total);
      }
    };
    Result<VerifyReport> report = Verify(step.entry.path, options);
    if (!report) {
      step.verdict = Verdict::kUnreadable;
      step.violations.push_back(report.error());
      step.violation_count = 1;
      return;
    }
    step.verdict = report->verdict;
    step.violation_count = report->violation_count;
    step.violations = std::move(report->violations);
    step.violations.resize(std::min<std::size_t>(step.violations.size(), kViolationsMax));
  }

  static void Open(Step& step) {
    const auto opened =
        Checkpoint::Open(step.entry.path, {.limits = TypedLimits(), .check_files = false});
    if (!opened) return;
    const Checkpoint& checkpoint = **opened;
    step.is_open = true;
    step.created_unix_ns = checkpoint.created_unix_ns();
    step.raw_bytes = checkpoint.raw_bytes();
    step.tensor_count = checkpoint.tensor_count();
    step.blob_count = checkpoint.blobs().size();
    step.mesh = checkpoint.mesh();
    step.provenance = checkpoint.provenance();
  }

  // A pruning may work beside this.
  void DropWhatIsGone() {
    data_.gone_count = std::erase_if(data_.steps, [](const Step& step) {
      return step.verdict == Verdict::kUnreadable && !step.violations.empty() &&
             step.violations.front().code() == Code::kNotFound;
    });
  }

  // From the oldest on: what has a name in an older directory is not new.
  void CountBytes() {
    files_.resize(data_.steps.size());
    ForEach(options_.threads, files_.size(),
            [&](std::size_t at) { files_[at] = BlobFiles(data_.steps[at]); });
    std::set<FileIdentity> seen;
    const auto count = [&](std::size_t at) {
      Step& step = data_.steps[at];
      step.added_bytes = step.entry.size_bytes;
      for (const auto& [file, size] : files_[at]) {
        if (!seen.insert(file).second) step.added_bytes -= std::min(size, step.added_bytes);
      }
    };
    for (const bool has_place : {true, false}) {
      for (std::size_t at = files_.size(); at-- > 0;) {
        if (data_.steps[at].has_place() == has_place) count(at);
      }
    }
  }

  void CountBytesToFree() {
    std::set<FileIdentity> stays;
    for (std::size_t at = 0; at < files_.size(); ++at) {
      if (!data_.steps[at].keep.value_or(true)) continue;
      for (const auto& [file, size] : files_[at]) stays.insert(file);
    }
    for (std::size_t at = 0; at < files_.size(); ++at) {
      const Step& step = data_.steps[at];
      if (step.keep.value_or(true)) continue;
      std::uint64_t freed = step.entry.size_bytes;
      for (const auto& [file, size] : files_[at]) {
        // If several names of a file go, one counts.
        if (!stays.insert(file).second) freed -= std::min(size, freed);
      }
      data_.bytes_to_free += freed;
    }
  }

  void SetIntervals() {
    const Step* before = nullptr;
    for (auto step = data_.steps.rbegin(); step != data_.steps.rend(); ++step) {
      if (!step->has_place() || !step->is_open) continue;
      if (before != nullptr && step->created_unix_ns >= before->created_unix_ns) {
        step->interval_seconds =
            static_cast<double>(step->created_unix_ns - before->created_unix_ns) *
            kSecondsPerNanosecond;
      }
      before = &*step;
    }
  }

  // A fork is a fact about the series; a policy that is refused is wrong usage.
  Status Retain(const RetentionPolicy& policy) {
    PruneReport report =
        Series(options_.series).Prune(policy, {.dry_run = true, .limits = TypedLimits()});
    const bool has_fork = std::ranges::any_of(data_.steps, &Step::is_fork);
    if (report.status.code() == Code::kInvalidArgument && !has_fork) return report.status;
    data_.retention_problem = report.status;
    for (PruneDecision& decision : report.decisions) {
      const auto step = std::ranges::find_if(
          data_.steps, [&](const Step& one) { return one.entry.name == decision.entry.name; });
      if (step == data_.steps.end()) continue;
      step->keep = decision.keep;
      step->reasons = std::move(decision.reasons);
    }
    return {};
  }

  const CollectOptions& options_;
  ProgressLine line_;
  ReportData data_;
  std::vector<BlobFileList> files_;  // as data_.steps
};

}  // namespace

Result<ReportData> CollectData(const CollectOptions& options) {
  Result<ReportData> data = Collector(options).Run();
  if (data) CollectNorms(options, *data);
  return data;
}

}  // namespace sealpoint::tools::report
