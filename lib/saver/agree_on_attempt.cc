// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/agree_on_attempt.h"

#include <utility>

#include "lib/comm/agree.h"

namespace sealpoint::internal::saver {

Status AgreeOnAttempt(Communicator& comm, const Status& local_status, bool is_missing) {
  comm::Agreement agreement = comm::Agree(comm, local_status);
  if (agreement.broken.ok()) return std::move(agreement.status);
  return local_status.ok() || is_missing ? std::move(agreement.broken) : local_status;
}

}  // namespace sealpoint::internal::saver
