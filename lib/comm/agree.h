// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMM_AGREE_H_
#define SEALPOINT_LIB_COMM_AGREE_H_

#include <string_view>

#include "sealpoint/bytes.h"
#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::comm {

// True if the communicator failed (Comm, Timeout), so that the ranks may no longer be in step.
// After that no collective is safe: it may pair with another one of a rank that is ahead or behind.
bool IsCommFailure(const Status& status);

// Adds the operation in progress, such as "save of step 7 to runs/a, phase agree", and this rank to
// a failure of the communicator. Returns other statuses unchanged.
Status DescribeCommFailure(const Communicator& comm, Status status, std::string_view during);

// One Broadcast of either a value or the error that `root` has instead. `at_root` is read on the
// root only. Every rank gets the same result; an error has the root's rank and host as its place.
// All ranks must call it.
Result<Bytes> BroadcastResult(Communicator& comm, int root, Result<Bytes> at_root);

// AgreeOnStatus with the two kinds of failure apart.
struct Agreement {
  Status status{};  // that of all ranks, if the communicator did not fail
  Status broken{};  // failure of the communicator, regardless of the local status
};
Agreement Agree(Communicator& comm, const Status& local_status);

}  // namespace sealpoint::internal::comm

#endif  // SEALPOINT_LIB_COMM_AGREE_H_
