// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_MANIFEST_CHECK_H_
#define SEALPOINT_READERS_VERIFY_MANIFEST_CHECK_H_

#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

#include "lib/metadata/metadata.h"
#include "readers/verify/shard_map.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::verify {

// Receives one violation at a time, because all of them may not fit in memory.
using ReportViolation = std::function<void(Status)>;

// Tensors and objects of the index without bytes: they have no records, so some manifest must name
// them. Thread safety: all functions.
class SeenEmpties {
 public:
  explicit SeenEmpties(const metadata::Metadata& index);

  void SawTensor(std::size_t tensor);
  void SawObject(std::size_t object);
  // Records that a manifest could not be used; the tensors it would have named are unknown.
  void MissedManifest();

  // R-BLB-07 for each that no manifest names; none if a manifest was missed.
  void ForEachViolation(const ReportViolation& report) const;

 private:
  const metadata::Metadata& index_;
  mutable std::mutex mutex_;
  std::vector<bool> tensors_;  // by number; true: seen, or not empty
  std::vector<bool> objects_;
  bool missed_manifest_ = false;
};

// R-BLB-07: reports differences between the manifest of a blob and the index. The errors have rule
// and tensor.
void CompareManifest(const metadata::Metadata& manifest, const ShardMap& map, std::size_t blob,
                     SeenEmpties& empties, const ReportViolation& report);

}  // namespace sealpoint::internal::verify

#endif  // SEALPOINT_READERS_VERIFY_MANIFEST_CHECK_H_
