// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_AGREE_ON_ATTEMPT_H_
#define SEALPOINT_LIB_SAVER_AGREE_ON_ATTEMPT_H_

#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// AgreeOnStatus for what this rank did in the directory of an attempt. After a failure of the
// communicator rank 0 waits for nobody and removes that directory. A rank that is behind then finds
// it gone, and gets the failure of the communicator, which is the cause of that, as its error.
Status AgreeOnAttempt(Communicator& comm, const Status& local_status);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_SAVER_AGREE_ON_ATTEMPT_H_
