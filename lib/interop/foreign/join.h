// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_JOIN_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_JOIN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/files.h"
#include "sealpoint/interop.h"

// Tensors that model-parallel ranks have parts of, or all of which they have whole.

namespace sealpoint::internal::foreign {

// The dimension along which the ranks divide a tensor.
enum class Cut : std::uint8_t { kRows = 0, kColumns = 1, kNone, kUnknown };

struct Division {
  Cut cut = Cut::kUnknown;
  std::uint64_t size = 0;  // whole size of the dimension; not used if it is not divided
  bool is_gated = false;   // each rank has its part of the gate, then its part of the other half
};

// Whether parts of two tensors have the same elements: the CRC-32 of both entries or, if an entry
// has more than the part, the bytes say so.
inline bool AreSame(const ForeignPart& a, const ForeignPart& b, DType dtype, SourceFiles& files) {
  constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 20;
  if (a.box != b.box || a.run != b.run || a.flips_sign != b.flips_sign) return false;
  const bool may_compare = a.crc && b.crc && a.entry_size == b.entry_size && a.begin == b.begin;
  if (may_compare && a.strides == b.strides && a.crc == b.crc) return true;
  if (a.strides || b.strides || a.run) return false;
  const std::uint64_t size = ElementCount(a.box.extent).value() * DTypeSizeBytes(dtype);
  const auto file = files.Open(files.PathOf(a.file));
  const auto other = files.Open(files.PathOf(b.file));
  for (std::uint64_t at = 0; at < size; at += kBlockBytes) {
    const std::uint64_t count = std::min(kBlockBytes, size - at);
    const std::uint64_t begin = b.entry_begin + b.begin + at;
    if (file->Read(a.entry_begin + a.begin + at, count) != other->Read(begin, count)) return false;
  }
  return true;
}

inline bool AreSame(const ForeignTensor& a, const ForeignTensor& b, SourceFiles& files) {
  return a.dtype == b.dtype &&
         std::ranges::equal(a.parts, b.parts, [&](const ForeignPart& x, const ForeignPart& y) {
           return AreSame(x, y, a.dtype, files);
         });
}

// Adds the part of a rank to a tensor.
inline void AddDivided(const ForeignTensor& shard, const Division& division, std::size_t rank,
                       ForeignTensor& joined) {
  const auto dim = static_cast<std::size_t>(division.cut);
  const std::uint64_t halves = division.is_gated ? 2 : 1;
  const std::uint64_t size = shard.shape[dim] / halves;
  for (std::uint64_t half = 0; half < halves; ++half) {
    for (ForeignPart part : shard.parts) {
      if (division.is_gated) {
        const std::uint64_t row = part.strides             ? part.strides->front()
                                  : shard.shape.size() > 1 ? shard.shape[1]
                                                           : 1;
        part.begin += half * size * row * DTypeSizeBytes(shard.dtype);
        part.box.extent[dim] = size;
      }
      part.box.offset[dim] += half * (division.size / 2) + rank * size;
      joined.parts.push_back(std::move(part));
    }
  }
}

// Joins a tensor of shards, which have `path` and `tensors`, by rank. Throws Corrupt if they do not
// fit. Preconditions: the first shard has the tensor, and its part has the divided dimension.
template <typename Shard>
ForeignTensor Joined(const std::string& name, const std::vector<Shard>& shards,
                     const Division& division, SourceFiles& files) {
  const ForeignTensor& first = shards.front().tensors.at(name);
  ForeignTensor joined{.dtype = first.dtype, .shape = first.shape};
  if (division.cut == Cut::kNone) joined.parts = first.parts;
  for (std::size_t rank = 0; rank < shards.size(); ++rank) {
    const auto found = shards[rank].tensors.find(name);
    if (found == shards[rank].tensors.end()) {
      FailAt(Code::kCorrupt, shards[rank].path, name, "the rank lacks the tensor of rank 0");
    }
    if (found->second.dtype != first.dtype || found->second.shape != first.shape) {
      FailAt(Code::kCorrupt, shards[rank].path, name,
             StrCat("the part has shape ", ShapeToString(found->second.shape), ", expected ",
                    ShapeToString(first.shape), " and the same dtype, as in rank 0"));
    }
    if (division.cut != Cut::kNone) {
      AddDivided(found->second, division, rank, joined);
    } else if (rank > 0 && !AreSame(first, found->second, files)) {
      FailAt(Code::kCorrupt, shards[rank].path, name,
             "all ranks have this tensor whole, and here it differs from rank 0");
    }
  }
  if (division.cut != Cut::kNone) {
    joined.shape[static_cast<std::size_t>(division.cut)] = division.size;
  }
  return joined;
}

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_JOIN_H_
