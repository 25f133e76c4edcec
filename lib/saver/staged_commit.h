// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_STAGED_COMMIT_H_
#define SEALPOINT_LIB_SAVER_STAGED_COMMIT_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/id.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// A rank's data about a staged save that was committed on local storage, for its promotion.
struct StagedCommit {
  std::string local{};  // directory
  std::string final{};
  std::uint64_t step = 0;
  Bytes marker{};
  Bytes index{};
  std::vector<BlobId> blobs{};  // that this rank wrote
  bool is_first = false;        // the one rank of its node that placed index and marker there
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  Status last_try{};  // how its last promotion failed, if one did
};

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_STAGED_COMMIT_H_
