// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TENSOR_STREAM_STREAM_H_
#define SEALPOINT_LIB_TENSOR_STREAM_STREAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/macros.h"
#include "lib/pipeline/byte_meter.h"
#include "lib/tensor_stream/pieces.h"
#include "sealpoint/bytes.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/dtype.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"

// Reads tensors of checkpoints in pieces: in order, on several threads, in bounded memory, with
// progress and cancellation.

namespace sealpoint::internal::tensor_stream {

// Source of one plane of a piece: a tensor of the checkpoint that is loaded.
struct PlaneSource {
  std::string_view tensor{};
  std::size_t plane = 0;
  std::optional<Conversion> convert{};
};

// Consecutive pieces of a lane, in the memory of a thread.
class Batch {
 public:
  // `memory` has at least the memory_bytes of all pieces.
  Batch(std::span<const Piece> pieces, MutableByteSpan memory, int threads_per_load);

  std::span<const Piece> pieces() const { return pieces_; }
  // The held_bytes of a piece in one of its planes, aligned for any element.
  MutableByteSpan bytes(std::size_t piece, std::size_t plane) const;

  // Loads and verifies a plane of each piece for which `choose` returns a source. Errors: those of
  // Checkpoint::Load.
  using Choose = std::function<std::optional<PlaneSource>(const Piece& piece)>;
  Status Load(const Checkpoint& checkpoint, const Choose& choose) const;

 private:
  std::span<const Piece> pieces_;
  std::vector<MutableByteSpan> memory_;  // of each piece
  int threads_per_load_;
};

// Number of lanes for kThreadsAuto.
inline constexpr int kThreadsForAuto = 1;

struct StreamOptions {
  int threads = kThreadsAuto;     // lanes that are read at the same time
  std::uint64_t batch_bytes = 0;  // memory of a batch; a larger piece is a batch of its own
  int threads_per_load = 1;       // or kThreadsAuto
};

class PieceMemory;

// Reads a lane.
class LaneReader {
 public:
  LaneReader(Lane lane, const StreamOptions& options, PieceMemory& memory,
             pipeline::ByteMeter& meter)
      : lane_(lane), options_(options), memory_(memory), meter_(meter) {}

  Lane lane() const { return lane_; }
  // Calls `visit` with one batch after the other, and then adds the raw bytes of each to the meter.
  // The memory of a batch is valid until `visit` returns. Errors: those of `visit` and the meter,
  // Io (no memory).
  Status ForEachBatch(const std::function<Status(const Batch& batch)>& visit) const;

 private:
  const Lane lane_;
  const StreamOptions& options_;
  PieceMemory& memory_;
  pipeline::ByteMeter& meter_;
};

// Calls `read` for each lane, on several threads. The first error ends the rest. Errors:
// InvalidArgument (threads), those of `read`.
Status ReadLanes(const StreamOptions& options, std::span<const Lane> lanes,
                 pipeline::ByteMeter& meter,
                 const std::function<Status(std::size_t number, const LaneReader& reader)>& read);

// Takes results from several threads and hands them over in the order of their numbers, so that
// sums do not depend on timing. Thread safety: all functions.
template <typename T>
class InOrder {
 public:
  explicit InOrder(std::function<void(std::size_t, T)> take) : take_(std::move(take)) {}
  void Put(std::size_t number, T value) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(number, std::move(value));
    for (auto next = waiting_.begin(); next != waiting_.end() && next->first == next_;
         next = waiting_.erase(next), ++next_) {
      take_(next_, std::move(next->second));
    }
  }

 private:
  const std::function<void(std::size_t, T)> take_;
  std::mutex mutex_;
  std::map<std::size_t, T> waiting_;
  std::size_t next_ = 0;
};

// A checkpoint and its tensors to read.
struct Side {
  const Checkpoint& checkpoint;
  // Number of the tensor here, by Piece::tensor. Null: the same number.
  const std::vector<std::size_t>* numbers = nullptr;
};

// Loads plane `number` of all pieces from this side.
Status LoadSide(const Side& side, std::size_t number, const Batch& batch);

// Memory of a batch for each side.
inline constexpr std::uint64_t kSideBytes = 8 * kMiB;
// One lane per batch of small neighbours.
std::vector<Lane> LanePerBatch(std::span<const Piece> pieces, std::uint64_t batch_bytes);

// Reads the pieces, which have a plane per side, and calls `work(piece, bytes of each side)` on
// several threads, then `take(piece, result)` for each piece, in their order.
template <typename T, std::size_t kSides, typename Work, typename Take>
Status ForEachPiece(const std::array<Side, kSides>& sides, std::span<const Piece> pieces,
                    int threads, pipeline::ByteMeter& meter, const Work& work, const Take& take) {
  const StreamOptions options{.threads = threads, .batch_bytes = kSides * kSideBytes};
  const std::vector<Lane> lanes = LanePerBatch(pieces, options.batch_bytes);
  InOrder<std::vector<T>> results([&](std::size_t lane, std::vector<T> some) {
    for (std::size_t i = 0; i < some.size(); ++i) take(lanes[lane][i], std::move(some[i]));
  });
  return ReadLanes(options, lanes, meter, [&](std::size_t number, const LaneReader& reader) {
    std::vector<T> some;
    const auto visit = [&](const Batch& batch) -> Status {
      for (std::size_t side = 0; side < kSides; ++side) {
        SEALPOINT_RETURN_IF_ERROR(LoadSide(sides[side], side, batch));
      }
      for (std::size_t i = 0; i < batch.pieces().size(); ++i) {
        std::array<ByteSpan, kSides> bytes;
        for (std::size_t side = 0; side < kSides; ++side) bytes[side] = batch.bytes(i, side);
        some.push_back(work(batch.pieces()[i], bytes));
      }
      return {};
    };
    SEALPOINT_RETURN_IF_ERROR(reader.ForEachBatch(visit));
    results.Put(number, std::move(some));
    return Status();
  });
}

}  // namespace sealpoint::internal::tensor_stream

#endif  // SEALPOINT_LIB_TENSOR_STREAM_STREAM_H_
