// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_COPIES_TO_DEVICES_H_
#define SEALPOINT_READERS_LOAD_COPIES_TO_DEVICES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lib/device/device_runtime.h"
#include "readers/load/read_plan_data.h"
#include "readers/load/staged_copy.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// Pieces of staging memory for what cannot be copied from where it lies.
inline constexpr std::uint64_t kPieceMaxBytes = 4 * kMiB;
// The piece that the copies of a plan need; 0 where all can be copied from where the raw bytes lie.
// `raw_stays`: the raw bytes of chunks without a codec stay in staging memory until they are
// copied.
std::uint64_t PieceBytes(const ReadPlanData& plan, bool raw_stays);

// The copies of one thread to the devices of a plan: a queue for each of them, and a ring of
// staging pieces. A piece is filled again only when all that was copied out of it has arrived.
// Errors are Code::kDevice and name the tensor. Used by one thread at a time. Destruction waits
// until nothing runs any more; the memory must outlive it.
class CopiesToDevices {
 public:
  // Makes the queues and orders them behind the streams of the plan's destinations. Queues must not
  // outlive the runtime, nor this the plan.
  static Result<std::unique_ptr<CopiesToDevices>> Open(const ReadPlanData& plan,
                                                       DeviceRuntime& runtime);

  // The ring: equal pieces of at least PieceBytes each. Precondition: all copies are finished.
  void UsePieces(MutableByteSpan memory, std::size_t count);

  // Writes what `part` describes to staging memory.
  using Pack = std::function<Status(const StridedCopy& part, std::byte* staging)>;
  // Queues a copy of the chunk. `raw` is the chunk where it stays until Finish or until its fence
  // is passed: what lies in it as it is to arrive is copied from there. Else null: `pack` is called
  // for each part that fits a piece, in row-major order.
  Status Copy(const PlanChunk& chunk, const PlanCopy& copy, const std::byte* raw, const Pack& pack);
  // Queues digests behind all copies to that device; `to` as in CopyQueue::QueueDigests.
  Status QueueDigests(int device, std::uint32_t name, const DeviceChunks& chunks,
                      std::span<Digest> to);

  // A point behind all that is queued so far.
  using Fence = std::vector<std::uint64_t>;  // ticket by lane
  Status Mark(Fence& fence);
  // Waits until all before the fence is done. An empty one is behind nothing.
  Status WaitFor(const Fence& fence);
  // Waits until all is done.
  Status Finish();
  // The same, and until all is done behind which Open ordered the queues.
  Status WaitForCallers();

 private:
  // What is queued on one device.
  struct Ticket {
    std::uint64_t number = 0;
    std::uint32_t name = 0;  // of the tensor that was copied before it
  };
  struct Lane {
    std::unique_ptr<CopyQueue> queue;
    bool is_marked = true;   // nothing was queued behind the last ticket
    std::uint32_t name = 0;  // of the tensor that was queued last
    std::uint64_t last_ticket = 0;
    std::vector<Ticket> open{};
  };
  struct Piece {
    MutableByteSpan memory;
    Fence fence{};
  };

  explicit CopiesToDevices(const ReadPlanData& plan) : plan_(plan) {}
  Lane& LaneOf(int device);
  Status Named(std::uint32_t name, Status status) const;
  Status BeginTensor(Lane& lane, std::uint32_t name);
  Status MarkLane(Lane& lane);
  Status WaitForLane(Lane& lane, std::uint64_t ticket);
  Result<MutableByteSpan> Stage(std::uint64_t size_bytes);
  Status Place(Lane& lane, std::uint32_t name, const StridedCopy& place, const std::byte* staging,
               std::byte* target);

  const ReadPlanData& plan_;
  std::vector<Piece> pieces_;
  std::size_t piece_ = 0;         // the one that is being filled
  std::uint64_t piece_used_ = 0;  // bytes of it
  std::vector<Lane> lanes_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_LOAD_COPIES_TO_DEVICES_H_
