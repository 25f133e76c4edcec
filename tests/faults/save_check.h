// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_FAULTS_SAVE_CHECK_H_
#define SEALPOINT_TESTS_FAULTS_SAVE_CHECK_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/faults/fault_kinds.h"
#include "tests/faults/tiny_state.h"

namespace sealpoint::testing {

// True if files of a failed save may remain because one of these faults kept them from being
// removed.
bool BlocksCleanUp(const std::vector<StorageFault>& faults);

// Checks a save into `directory` that returned `status`, on the healthy storage below: success
// means that every byte is there; an unknown outcome means that nothing was removed, and that the
// checkpoint is whole or uncommitted; any other failure means that there is no checkpoint, and no
// file either if the fault allowed removing them. The error must be that of a fault.
void ExpectSoundOutcome(const std::shared_ptr<Storage>& storage, const std::string& directory,
                        const TinyState& state, const Status& status,
                        const std::vector<StorageFault>& faults);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_FAULTS_SAVE_CHECK_H_
