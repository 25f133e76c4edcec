// SPDX-License-Identifier: Apache-2.0
#include "lib/repack/write_batch.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/convert/element_converter.h"
#include "lib/repack/average.h"

namespace sealpoint::internal::repack {
namespace {

using tensor_stream::Piece;
using tensor_stream::PlaneSource;

// The planes of a piece: the elements of its first source, or their sum; and those of another
// source, or the bytes to write.
class Planes {
 public:
  Planes(const RewriteJob& job, const Piece& piece, std::byte* first, std::byte* second)
      : job_(job),
        piece_(piece),
        task_(job.tensors[piece.tensor]),
        first_(first),
        second_(second) {}

  // Takes up what was loaded from this source.
  Status Combine(std::size_t source) const {
    const bool is_first = source == task_.sources.front();
    const std::uint64_t size = piece_.held_bytes;
    if (task_.accumulator && is_first) {
      ScaleBy(job_.weights[source], *task_.accumulator, first_, size);
    } else if (task_.accumulator) {
      AddScaled(job_.weights[source], *task_.accumulator, second_, first_, size);
    } else if (!is_first && std::memcmp(first_, second_, size) != 0) {
      return MakeError(Code::kMismatch, "elements of ", piece_.region.ToString(),
                       " differ from those in ", job_.sources[task_.sources.front()]->path(),
                       ", expected the same: ", DTypeName(task_.spec.dtype),
                       " is not averaged here")
          .AtTensor(task_.spec.name)
          .AtPath(job_.sources[source]->path());
    }
    return {};
  }

  // The bytes to be written. A sum in f64 of a dtype below f32 is rounded to f32 first, as PyTorch
  // does, whose results these are.
  const std::byte* Finish() const {
    if (!task_.accumulator || *task_.accumulator == task_.spec.dtype) return first_;
    const bool is_complex = *task_.accumulator == DType::kComplex128;
    const bool has_step = (is_complex && task_.spec.dtype == DType::kComplex32) ||
                          (*task_.accumulator == DType::kF64 && task_.spec.element_size < 4);
    if (!has_step) {
      Round(*task_.accumulator, first_, task_.spec.dtype, second_);
      return second_;
    }
    const DType step = is_complex ? DType::kComplex64 : DType::kF32;
    Round(*task_.accumulator, first_, step, second_);
    Round(step, second_, task_.spec.dtype, first_);
    return first_;
  }

 private:
  void Round(DType from, const std::byte* source, DType to, std::byte* target) const {
    const auto converter = convert::ElementConverter::Make(from, {to, Rounding::kNearestEven});
    converter->Convert(source, DTypeSizeBytes(from), target, DTypeSizeBytes(to),
                       piece_.region.element_count());
  }

  const RewriteJob& job_;
  const Piece& piece_;
  const TensorTask& task_;
  std::byte* const first_;
  std::byte* const second_;  // null if there is one plane
};

// The plane for the elements of this source. Empty if it lacks the tensor.
std::optional<PlaneSource> PlaneFrom(std::size_t source, const TensorTask& task) {
  if (!std::ranges::binary_search(task.sources, source)) return {};
  PlaneSource plane{.tensor = task.spec.name,
                    .plane = source == task.sources.front() ? std::size_t{0} : 1};
  if (task.accumulator && *task.accumulator != task.spec.dtype) {
    plane.convert = Conversion{*task.accumulator, Rounding::kNearestEven};
  }
  return plane;
}

}  // namespace

Result<std::vector<Piece>> CutIntoPieces(const RewriteJob& job,
                                         const tensor_stream::PieceLimits& limits) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < job.tensors.size(); ++i) {
    const TensorTask& task = job.tensors[i];
    if (Region::Whole(task.spec.shape).element_count() == 0) continue;
    const Checkpoint& source = *job.sources[task.sources.front()];
    const tensor_stream::ElementUse use{.tensor = i,
                                        .stored_size = task.spec.element_size,
                                        .held_size = task.held_size(),
                                        .plane_count = task.plane_count()};
    SEALPOINT_RETURN_IF_ERROR(AppendShards(source, *source.FindTensor(task.spec.name), use,
                                           task.spec.chunk_size_bytes, limits, pieces));
  }
  return pieces;
}

Status WriteBatch(const RewriteJob& job, const tensor_stream::Batch& batch, BlobWriter& writer) {
  std::vector<Planes> planes;
  for (std::size_t i = 0; i < batch.pieces().size(); ++i) {
    const Piece& piece = batch.pieces()[i];
    std::byte* const first = batch.bytes(i, 0).data();
    planes.emplace_back(job, piece, first,
                        piece.plane_count > 1 ? batch.bytes(i, 1).data() : nullptr);
  }
  // In the order of the sources, so that a sum is always the same.
  for (std::size_t source = 0; source < job.sources.size(); ++source) {
    SEALPOINT_RETURN_IF_ERROR(batch.Load(*job.sources[source], [&](const Piece& piece) {
      return PlaneFrom(source, job.tensors[piece.tensor]);
    }));
    for (std::size_t i = 0; i < planes.size(); ++i) {
      const TensorTask& task = job.tensors[batch.pieces()[i].tensor];
      const bool has_it = std::ranges::binary_search(task.sources, source);
      if (has_it) SEALPOINT_RETURN_IF_ERROR(planes[i].Combine(source));
    }
  }
  for (std::size_t i = 0; i < planes.size(); ++i) {
    const Piece& piece = batch.pieces()[i];
    SEALPOINT_RETURN_IF_ERROR(writer.Add(job.tensors[piece.tensor].spec, piece.region,
                                         MemoryView::Host(planes[i].Finish(), piece.raw_bytes)));
  }
  return {};
}

}  // namespace sealpoint::internal::repack
