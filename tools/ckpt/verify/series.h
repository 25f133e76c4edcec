// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_VERIFY_SERIES_H_
#define SEALPOINT_TOOLS_CKPT_VERIFY_SERIES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "sealpoint/series.h"
#include "sealpoint/verify.h"
#include "tools/ckpt/verify/options.h"
#include "tools/common/json.h"

namespace sealpoint::tools::verify {

// What a series is found to be.
struct SeriesResult {
  std::string path;
  Status error;
  SeriesListing listing;
  std::map<Verdict, std::uint64_t> counts;  // of its checkpoints
  std::uint64_t older_count = 0;            // not checked: --since
  std::uint64_t total_bytes = 0;            // of those that were checked
  std::uint64_t shared_bytes = 0;           // of these, in files that were counted before

  std::uint64_t count(Verdict verdict) const {
    const auto found = counts.find(verdict);
    return found == counts.end() ? 0 : found->second;
  }
};

// Whether an entry of the listing is one of those that --since names: the first checkpoint that
// reached the step, and what was committed after it, be it of a smaller step, as after a training
// that went back. What has no marker that says how new it is may be one.
class Since {
 public:
  Since(const SeriesListing& listing, std::optional<std::uint64_t> step);
  bool Includes(const SeriesEntry& entry) const;
  // Nothing reached the step: NotFound.
  const Status& status() const { return status_; }

 private:
  std::optional<std::uint64_t> first_;  // sequence; nothing: all are included
  Status status_;
};

void PrintSeries(const SeriesResult& series, const Options& options);
void WriteSeries(const SeriesResult& series, JsonWriter& json);

}  // namespace sealpoint::tools::verify

#endif  // SEALPOINT_TOOLS_CKPT_VERIFY_SERIES_H_
