// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PLACEMENT_H_
#define SEALPOINT_PLACEMENT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sealpoint/export.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/mesh.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

// Placement rules: they describe a tensor on a mesh and generate its regions. Only regions are
// declared, checked and stored. Every rank evaluates the rules locally without communication, in
// time that does not depend on the number of ranks (except for the list of replicas).

namespace sealpoint {

// Division of n positions into k pieces.
enum class SplitRule : std::uint8_t {
  // As torch.chunk, DTensor and FSDP2: pieces of ceil(n / k); the last ones are shorter or empty.
  kCeilChunk,
  // Sizes differ by at most one, with the longer pieces first.
  kEven,
};

// All ranks along the axis hold the same data.
struct Replicate {
  std::string axis{};
  friend bool operator==(const Replicate&, const Replicate&) = default;
};

// Only ranks with the caller's coordinate on the axis hold the tensor, for example a pipeline
// stage, or an expert with a tensor of its own.
struct HoldHere {
  std::string axis{};
  friend bool operator==(const HoldHere&, const HoldHere&) = default;
};

// Splits dimension `dim`, as left by earlier rules, into one piece per rank of the axis. Several
// rules may split one dimension: tensor-parallel first and FSDP second is [_StridedShard, Shard] in
// DTensor.
struct Shard {
  int dim = 0;
  std::string axis{};
  SplitRule rule = SplitRule::kCeilChunk;
  // Number of adjacent positions to keep together, such as the rows of an attention head or of a
  // query group. Must divide the dimension.
  std::uint64_t unit = 1;
  friend bool operator==(const Shard&, const Shard&) = default;
};

// Splits each section of the dimension separately (q, k, v; gate, up), given the sections' lengths.
// A rank holds its pieces in sequence, as several boxes.
struct ShardSections {
  int dim = 0;
  std::string axis{};
  std::vector<std::uint64_t> sections{};
  SplitRule rule = SplitRule::kCeilChunk;
  friend bool operator==(const ShardSections&, const ShardSections&) = default;
};

// DTensor's _StridedShard: divides the dimension into `split_factor` chunks and splits each of them
// along the axis. A rank holds its pieces in sequence.
struct StridedShard {
  int dim = 0;
  std::string axis{};
  std::uint64_t split_factor = 1;
  friend bool operator==(const StridedShard&, const StridedShard&) = default;
};

// Pads the dimension to `size` positions; padding is never stored. An example is a vocabulary
// padded for tensor parallelism. Must precede the rules that split.
struct Pad {
  int dim = 0;
  std::uint64_t size = 0;
  friend bool operator==(const Pad&, const Pad&) = default;
};

// Flattens the remainder of earlier rules and splits it over all ranks of these axes, the last axis
// fastest, into ranges of ceil(elements / ranks) rounded up to `unit`: ZeRO, FSDP1, Megatron's
// distributed optimizer. Must be the last rule that splits. Each dimension other than the first
// must then be a single unpadded piece.
struct ShardFlat {
  std::vector<std::string> axes{};
  std::uint64_t unit = 1;
  friend bool operator==(const ShardFlat&, const ShardFlat&) = default;
};

using PlacementRule =
    std::variant<Replicate, HoldHere, Shard, ShardSections, StridedShard, Pad, ShardFlat>;
// Rules in order of application. Every axis of the mesh must be named exactly once, because an
// omitted axis would silently create replicas.
using Placement = std::vector<PlacementRule>;

// Returns for example "shard(dim 0, tensor, even)", the form stored as provenance.
SEALPOINT_EXPORT std::string ToString(const PlacementRule& rule);
SEALPOINT_EXPORT std::vector<std::string> ToStrings(const Placement& placement);

// Parses the form written by ToString or by a person. Axis names must not contain blanks, commas,
// parentheses or '='. Additional blanks are ignored; the split rule and a unit of 1 may be omitted.
// PlaceTensor checks whether the rule fits a mesh and a tensor. Accepts any text, in time and
// memory linear in its length. Errors: InvalidArgument, with the reason.
SEALPOINT_EXPORT Result<PlacementRule> ParsePlacementRule(std::string_view text);
SEALPOINT_EXPORT Result<Placement> ParsePlacement(std::span<const std::string> texts);

// A region of the global tensor and its position in the local tensor.
struct LocalPart {
  Region region{};
  // Elements from the start of the local tensor to the first element of the region's box (of its
  // run if there are no strides).
  std::uint64_t local_offset = 0;
  // In elements, one per dimension; empty: the run is dense.
  std::vector<std::uint64_t> local_strides{};
  friend bool operator==(const LocalPart&, const LocalPart&) = default;
};

// Layout of one tensor on one rank.
struct LocalLayout {
  // Extents of the local tensor, row-major and dense, including padding; one dimension if it is
  // flat.
  Shape shape{};
  // In local order; empty if this rank has no element.
  std::vector<LocalPart> parts{};
  // All ranks with exactly these parts, including this one, ascending.
  std::vector<int> replicas{};
  friend bool operator==(const LocalLayout&, const LocalLayout&) = default;
};

// Computes the layout on one rank of a tensor with this shape. Local; the results of all ranks are
// consistent. Errors: InvalidArgument (a rule that does not fit tensor or mesh: unknown or repeated
// axis, no such dimension, sections that do not add up, a unit that does not divide, padding below
// the extent, a flat split of non-contiguous elements), LimitExceeded (sizes beyond 64 bits).
SEALPOINT_EXPORT Result<LocalLayout> PlaceTensor(const Mesh& mesh, int rank, const Shape& shape,
                                                 const Placement& placement);

// Memory of one part of the dense local tensor `local`, for Sources::Bind and ReadRequest::Add. A
// part beyond the end of `local` gets memory that is too small, so that these calls refuse it.
SEALPOINT_EXPORT MemoryView SourceOf(const LocalPart& part, const MemoryView& local,
                                     std::uint32_t element_size_bytes);
SEALPOINT_EXPORT MutableMemoryView DestinationOf(const LocalPart& part,
                                                 const MutableMemoryView& local,
                                                 std::uint32_t element_size_bytes);

// A tensor, or its tensor-parallel part, in a flat bucket. `box` starts `offset` elements after the
// start of the bucket.
struct BucketMember {
  Box box{};
  std::uint64_t offset = 0;
  friend bool operator==(const BucketMember&, const BucketMember&) = default;
};

struct BucketPart {
  std::size_t member = 0;
  Region region{};
  std::uint64_t local_offset = 0;  // elements after the start of this rank's range
  friend bool operator==(const BucketPart&, const BucketPart&) = default;
};

// Splits a flat buffer of `size` elements with several tensors into `count` equal ranges of
// ceil(size / count), and returns the parts of each tensor in range `index`. Elements outside the
// members are padding. Errors: InvalidArgument (members that overlap, are empty or exceed the size;
// index not below count).
SEALPOINT_EXPORT Result<std::vector<BucketPart>> PlaceBucket(std::span<const BucketMember> members,
                                                             std::uint64_t size,
                                                             std::uint64_t count,
                                                             std::uint64_t index);

// Locates several tensors interleaved in one fused local buffer. Each group of the buffer holds
// `rows[c]` rows of tensor c, for all c in sequence (q, k and v of a query group in Megatron's
// linear_qkv; gate and up with groups of a tensor-parallel rank). The buffer has groups
// [first_group, first_group + group_count). Returns each tensor's parts in this buffer; a tensor
// has the rows of all groups, and its other extents are `row_shape`. Errors: InvalidArgument (no
// rows), LimitExceeded (sizes beyond 64 bits).
SEALPOINT_EXPORT Result<std::vector<std::vector<LocalPart>>> PlaceFused(
    std::span<const std::uint64_t> rows, const Shape& row_shape, std::uint64_t first_group,
    std::uint64_t group_count);

}  // namespace sealpoint

#endif  // SEALPOINT_PLACEMENT_H_
