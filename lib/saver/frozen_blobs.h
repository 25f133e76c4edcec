// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_FROZEN_BLOBS_H_
#define SEALPOINT_LIB_SAVER_FROZEN_BLOBS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/container/open_checkpoint.h"
#include "lib/saver/preflight.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/declaration.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

// Frozen groups: blobs of an older checkpoint that are linked instead of written (spec/commit.md,
// 2.7). Nothing here is collective: each rank handles the blobs that it would write.

namespace sealpoint::internal::saver {

// This rank's part of a frozen group.
struct FrozenGroup {
  struct ShardContent {
    TensorSpec tensor{};
    Region region{};
    Digest content{};  // of the digests of its chunks
  };
  std::string name{};
  std::vector<ShardContent> shards{};
  std::uint64_t bytes = 0;

  // Over names, types, regions and contents; equal for groups with equal stored form.
  Digest ComputeKey() const;
};
// Links frozen groups stored by an attempt's parent. Remembers the linked summaries, so that the
// index of a parent is not read again if this rank linked everything in it.
class FrozenBlobs {
 public:
  struct Linked {
    Digest key{};
    std::vector<BlobSummary> summaries{};
  };
  // The attempt's parent, opened on the first request by a group; for one save.
  using OpenedParent = std::optional<Result<container::CommittedFiles>>;
  // Links into the directory of the attempt, which is synced. Links all blobs of the group or none:
  // if one cannot be linked, the result is empty regardless of the reason. Errors: those of the
  // sync.
  Result<Linked> Link(const Storage& storage, const Attempt& attempt, const SaverOptions& options,
                      const FrozenGroup& group, OpenedParent& parent);
  // Once the attempt is committed.
  void Remember(const AttemptId& attempt, const std::vector<Linked>& linked);

 private:
  AttemptId remembered_{};
  std::map<Digest, std::vector<BlobSummary>> by_key_{};  // of the remembered attempt
};

// Removes links that were made here.
void RemoveLinks(Directory& directory, const std::vector<BlobSummary>& linked);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_FROZEN_BLOBS_H_
