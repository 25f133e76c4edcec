// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_FINDINGS_H_
#define SEALPOINT_READERS_VERIFY_FINDINGS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/status.h"
#include "sealpoint/verify.h"

namespace sealpoint::internal::verify {

// File of a violation, in the order of the report.
using FileRank = std::uint64_t;
inline constexpr FileRank kDirectoryRank = 0;
inline constexpr FileRank kMarkerRank = 1;
inline constexpr FileRank kIndexRank = 2;
constexpr FileRank BlobRank(std::size_t blob) { return 3 + FileRank{blob}; }

// Limits for listed violations; all violations are counted.
struct FindingLimits {
  std::uint64_t per_file_max = UINT64_MAX;
  // Memory of listed violations. A report and its construction take three times this.
  std::uint64_t listed_bytes_max = 8 * kMiB;
  // Maximum number of files reported with a count of omitted violations.
  std::size_t omitted_files_max = 1000;
};

// Violations from many threads, in an order that does not depend on timing: by file, offset, rule.
// Identical ones are listed once. Hostile content cannot use more memory than the limits allow; the
// verdict follows from all violations. Thread safety: all functions.
class Findings {
 public:
  explicit Findings(FindingLimits limits = {},
                    std::function<void(const Status&)> on_violation = nullptr)
      : limits_(limits), on_violation_(std::move(on_violation)) {}

  // Does nothing on success.
  void Add(FileRank file, Status violation);

  // The verdict so far: kCommitted without violations.
  Verdict verdict() const;
  // Forgets all violations.
  void Clear();
  // Moves verdict, violations and omissions into the report; empties the object.
  void MoveTo(VerifyReport& report);

 private:
  struct Entry {
    FileRank file = 0;
    Status violation;
  };
  static bool Before(const Entry& a, const Entry& b);
  static std::uint64_t SizeOf(const Entry& entry);
  void SortAndCut();
  void Omit(const Entry& entry);

  const FindingLimits limits_;
  const std::function<void(const Status&)> on_violation_;
  std::mutex callback_mutex_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  std::uint64_t entries_bytes_ = 0;
  std::uint64_t count_ = 0;
  Verdict verdict_ = Verdict::kCommitted;
  std::map<FileRank, OmittedViolations> omitted_;
  std::uint64_t omitted_elsewhere_ = 0;  // in files after those of omitted_
};

}  // namespace sealpoint::internal::verify

#endif  // SEALPOINT_READERS_VERIFY_FINDINGS_H_
