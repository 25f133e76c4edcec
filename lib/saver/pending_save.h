// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_PENDING_SAVE_H_
#define SEALPOINT_LIB_SAVER_PENDING_SAVE_H_

#include <memory>

#include "lib/saver/background_save.h"
#include "lib/saver/save_queue.h"
#include "sealpoint/saver.h"

namespace sealpoint::internal {

// What the user has of a save that was queued.
std::unique_ptr<PendingSave> MakePendingSave(std::shared_ptr<SaveQueue> queue,
                                             std::shared_ptr<BackgroundSave> save);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_SAVER_PENDING_SAVE_H_
