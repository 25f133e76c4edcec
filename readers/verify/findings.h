// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_FINDINGS_H_
#define SEALPOINT_READERS_VERIFY_FINDINGS_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "sealpoint/status.h"
#include "sealpoint/verify.h"

namespace sealpoint::internal {

// Whose violation it is, in the order of the report.
using FileRank = std::uint64_t;
inline constexpr FileRank kDirectoryRank = 0;
inline constexpr FileRank kMarkerRank = 1;
inline constexpr FileRank kIndexRank = 2;
constexpr FileRank BlobRank(std::size_t blob) { return 3 + FileRank{blob}; }

// Violations from many threads, in an order that does not depend on timing: by file, offset, rule.
// Identical ones are kept once. Of more than `listed_max` the first are kept, so that hostile
// content cannot ask for more memory; the verdict follows from all. Thread safety: all functions.
class Findings {
 public:
  static constexpr std::size_t kListedMax = 100'000;

  explicit Findings(std::size_t listed_max = kListedMax) : listed_max_(listed_max) {}

  // Does nothing on success.
  void Add(FileRank file, Status violation);

  // The verdict so far: kCommitted without violations.
  Verdict verdict() const;
  // Sorted; empties the object. `omitted` becomes true where some were not kept.
  std::vector<Status> Take(bool* omitted);

 private:
  struct Entry {
    FileRank file = 0;
    Status violation;
  };
  static bool Before(const Entry& a, const Entry& b);
  void SortAndCut();

  const std::size_t listed_max_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  Verdict verdict_ = Verdict::kCommitted;
  bool omitted_ = false;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_VERIFY_FINDINGS_H_
