// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMM_STATUS_CODEC_H_
#define SEALPOINT_LIB_COMM_STATUS_CODEC_H_

#include <optional>

#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::comm {

// A Status as bytes between the ranks of one job, never in a file:
//   u8 code, u8 parts (1: offset, 2: rank, 4: unknown outcome), u64 offset, u64 rank, then message,
//   rule, path, tensor and host, each as u32 length and bytes; little-endian.
// A text of more than 64 KiB is cut. A host without a rank is dropped, since Status cannot hold it.
Bytes EncodeStatus(const Status& status);

// Empty if the bytes are not exactly one encoded Status with a known code.
std::optional<Status> DecodeStatus(ByteSpan bytes);

}  // namespace sealpoint::internal::comm

#endif  // SEALPOINT_LIB_COMM_STATUS_CODEC_H_
