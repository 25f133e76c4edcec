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

// How a tensor is placed on a mesh, as rules that make regions. The regions are the truth: they are
// what is declared, proven and stored. The rules are a convenience that every rank evaluates for
// itself without communication, in time that does not depend on the number of ranks (but for the
// list of replicas).

namespace sealpoint {

// How n positions are cut into k pieces.
enum class SplitRule : std::uint8_t {
  // As torch.chunk, DTensor and FSDP2: pieces of ceil(n / k), the last ones shorter or empty.
  kCeilChunk,
  // Sizes differ by at most one, the longer ones first.
  kEven,
};

// Every rank along the axis holds the same.
struct Replicate {
  std::string axis{};
  friend bool operator==(const Replicate&, const Replicate&) = default;
};

// Only ranks with the caller's coordinate on the axis hold the tensor: a pipeline stage, or an
// expert that is a tensor of its own.
struct HoldHere {
  std::string axis{};
  friend bool operator==(const HoldHere&, const HoldHere&) = default;
};

// Dimension `dim` (of what earlier rules left) is cut into as many pieces as the axis has ranks.
// Several rules may cut one dimension: tensor-parallel first and FSDP second is what DTensor
// writes as [_StridedShard, Shard].
struct Shard {
  int dim = 0;
  std::string axis{};
  SplitRule rule = SplitRule::kCeilChunk;
  // Positions that stay together, such as the rows of one attention head or of one query group;
  // must divide the dimension.
  std::uint64_t unit = 1;
  friend bool operator==(const Shard&, const Shard&) = default;
};

// The dimension consists of sections of these lengths (q, k, v; gate, up), each of which is cut
// by itself; a rank holds its pieces one after the other: several boxes.
struct ShardSections {
  int dim = 0;
  std::string axis{};
  std::vector<std::uint64_t> sections{};
  SplitRule rule = SplitRule::kCeilChunk;
  friend bool operator==(const ShardSections&, const ShardSections&) = default;
};

// DTensor's _StridedShard: the dimension is first chunked into `split_factor` pieces, each of which
// is cut along the axis; a rank holds its pieces one after the other.
struct StridedShard {
  int dim = 0;
  std::string axis{};
  std::uint64_t split_factor = 1;
  friend bool operator==(const StridedShard&, const StridedShard&) = default;
};

// From here on the dimension counts as `size` positions, those past its extent being padding that
// is never stored (a vocabulary padded for tensor parallelism). Stands before the rules that cut.
struct Pad {
  int dim = 0;
  std::uint64_t size = 0;
  friend bool operator==(const Pad&, const Pad&) = default;
};

// What earlier rules left is flattened and cut over all ranks of these axes, the last axis fastest,
// into ranges of ceil(elements / ranks) rounded up to `unit`: ZeRO, FSDP1, Megatron's distributed
// optimizer. The last rule that cuts. Dimensions other than the first are whole boxes then.
struct ShardFlat {
  std::vector<std::string> axes{};
  std::uint64_t unit = 1;
  friend bool operator==(const ShardFlat&, const ShardFlat&) = default;
};

using PlacementRule =
    std::variant<Replicate, HoldHere, Shard, ShardSections, StridedShard, Pad, ShardFlat>;
// Applied in this order. Every axis of the mesh is named exactly once: a forgotten axis would
// silently make replicas.
using Placement = std::vector<PlacementRule>;

// "shard(dim 0, tensor, even)"; what is stored as provenance.
SEALPOINT_EXPORT std::string ToString(const PlacementRule& rule);
SEALPOINT_EXPORT std::vector<std::string> ToStrings(const Placement& placement);

// The inverse: the rule that a person or ToString wrote, for axes whose names have no blanks,
// commas, parentheses or '='. More blanks do not matter; the split rule and a unit of 1 may be left
// out. Whether the rule fits a mesh and a tensor is for PlaceTensor to say. Takes any text, in time
// and memory linear in its length. Errors: InvalidArgument, with what is wrong.
SEALPOINT_EXPORT Result<PlacementRule> ParsePlacementRule(std::string_view text);
SEALPOINT_EXPORT Result<Placement> ParsePlacement(std::span<const std::string> texts);

// A region of the global tensor, and its place in the local tensor.
struct LocalPart {
  Region region{};
  // Elements from the start of the local tensor to the first element of the region's box (of its
  // run if there are no strides).
  std::uint64_t local_offset = 0;
  // In elements, one per dimension; empty: the run is dense.
  std::vector<std::uint64_t> local_strides{};
  friend bool operator==(const LocalPart&, const LocalPart&) = default;
};

// What one rank has of one tensor.
struct LocalLayout {
  // Extents of the local tensor, row-major and dense, padding included; one dimension if it is
  // flat.
  Shape shape{};
  // In local order; none if this rank has no element.
  std::vector<LocalPart> parts{};
  // All ranks with exactly these parts, this one among them, ascending.
  std::vector<int> replicas{};
  friend bool operator==(const LocalLayout&, const LocalLayout&) = default;
};

// The layout of a tensor of this shape on one rank. Local; every rank gets what the others expect.
// Errors: InvalidArgument (a rule that does not fit tensor or mesh: unknown or repeated axis, no
// such dimension, sections that do not add up, a unit that does not divide, padding below the
// extent, a flat cut of what is not contiguous), LimitExceeded (sizes beyond 64 bits).
SEALPOINT_EXPORT Result<LocalLayout> PlaceTensor(const Mesh& mesh, int rank, const Shape& shape,
                                                 const Placement& placement);

// Memory of one part of the dense local tensor `local`, in the form that Sources::Bind and
// ReadRequest::Add take. A part beyond the end of `local` gets memory that is too small for it, so
// that they refuse it.
SEALPOINT_EXPORT MemoryView SourceOf(const LocalPart& part, const MemoryView& local,
                                     std::uint32_t element_size_bytes);
SEALPOINT_EXPORT MutableMemoryView DestinationOf(const LocalPart& part,
                                                 const MutableMemoryView& local,
                                                 std::uint32_t element_size_bytes);

// A tensor, or what tensor parallelism left of it, in a flat bucket: `box` of the tensor begins
// `offset` elements after the bucket's start.
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

// Several tensors in one flat buffer of `size` elements, cut into `count` equal ranges of
// ceil(size / count): what range `index` has of each. What no member covers is padding. Errors:
// InvalidArgument (members that overlap, are empty or pass the size; index not below count).
SEALPOINT_EXPORT Result<std::vector<BucketPart>> PlaceBucket(std::span<const BucketMember> members,
                                                             std::uint64_t size,
                                                             std::uint64_t count,
                                                             std::uint64_t index);

// Several tensors that are interleaved in one fused local buffer: each of its groups holds
// `rows[c]` rows of tensor c, for all c one after the other (q, k and v of a query group in
// Megatron's linear_qkv; gate and up with groups of a tensor-parallel rank). The local buffer has
// groups [first_group, first_group + group_count). Per tensor, whose rows are those of all groups
// and whose further extents are `row_shape`, its parts in this buffer. Errors: InvalidArgument (no
// rows), LimitExceeded (sizes beyond 64 bits).
SEALPOINT_EXPORT Result<std::vector<std::vector<LocalPart>>> PlaceFused(
    std::span<const std::uint64_t> rows, const Shape& row_shape, std::uint64_t first_group,
    std::uint64_t group_count);

}  // namespace sealpoint

#endif  // SEALPOINT_PLACEMENT_H_
