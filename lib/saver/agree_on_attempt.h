// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_AGREE_ON_ATTEMPT_H_
#define SEALPOINT_LIB_SAVER_AGREE_ON_ATTEMPT_H_

#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// AgreeOnStatus for what this rank did in the directory of an attempt. `is_missing`: it failed
// because the directory, or a file of the attempt in it, is not there. After a failure of the
// communicator rank 0 waits for no other rank and removes the directory, so that a slower rank then
// misses it; that rank gets the failure of the communicator, which is the cause, as its error.
Status AgreeOnAttempt(Communicator& comm, const Status& local_status, bool is_missing);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_AGREE_ON_ATTEMPT_H_
