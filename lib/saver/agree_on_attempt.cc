// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/agree_on_attempt.h"

#include <utility>

#include "lib/comm/agree.h"

namespace sealpoint::internal {
namespace {

// What a rank says that looks for the attempt's directory, or for a file in it, in vain.
bool SaysThatItIsGone(const Status& status) {
  return status.code() == Code::kNotFound || status.place().rule == "R-CMT-09";
}

}  // namespace

Status AgreeOnAttempt(Communicator& comm, const Status& local_status) {
  Agreement agreement = Agree(comm, local_status);
  if (agreement.broken.ok()) return std::move(agreement.status);
  const bool is_cause = !local_status.ok() && !SaysThatItIsGone(local_status);
  return is_cause ? local_status : std::move(agreement.broken);
}

}  // namespace sealpoint::internal
