// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMM_AGREE_H_
#define SEALPOINT_LIB_COMM_AGREE_H_

#include <string_view>

#include "sealpoint/bytes.h"
#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// The communicator failed (Comm, Timeout), so that the ranks may disagree on where they are.
bool IsCommFailure(const Status& status);

// Says of a failure of the communicator during what it happened, such as "save of step 7 to
// runs/a, phase agree", and on which rank. Other statuses are returned as they are.
Status DescribeCommFailure(const Communicator& comm, Status status, std::string_view during);

// One Broadcast of either a value or the error that `root` met instead: `at_root` is read on the
// root alone and every rank gets the same, an error with the root's rank and host as its place.
Result<Bytes> BroadcastResult(Communicator& comm, int root, Result<Bytes> at_root);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_COMM_AGREE_H_
