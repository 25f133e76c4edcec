// SPDX-License-Identifier: Apache-2.0
#include "lib/repack/write_part.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/convert/element_converter.h"
#include "lib/repack/average.h"

namespace sealpoint::internal::repack {
namespace {

// Some pieces, in memory.
class Batch {
 public:
  Batch(const RewriteJob& job, std::span<const ShardPiece> pieces, std::byte* memory) : job_(job) {
    for (const ShardPiece& piece : pieces) {
      pieces_.push_back({piece, job.tensors[piece.task], memory});
      memory += piece.memory_bytes;
    }
  }

  // In the order of the sources, so that a sum is always the same.
  Status Read() {
    for (std::size_t source = 0; source < job_.sources.size(); ++source) {
      SEALPOINT_RETURN_IF_ERROR(ReadFrom(source));
    }
    return {};
  }

  Status Write(BlobWriter& writer) const {
    for (const PlacedPiece& placed : pieces_) {
      const TensorTask& task = placed.task;
      SEALPOINT_RETURN_IF_ERROR(
          writer.Add(task.spec, placed.piece.region,
                     MemoryView::Host(BytesOf(placed), placed.piece.raw_bytes)));
    }
    return {};
  }

 private:
  struct PlacedPiece {
    const ShardPiece& piece;
    const TensorTask& task;
    std::byte* first;  // as read from the first source, or the sum

    std::uint64_t held_bytes() const { return piece.region.element_count() * task.held_size(); }
    std::byte* second() const { return first + piece.memory_bytes / 2; }
  };

  Status ReadFrom(std::size_t source) {
    ReadRequest request;
    std::vector<const PlacedPiece*> read;
    for (const PlacedPiece& placed : pieces_) {
      const TensorTask& task = placed.task;
      if (!std::ranges::binary_search(task.sources, source)) continue;
      std::byte* const to = source == task.sources.front() ? placed.first : placed.second();
      ReadItem item{.tensor = task.spec.name,
                    .region = placed.piece.region,
                    .destination = MutableMemoryView::Host(to, placed.held_bytes())};
      if (task.accumulator && *task.accumulator != task.spec.dtype) {
        item.convert = Conversion{*task.accumulator, Rounding::kNearestEven};
      }
      request.items.push_back(std::move(item));
      read.push_back(&placed);
    }
    if (read.empty()) return {};
    SEALPOINT_RETURN_IF_ERROR(
        job_.sources[source]->Load(request, LoadContract::Partial()).status());
    for (const PlacedPiece* const placed : read) {
      SEALPOINT_RETURN_IF_ERROR(Combine(source, *placed));
    }
    return {};
  }

  Status Combine(std::size_t source, const PlacedPiece& placed) const {
    const TensorTask& task = placed.task;
    const bool is_first = source == task.sources.front();
    const std::uint64_t size = placed.held_bytes();
    if (task.accumulator && is_first) {
      ScaleBy(job_.weights[source], *task.accumulator, placed.first, size);
    } else if (task.accumulator) {
      AddScaled(job_.weights[source], *task.accumulator, placed.second(), placed.first, size);
    } else if (!is_first && std::memcmp(placed.first, placed.second(), size) != 0) {
      return MakeError(Code::kMismatch, "elements of ", placed.piece.region.ToString(),
                       " differ from those in ", job_.sources[task.sources.front()]->path(),
                       ", expected the same: ", DTypeName(task.spec.dtype), " is not averaged here")
          .AtTensor(task.spec.name)
          .AtPath(job_.sources[source]->path());
    }
    return {};
  }

  // The bytes to be written. A sum in f64 of a dtype below f32 is rounded to f32 first, as PyTorch
  // does, whose results these are.
  static const std::byte* BytesOf(const PlacedPiece& placed) {
    const TensorTask& task = placed.task;
    if (!task.accumulator || *task.accumulator == task.spec.dtype) return placed.first;
    const bool is_complex = *task.accumulator == DType::kComplex128;
    const bool has_step = (is_complex && task.spec.dtype == DType::kComplex32) ||
                          (*task.accumulator == DType::kF64 && task.spec.element_size < 4);
    if (!has_step) {
      Round(placed, *task.accumulator, placed.first, task.spec.dtype, placed.second());
      return placed.second();
    }
    const DType step = is_complex ? DType::kComplex64 : DType::kF32;
    Round(placed, *task.accumulator, placed.first, step, placed.second());
    Round(placed, step, placed.second(), task.spec.dtype, placed.first);
    return placed.first;
  }

  static void Round(const PlacedPiece& placed, DType from, const std::byte* source, DType to,
                    std::byte* target) {
    const auto converter = convert::ElementConverter::Make(from, {to, Rounding::kNearestEven});
    converter->Convert(source, DTypeSizeBytes(from), target, DTypeSizeBytes(to),
                       placed.piece.region.element_count());
  }

  const RewriteJob& job_;
  std::vector<PlacedPiece> pieces_;
};

}  // namespace

Status WritePieces(const RewriteJob& job, std::span<const ShardPiece> pieces,
                   const PartMemory& memory, BlobWriter& writer) {
  std::vector<std::max_align_t> buffer;
  while (!pieces.empty()) {
    const auto now = pieces.first(CountThatFit(pieces, memory.size_bytes));
    std::uint64_t memory_bytes = 0;
    std::uint64_t raw_bytes = 0;
    for (const ShardPiece& piece : now) {
      memory_bytes += piece.memory_bytes;
      raw_bytes += piece.raw_bytes;
    }
    const std::uint64_t units = memory_bytes / sizeof(std::max_align_t);
    if (buffer.size() < units) buffer.resize(units);
    Batch batch(job, now, reinterpret_cast<std::byte*>(buffer.data()));
    SEALPOINT_RETURN_IF_ERROR(batch.Read());
    SEALPOINT_RETURN_IF_ERROR(batch.Write(writer));
    SEALPOINT_RETURN_IF_ERROR(memory.on_written(raw_bytes));
    pieces = pieces.subspan(now.size());
  }
  return {};
}

}  // namespace sealpoint::internal::repack
