// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SERIES_DELTAS_H_
#define SEALPOINT_LIB_SERIES_DELTAS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/series.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

// Which checkpoints of a series need which (spec/delta.md section 4).

namespace sealpoint::internal::series {

struct SeriesDelta {
  std::size_t entry = 0;  // its number in the listing
  AttemptId base{};       // zero: unknown, since its index is damaged
};

// Reads the indexes of deltas, each attempt once, since its base never changes. Not thread-safe.
class DeltaIndexes {
 public:
  DeltaIndexes(const Storage& storage, const Limits& limits) : storage_(storage), limits_(limits) {}

  // The committed deltas among `entries`; reads no file of other checkpoints. Deltas that were
  // deleted meanwhile are left out. Errors: those of the storage, LimitExceeded.
  Result<std::vector<SeriesDelta>> Find(const std::vector<SeriesEntry>& entries);

 private:
  const Storage& storage_;
  const Limits limits_;
  std::map<AttemptId, AttemptId> bases_;
};

// The reason why the delta needs `base`, or may need it: its base is unknown, and `base` has a
// `KEEP` of deltas. Empty if it does not.
std::string WhyNeeded(const std::vector<SeriesEntry>& entries, const SeriesDelta& delta,
                      const SeriesEntry& base);
// The same of an entry with a marker that says neither that it is a delta nor that it is none.
std::string WhyMayBeNeeded(const SeriesEntry& other, const SeriesEntry& base);

// R-DLT-11, InvalidArgument: none of the other entries needs `base`, or may need it.
Status CheckIsNotNeeded(const std::vector<SeriesEntry>& entries,
                        const std::vector<SeriesDelta>& deltas, const SeriesEntry& base);

}  // namespace sealpoint::internal::series

#endif  // SEALPOINT_LIB_SERIES_DELTAS_H_
