// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_REPORT_DATA_H_
#define SEALPOINT_TOOLS_CKPT_REPORT_DATA_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/series.h"
#include "sealpoint/verify.h"
#include "tools/ckpt/series/rules.h"
#include "tools/common/exit_status.h"

// The data of a report about a series.

namespace sealpoint::tools::report {

struct CollectOptions {
  std::string series{};
  VerifyLevel level = VerifyLevel::kFiles;
  int threads = 1;
  bool norms = false;  // compute the statistics that are not stored
  bool store = true;   // and store them
  std::optional<std::size_t> depth{};
  RetentionRules rules{};
};

// The values of all tensors below a prefix.
struct LayerValues {
  std::uint64_t value_count = 0;
  std::uint64_t nan_count = 0;
  std::uint64_t infinity_count = 0;
  double squares = 0;  // of finite values

  std::uint64_t nonfinite_count() const { return nan_count + infinity_count; }
  void Add(const LayerValues& more);
};

// One checkpoint, or attempt.
struct Step {
  SeriesEntry entry{};
  Verdict verdict = Verdict::kUncommitted;  // at the level that was checked
  std::vector<Status> violations{};         // the first ones
  std::uint64_t violation_count = 0;
  bool is_fork = false;

  // The index says these, if it is good.
  bool is_open = false;
  std::uint64_t created_unix_ns = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t tensor_count = 0;
  std::uint64_t blob_count = 0;
  std::vector<std::pair<std::string, std::uint32_t>> mesh{};
  std::vector<std::pair<std::string, std::string>> provenance{};

  // The part of entry.size_bytes that no older checkpoint of the series has on disk as well.
  std::uint64_t added_bytes = 0;
  // From the making of the directory to that of the marker, by the times of the file system; only
  // where these agree with the time in the index, so not of what was copied or promoted.
  std::optional<double> save_seconds{};
  // Since the one before it was made.
  std::optional<double> interval_seconds{};

  std::optional<bool> keep{};  // what a pruning would do
  std::vector<std::string> reasons{};

  // By prefix; absent if they are neither stored nor computed.
  std::optional<std::map<std::string, LayerValues>> values{};
  std::optional<std::map<std::string, double>> update_squares{};
  std::string update_since{};  // the name of the checkpoint that it was compared with
  Status norms_problem{};

  // Whether its marker says where in the series it stands.
  bool has_place() const { return entry.verdict == Verdict::kCommitted; }
  bool is_good() const { return verdict == Verdict::kCommitted; }
  std::uint64_t nonfinite_count() const;
};

struct ReportData {
  std::string path{};
  std::uint64_t made_unix_ns = 0;
  VerifyLevel level = VerifyLevel::kFiles;
  std::vector<Step> steps{};  // in the order of SeriesListing::entries
  std::vector<std::string> foreign{};
  std::uint64_t foreign_count = 0;
  std::uint64_t gone_count = 0;  // deleted while the report was made

  bool has_rules = false;
  Status retention_problem{};       // a fork, say
  std::uint64_t bytes_to_free = 0;  // of files that no checkpoint has that stays

  std::size_t depth = 1;
  std::string store{};  // where statistics are kept; empty if there is no place
  Status store_problem{};

  // Those with a place, the oldest first.
  std::vector<const Step*> Columns() const;
  const Step* NewestWhole() const;
  std::uint64_t size_bytes() const;      // of all directories
  std::uint64_t distinct_bytes() const;  // with files of several names counted once
  std::uint64_t CountOf(Verdict verdict) const;
  ExitStatus exit_status() const;  // as of ckpt verify --series
};

}  // namespace sealpoint::tools::report

#endif  // SEALPOINT_TOOLS_CKPT_REPORT_DATA_H_
