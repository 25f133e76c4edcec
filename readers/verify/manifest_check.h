// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_MANIFEST_CHECK_H_
#define SEALPOINT_READERS_VERIFY_MANIFEST_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "lib/metadata/metadata.h"
#include "readers/verify/shard_map.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::verify {

// Receives one violation at a time, because all of them may not fit in memory.
using ReportViolation = std::function<void(Status)>;

// What the manifests of all blobs have together: tensors and objects without bytes, which have no
// records, so that some manifest must name them; and parts of fingerprints. Thread safety: all
// functions.
class ManifestTotals {
 public:
  explicit ManifestTotals(const metadata::Metadata& index);

  // The entry of a tensor in a manifest, by its number in the index.
  void SawTensor(std::size_t tensor, const metadata::TensorView& entry);
  void SawObject(std::size_t object);
  // Records that a manifest could not be used; the tensors it would have named are unknown.
  void MissedManifest();

  // R-BLB-07 for each empty one that no manifest names, R-FPR-02 for each tensor whose fingerprint
  // the manifests do not add up to, if they have all of its shards; none if a manifest was missed.
  void ForEachViolation(const ReportViolation& report) const;

 private:
  const metadata::Metadata& index_;
  mutable std::mutex mutex_;
  struct Seen {
    bool is_named = false;
    bool has_fingerprints = true;  // in each manifest that names it
    Fingerprint fingerprint{};
    std::uint64_t shard_count = 0;
  };
  std::vector<Seen> tensors_;  // by number
  std::vector<bool> objects_;
  bool missed_manifest_ = false;
};

// R-BLB-07, R-ATT-06: reports differences between the manifest of a blob and the index. The errors
// have rule and tensor.
void CompareManifest(const metadata::Metadata& manifest, const ShardMap& map, std::size_t blob,
                     ManifestTotals& totals, const ReportViolation& report);

}  // namespace sealpoint::internal::verify

#endif  // SEALPOINT_READERS_VERIFY_MANIFEST_CHECK_H_
