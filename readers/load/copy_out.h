// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_COPY_OUT_H_
#define SEALPOINT_READERS_LOAD_COPY_OUT_H_

#include "readers/load/copies_to_devices.h"
#include "readers/load/read_plan_data.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// Copies what the plan wants of a chunk's raw bytes to its destinations, in the dtype that each
// wants: to host memory at once, to that of devices by `devices`, which is there if the plan has
// such destinations. `raw_stays`: as CopiesToDevices::Copy says of raw bytes; else they are staged.
// Errors: Device; Mismatch, where an element has no counterpart in that dtype; the place has the
// tensor and, in a chunk without a codec, the offset of the element in the file. Later copies are
// left out then.
Status CopyOut(const ReadPlanData& plan, const PlanChunk& chunk, ByteSpan raw,
               CopiesToDevices* devices = nullptr, bool raw_stays = false);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_LOAD_COPY_OUT_H_
