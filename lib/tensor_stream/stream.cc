// SPDX-License-Identifier: Apache-2.0
#include "lib/tensor_stream/stream.h"

#include <algorithm>
#include <memory>
#include <string>

#include "lib/container/resize.h"
#include "lib/pipeline/thread_pool.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/read_plan.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::tensor_stream {

// Memory of a thread that begins at a page and never shrinks.
class PieceMemory {
 public:
  Status Reserve(std::uint64_t size_bytes) {
    const std::uint64_t size = size_bytes + kDirectIoAlignmentBytes;
    return container::ResizeBytes(bytes_, std::max<std::uint64_t>(size, bytes_.size()));
  }
  MutableByteSpan bytes() {
    void* begin = bytes_.data();
    std::size_t size = bytes_.size();
    std::align(kDirectIoAlignmentBytes, 0, begin, size);
    return {static_cast<std::byte*>(begin), size};
  }

 private:
  Bytes bytes_;
};

Batch::Batch(std::span<const Piece> pieces, MutableByteSpan memory, int threads_per_load)
    : pieces_(pieces), threads_per_load_(threads_per_load) {
  memory_.reserve(pieces.size());
  for (const Piece& piece : pieces) {
    memory_.push_back(memory.first(piece.memory_bytes()));
    memory = memory.subspan(piece.memory_bytes());
  }
}

MutableByteSpan Batch::bytes(std::size_t piece, std::size_t plane) const {
  return memory_[piece].subspan(plane * pieces_[piece].plane_bytes, pieces_[piece].held_bytes);
}

Status Batch::Load(const Checkpoint& checkpoint, const Choose& choose) const {
  ReadRequest request;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const std::optional<PlaneSource> source = choose(pieces_[i]);
    if (!source) continue;
    request.items.push_back({.tensor = std::string(source->tensor),
                             .region = pieces_[i].region,
                             .destination = MutableMemoryView::Host(bytes(i, source->plane)),
                             .convert = source->convert});
  }
  if (request.items.empty()) return {};
  return checkpoint.Load(request, LoadContract::Partial(), {.threads = threads_per_load_}).status();
}

Status LaneReader::ForEachBatch(const std::function<Status(const Batch& batch)>& visit) const {
  for (Lane left = lane_; !left.empty();) {
    const Lane now = left.first(CountThatFit(left, options_.batch_bytes));
    std::uint64_t size = 0;
    for (const Piece& piece : now) size += piece.memory_bytes();
    SEALPOINT_RETURN_IF_ERROR(memory_.Reserve(size));
    SEALPOINT_RETURN_IF_ERROR(visit(Batch(now, memory_.bytes(), options_.threads_per_load)));
    SEALPOINT_RETURN_IF_ERROR(meter_.Add(RawBytes(now)));
    left = left.subspan(now.size());
  }
  return {};
}

Status ReadLanes(const StreamOptions& options, std::span<const Lane> lanes,
                 pipeline::ByteMeter& meter,
                 const std::function<Status(std::size_t number, const LaneReader& reader)>& read) {
  SEALPOINT_RETURN_IF_ERROR(pipeline::CheckThreads("threads", options.threads));
  const int threads = pipeline::ChosenThreads(options.threads, kThreadsForAuto);
  std::vector<PieceMemory> memory(static_cast<std::size_t>(threads));
  return pipeline::ParallelFor(
      threads, lanes.size(), [&](int thread, std::size_t number) -> Status {
        PieceMemory& own = memory[static_cast<std::size_t>(thread)];
        return read(number, LaneReader(lanes[number], options, own, meter));
      });
}

Status LoadSide(const Side& side, std::size_t number, const Batch& batch) {
  return batch.Load(side.checkpoint, [&](const Piece& piece) -> std::optional<PlaneSource> {
    const std::size_t tensor =
        side.numbers == nullptr ? piece.tensor : (*side.numbers)[piece.tensor];
    return PlaneSource{.tensor = side.checkpoint.tensor_name(tensor), .plane = number};
  });
}

std::vector<Lane> LanePerBatch(std::span<const Piece> pieces, std::uint64_t batch_bytes) {
  std::vector<Lane> lanes;
  while (!pieces.empty()) {
    const std::size_t count = CountThatFit(pieces, batch_bytes);
    lanes.push_back(pieces.first(count));
    pieces = pieces.subspan(count);
  }
  return lanes;
}

}  // namespace sealpoint::internal::tensor_stream
