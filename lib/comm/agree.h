// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMM_AGREE_H_
#define SEALPOINT_LIB_COMM_AGREE_H_

#include "sealpoint/bytes.h"
#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// How a rank that fails keeps the others company: it hands in its error where the others hand in
// success, and all go on with the same answer. All ranks call, whatever happened to them.

// Success where all ranks bring success. Else every rank gets the same Status: that of the lowest
// rank that failed, with its rank and host as the place. Costs one AllReduceMax of one number;
// only a failure costs a Broadcast as well.
// Where the communicator itself fails, each rank returns its own error, or that of the communicator
// if it had none; then the ranks may differ.
Status AgreeOnStatus(Communicator& comm, const Status& mine);

// One Broadcast of either a value or the error that `root` met instead: `at_root` is read on the
// root alone and every rank gets the same, an error with the root's rank and host as its place.
Result<Bytes> BroadcastResult(Communicator& comm, int root, Result<Bytes> at_root);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_COMM_AGREE_H_
