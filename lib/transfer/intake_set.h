// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_INTAKE_SET_H_
#define SEALPOINT_LIB_TRANSFER_INTAKE_SET_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/transfer/device_intake.h"
#include "lib/transfer/encode_intake.h"
#include "lib/transfer/host_intake.h"
#include "lib/transfer/intake.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::transfer {

// Shards below this size share staging buffers: many are written at once. Larger ones of dense host
// memory need none in a file that is not direct.
inline constexpr std::uint64_t kBorrowedSizeMin = kMiB;

// Target of a file's stream when its first shard arrives.
enum class StreamTarget : std::uint8_t { kNone, kBufferedFile, kDirectFile };

// The intakes of one file.
class IntakeSet {
 public:
  IntakeSet(const IntakeContext& context, StreamTarget target);

  // The intake for a shard in this memory.
  Intake& Choose(const SourceReader& source, const ShardEncoding& encoding);

  // See Intake.
  Status Release();
  void BeforeWrites();
  Result<bool> CompleteOldest();
  Status Complete();

 private:
  CopyIntake copy_;
  BorrowIntake borrow_;
  SnapshotIntake snapshot_;
  DeviceIntake device_;
  EncodeIntake encode_;
  Intake& large_;  // for large dense host memory
  // Intakes that complete work later, in this order.
  const std::array<Intake*, 3> late_{&device_, &borrow_, &snapshot_};
};

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_INTAKE_SET_H_
