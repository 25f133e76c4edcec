// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_COPY_OUT_H_
#define SEALPOINT_READERS_LOAD_COPY_OUT_H_

#include "readers/load/copies_to_devices.h"
#include "readers/load/read_plan_data.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// Copies the requested parts of a chunk's raw bytes to their destinations, each in its dtype: to
// host memory at once, to device memory through `devices`, which must be given if the plan has such
// destinations. `raw_stays`: as CopiesToDevices::Copy says of raw bytes; else they are staged.
// Errors: Device; Mismatch if an element has no counterpart in the dtype; the place has the tensor
// and, in a chunk without a codec, the offset of the element in the file. Later copies are left out
// then.
Status CopyOut(const ReadPlanData& plan, const PlanChunk& chunk, ByteSpan raw,
               CopiesToDevices* devices = nullptr, bool raw_stays = false);

// The same from the requested bytes alone, which lie in `packed` without gaps, in the chunk's
// order. False if they must be put back into their places first: if several copies need the chunk,
// or one to a device or in another dtype.
bool CopyOutPacked(const ReadPlanData& plan, const PlanChunk& chunk, ByteSpan packed);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_LOAD_COPY_OUT_H_
