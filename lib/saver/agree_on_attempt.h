// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_AGREE_ON_ATTEMPT_H_
#define SEALPOINT_LIB_SAVER_AGREE_ON_ATTEMPT_H_

#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// AgreeOnStatus for work of this rank in the directory of an attempt. `is_missing`: the work failed
// because the directory, or a file of the attempt in it, does not exist. After a failure of the
// communicator rank 0 does not wait for the others and removes the directory, so a slower rank may
// find it missing; that rank gets the failure of the communicator, which is the cause, as its
// error.
Status AgreeOnAttempt(Communicator& comm, const Status& local_status, bool is_missing);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_AGREE_ON_ATTEMPT_H_
