// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_REPORT_STATS_STORE_H_
#define SEALPOINT_TOOLS_CKPT_REPORT_STATS_STORE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/content.h"
#include "sealpoint/id.h"
#include "sealpoint/status.h"

namespace sealpoint::tools {

// Statistics of a tensor as they are stored: without exponents.
struct TensorValues {
  std::string name{};
  std::optional<ValueStatistics> values{};  // absent if the dtype is not registered
};

// What a tensor was changed by since another checkpoint.
struct TensorUpdate {
  std::string name{};
  double l2 = 0;  // of the differences between values that are finite on both sides
  friend bool operator==(const TensorUpdate&, const TensorUpdate&) = default;
};

// A checkpoint's content: its attempt and the digest of its index, which pins all blobs. What was
// computed of that is right for ever.
struct ContentKey {
  AttemptId attempt{};
  Digest index{};

  static ContentKey Of(const Checkpoint& checkpoint);
  std::string ToString() const;
};

// Statistics of the checkpoints of a series, in files that nobody takes for a checkpoint's: the
// directory SERIES.stats beside that of the series has a file ATTEMPT-INDEX.values.json per
// checkpoint, and ATTEMPT-INDEX.since-ATTEMPT-INDEX.json per two that were compared. Each is made
// once, whole, and holds a digest of what it says: one that is damaged counts as absent. The
// directory may be deleted at any time. Thread safety: any calls from any threads.
class StatsStore {
 public:
  // The store of a series, or of that which a checkpoint is in. It is without a path if there is no
  // place beside it: for a whole bucket, and for the root of the file system.
  static StatsStore OfSeries(const std::string& series);
  static StatsStore OfCheckpoint(const std::string& checkpoint);

  const std::string& path() const { return path_; }
  bool exists() const;

  std::optional<std::vector<TensorValues>> FindValues(const ContentKey& key) const;
  std::optional<std::vector<TensorUpdate>> FindUpdate(const ContentKey& key,
                                                      const ContentKey& since) const;
  // It is no error if another process was first. Errors: InvalidArgument
  // (there is no place), Io, NoSpace.
  Status PutValues(const ContentKey& key, const std::vector<TensorStatistics>& tensors) const;
  Status PutUpdate(const ContentKey& key, const ContentKey& since,
                   const std::vector<TensorUpdate>& tensors) const;

 private:
  explicit StatsStore(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty: none
};

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_REPORT_STATS_STORE_H_
