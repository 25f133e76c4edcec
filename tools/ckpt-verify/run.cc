// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt-verify/run.h"

#include <fmt/format.h>

#include <cstdio>

#include "sealpoint/progress.h"
#include "sealpoint/series.h"
#include "tools/ckpt-verify/print.h"
#include "tools/common/terminal.h"
#include "tools/common/text.h"

namespace sealpoint::tools {
namespace {

class Run {
 public:
  explicit Run(const Options& options) : options_(options) {}

  ExitStatus All() {
    for (const std::string& path : options_.paths) CheckPath(path);
    for (const std::string& path : options_.series) CheckSeries(path);
    if (options_.json) {
      PrintJson({{"reports", reports_}, {"exit_status", static_cast<int>(status_)}});
    }
    return status_;
  }

 private:
  bool verbose() const { return !options_.quiet && !options_.json; }

  void Note(const std::string& path, const std::string& text) const {
    if (verbose()) PrintNote(path, text);
  }

  // The checkpoint's verdict counts.
  VerifyReport CheckPath(const std::string& path) {
    ProgressLine line;
    const Result<VerifyReport> result =
        Verify(path, {.level = options_.level,
                      .threads = options_.threads,
                      .on_progress = [this, &line](const VerifyProgress& done) {
                        if (verbose()) line.Set("verify", done.bytes_done, done.bytes_total);
                      }});
    VerifyReport report{.path = path, .level = options_.level};
    if (result) {
      report = *result;
    } else {
      report.violations.push_back(result.error());
    }
    line.Clear();
    if (options_.json) {
      reports_.push_back(ReportToJson(report));
    } else {
      PrintReport(report, verbose());
    }
    status_ = Worse(status_, ExitStatusOf(report.verdict));
    return report;
  }

  void CheckEntry(const SeriesEntry& entry, int& valid) {
    if (entry.verdict == Verdict::kUncommitted) {
      Note(entry.path, fmt::format("uncommitted{}, {} left over", entry.is_void ? " (void)" : "",
                                   FormatBytes(entry.size_bytes)));
    } else if (CheckPath(entry.path).verdict == Verdict::kCommitted) {
      ++valid;
    }
  }

  // Valid: the newest committed checkpoint is there and every committed one is good.
  void CheckSeries(const std::string& path) {
    const Result<SeriesListing> listing = Series(path).List();
    if (!listing) {
      status_ = Worse(status_, ExitStatusOf(VerdictOf(listing.error())));
      if (!options_.json) PrintViolation(listing.error());
      return;
    }
    int valid = 0;
    std::size_t uncommitted = 0;
    for (const SeriesEntry& entry : listing->entries) {
      uncommitted += entry.verdict == Verdict::kUncommitted ? 1 : 0;
      CheckEntry(entry, valid);
    }
    for (const AttemptId& fork : listing->forks) {
      Note(path, fmt::format("attempt {} shares its parent with another", fork.ToHex()));
    }
    for (const std::string& name : listing->foreign) Note(path, "foreign, not checked: " + name);
    if (listing->newest() == nullptr) {
      const bool is_empty = listing->entries.empty();
      status_ = Worse(status_, is_empty ? ExitStatus::kUnreadable : ExitStatus::kUncommitted);
    }
    if (!verbose()) return;
    fmt::print("{}: series of {}, {} valid ({}), {} uncommitted\n", Printable(path),
               FormatCount(listing->entries.size(), "checkpoint"), valid,
               VerifyLevelName(options_.level), uncommitted);
  }

  const Options& options_;
  ExitStatus status_ = ExitStatus::kValid;
  Json reports_ = Json::array();
};

}  // namespace

ExitStatus RunVerify(const Options& options) { return Run(options).All(); }

}  // namespace sealpoint::tools
