// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMPARE_PIECES_H_
#define SEALPOINT_LIB_COMPARE_PIECES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/pipeline/thread_pool.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/compare.h"

namespace sealpoint::internal::compare {

// Elements of a tensor that are read at once.
struct TensorPiece {
  std::size_t tensor = 0;
  Region region{};
  std::uint64_t size_bytes = 0;
};

// A block of the content digest: pieces of whole tensors are whole blocks, except for the last.
inline constexpr std::uint64_t kBlockBytes = 64 * kKiB;

// Appends the region in pieces, in its order: runs of at most 64 MiB.
void AppendPieces(std::size_t tensor, const TensorInfo& info, const Region& region,
                  std::vector<TensorPiece>& pieces);

// All of these tensors.
std::vector<TensorPiece> PiecesOf(const Checkpoint& checkpoint,
                                  std::span<const std::size_t> tensors);

std::uint64_t BytesOf(std::span<const TensorPiece> pieces);

// Small neighbours are read together: [first, second) of the pieces.
using PieceBatch = std::pair<std::size_t, std::size_t>;
std::vector<PieceBatch> BatchesOf(std::span<const TensorPiece> pieces);

// A checkpoint and its tensors to read.
struct Side {
  const Checkpoint& checkpoint;
  // By the number in a TensorPiece that of the tensor here; null: the same.
  const std::vector<std::size_t>* numbers = nullptr;
};
// Memory that begins at a page: the system copies to other addresses at a third of the speed.
class PieceMemory {
 public:
  Status Reserve(std::uint64_t size_bytes);
  MutableByteSpan bytes();

 private:
  Bytes bytes_;
};
// Number of threads for kThreadsAuto.
inline constexpr int kThreadsForAuto = 1;

// Reads a batch to `memory`, one piece after the other.
Status ReadBatch(const Side& side, std::span<const TensorPiece> pieces, PieceMemory& memory);

// Tells the caller of the options how far it is.
class ContentProgress {
 public:
  using Callback = std::function<void(std::uint64_t bytes_done, std::uint64_t bytes_total)>;
  ContentProgress(const Callback& callback, std::uint64_t bytes_total)
      : callback_(callback), bytes_total_(bytes_total) {}
  // Calls may overlap. Errors: Cancelled (the callback threw).
  Status Add(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_done_ += bytes;
    if (!callback_) return {};
    try {
      callback_(bytes_done_, bytes_total_);
    } catch (const std::exception& error) {
      return MakeError(Code::kCancelled, "on_progress threw: ", error.what());
    } catch (...) {
      return MakeError(Code::kCancelled, "on_progress threw");
    }
    return {};
  }

 private:
  const Callback& callback_;
  const std::uint64_t bytes_total_;
  std::mutex mutex_;
  std::uint64_t bytes_done_ = 0;
};

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

// Reads the pieces from each side and calls `work(piece, bytes of each side)` on several threads,
// then `take(piece, result)` for each piece, in their order.
template <typename T, std::size_t kSides, typename Work, typename Take>
Status ForEachPiece(const std::array<Side, kSides>& sides, std::span<const TensorPiece> pieces,
                    int threads, ContentProgress& progress, const Work& work, const Take& take) {
  SEALPOINT_RETURN_IF_ERROR(pipeline::CheckThreads("threads", threads));
  threads = pipeline::ChosenThreads(threads, kThreadsForAuto);
  const std::vector<PieceBatch> batches = BatchesOf(pieces);
  std::vector<std::array<PieceMemory, kSides>> memory(static_cast<std::size_t>(threads));
  InOrder<std::vector<T>> results([&](std::size_t batch, std::vector<T> some) {
    for (std::size_t i = 0; i < some.size(); ++i) {
      take(pieces[batches[batch].first + i], std::move(some[i]));
    }
  });
  return pipeline::ParallelFor(
      threads, batches.size(), [&](int thread, std::size_t number) -> Status {
        const auto [first, end] = batches[number];
        const auto batch = pieces.subspan(first, end - first);
        auto& own = memory[static_cast<std::size_t>(thread)];
        for (std::size_t side = 0; side < kSides; ++side) {
          SEALPOINT_RETURN_IF_ERROR(ReadBatch(sides[side], batch, own[side]));
        }
        std::vector<T> some;
        std::uint64_t offset = 0;
        for (const TensorPiece& piece : batch) {
          std::array<ByteSpan, kSides> parts;
          for (std::size_t side = 0; side < kSides; ++side) {
            parts[side] = own[side].bytes().subspan(offset, piece.size_bytes);
          }
          some.push_back(work(piece, parts));
          offset += piece.size_bytes;
        }
        SEALPOINT_RETURN_IF_ERROR(progress.Add(offset));
        results.Put(number, std::move(some));
        return {};
      });
}

// The tensors selected by the options, ascending.
Result<std::vector<std::size_t>> SelectTensors(const Checkpoint& checkpoint,
                                               const ContentOptions& options);

}  // namespace sealpoint::internal::compare

#endif  // SEALPOINT_LIB_COMPARE_PIECES_H_
