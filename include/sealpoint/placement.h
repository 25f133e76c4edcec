// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PLACEMENT_H_
#define SEALPOINT_PLACEMENT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sealpoint/export.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

// Placement rules describe how a tensor is distributed over a mesh, and generate the tensor's
// regions. A save declares and checks only these regions; it stores the rules only as provenance.
// Every rank evaluates the rules locally, without communication. The evaluation time does not
// depend on the number of ranks, except for the time to list the replicas.

namespace sealpoint {

// Names and sizes of the axes, outermost first.
using MeshAxes = std::vector<std::pair<std::string, std::uint32_t>>;

// Ranks arranged on named axes. Rank numbers are row-major: the last axis changes fastest, as in
// torch's DeviceMesh. A job that orders its ranks differently must renumber them (MPI_Comm_split).
// A value type; const functions may be called from any thread.
class SEALPOINT_EXPORT Mesh {
 public:
  // A mesh of one rank, without axes.
  Mesh() = default;

  // Errors: InvalidArgument (an empty or repeated name, a size of 0, more than 2^31 - 1 ranks).
  static Result<Mesh> Create(MeshAxes axes);
  // Parses the command-line form "data=2,tensor=4". Errors: the errors of Create, and
  // InvalidArgument for text in any other form.
  static Result<Mesh> Parse(std::string_view text);

  const MeshAxes& axes() const { return axes_; }
  // Number of ranks: the product of the sizes.
  int size() const { return size_; }
  // Returns the position of an axis; nullopt if no axis has this name.
  std::optional<std::size_t> Find(std::string_view axis) const;

  // Returns one coordinate per axis. Errors: InvalidArgument (no such rank).
  Result<std::vector<std::uint32_t>> CoordinatesOf(int rank) const;
  // Errors: InvalidArgument (wrong number of coordinates; a coordinate that is not below the size
  // of its axis).
  Result<int> RankAt(std::span<const std::uint32_t> coordinates) const;

  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  MeshAxes axes_;
  int size_ = 1;
};

// Rule for dividing n positions into k pieces.
enum class SplitRule : std::uint8_t {
  // As in torch.chunk, DTensor and FSDP2: pieces have ceil(n / k) positions; the last pieces may be
  // shorter or empty.
  kCeilChunk,
  // The lengths of the pieces differ by at most one position; the longer pieces come first.
  kEven,
};

// All ranks along the axis hold the same data.
struct Replicate {
  std::string axis{};
  friend bool operator==(const Replicate&, const Replicate&) = default;
};

// Only ranks with the caller's coordinate on the axis hold the tensor. Use this rule for a tensor
// that belongs to one pipeline stage or to one expert.
struct LocalOnly {
  std::string axis{};
  friend bool operator==(const LocalOnly&, const LocalOnly&) = default;
};

// Divides the tensor, or the part of it that earlier rules selected, along dimension `dim` into one
// piece per rank of the axis. Several rules may split the same dimension, for example a rule for
// tensor parallelism and a later rule for FSDP. DTensor expresses this combination as
// [_StridedShard, Shard].
struct Shard {
  int dim = 0;
  std::string axis{};
  SplitRule rule = SplitRule::kCeilChunk;
  // Number of adjacent positions to keep together, such as the rows of an attention head or of a
  // query group. The number of positions to split must be a multiple of `unit`.
  std::uint64_t unit = 1;
  friend bool operator==(const Shard&, const Shard&) = default;
};

// Splits each section of the dimension separately. Examples of sections are q, k and v, or gate and
// up. `sections` has the length of each section. The local tensor of a rank contains the rank's
// pieces one after another, as several boxes.
struct ShardSections {
  int dim = 0;
  std::string axis{};
  std::vector<std::uint64_t> sections{};
  SplitRule rule = SplitRule::kCeilChunk;
  friend bool operator==(const ShardSections&, const ShardSections&) = default;
};

// DTensor's _StridedShard: divides the dimension into `split_factor` chunks and splits each chunk
// along the axis. The local tensor of a rank contains the rank's pieces one after another.
struct StridedShard {
  int dim = 0;
  std::string axis{};
  std::uint64_t split_factor = 1;
  friend bool operator==(const StridedShard&, const StridedShard&) = default;
};

// Pads the dimension to `size` positions, for example to pad a vocabulary for tensor parallelism.
// Padding is never stored. This rule must precede the rules that split.
struct Pad {
  int dim = 0;
  std::uint64_t size = 0;
  friend bool operator==(const Pad&, const Pad&) = default;
};

// Flattens the tensor, or the part of it that earlier rules selected, and splits the result over
// all ranks of these axes. The coordinate on the last axis changes fastest. Each range has
// ceil(elements / ranks) elements, rounded up to a multiple of `unit`. ZeRO, FSDP1 and Megatron's
// distributed optimizer divide tensors in this way. This rule must be the last rule that splits. In
// every dimension except the first, the part that earlier rules selected must be a single unpadded
// piece.
struct ShardFlat {
  std::vector<std::string> axes{};
  std::uint64_t unit = 1;
  friend bool operator==(const ShardFlat&, const ShardFlat&) = default;
};

using PlacementRule =
    std::variant<Replicate, LocalOnly, Shard, ShardSections, StridedShard, Pad, ShardFlat>;
// Rules in the order in which they are applied. Every axis of the mesh must be named exactly once,
// because an omitted axis would silently create replicas.
using Placement = std::vector<PlacementRule>;

// Returns the text of a rule, for example "shard(dim 0, tensor, even)", as it is stored in the
// provenance.
SEALPOINT_EXPORT std::string ToString(const PlacementRule& rule);
SEALPOINT_EXPORT std::vector<std::string> ToStrings(const Placement& placement);

// Parses a rule that was written by ToString or by a person. Axis names must not contain blanks,
// commas, parentheses or '='. Additional blanks are ignored; the split rule and a unit of 1 may be
// omitted. PlaceTensor checks later whether the rule fits a mesh and a tensor. Any text is safe to
// parse: time and memory are linear in its length. Errors: InvalidArgument, with the reason.
SEALPOINT_EXPORT Result<PlacementRule> ParsePlacementRule(std::string_view text);
SEALPOINT_EXPORT Result<Placement> ParsePlacement(std::span<const std::string> texts);

// A region of the global tensor and its position in the local tensor.
struct LocalPart {
  Region region{};
  // Position of the region in the local tensor, in elements from the start. If there are strides,
  // the offset is the position of the first element of the region's box. If there are no strides,
  // the offset is the position of the first element of the run.
  std::uint64_t local_offset = 0;
  // Strides in elements, one per dimension. Empty if the run is dense.
  std::vector<std::uint64_t> local_strides{};
  friend bool operator==(const LocalPart&, const LocalPart&) = default;
};

// Layout of one tensor on one rank.
struct LocalLayout {
  // Extents of the local tensor, including padding. The local tensor is row-major and dense. A flat
  // local tensor has one dimension.
  Shape shape{};
  // Parts in the order of the local tensor; empty if this rank has no elements.
  std::vector<LocalPart> parts{};
  // All ranks that have exactly these parts, including this rank, in ascending order.
  std::vector<int> replicas{};
  friend bool operator==(const LocalLayout&, const LocalLayout&) = default;
};

// Computes the layout that a tensor of this shape has on one rank. Local, without communication.
// The results of all ranks are consistent. Errors: InvalidArgument (a rule does not fit the tensor
// or the mesh: an unknown or repeated axis, no such dimension, sections that do not add up, a unit
// that does not divide the dimension, padding below the extent, a flat split of non-contiguous
// elements), LimitExceeded (sizes beyond 64 bits).
SEALPOINT_EXPORT Result<LocalLayout> PlaceTensor(const Mesh& mesh, int rank, const Shape& shape,
                                                 const Placement& placement);

// Returns a view of the memory of one part of the dense local tensor `local`, for Sources::Bind and
// ReadRequest::Add. If the part extends beyond the end of `local`, the view is too small for the
// part, so Bind or Plan refuses the view.
SEALPOINT_EXPORT MemoryView SourceOf(const LocalPart& part, const MemoryView& local,
                                     std::uint32_t element_size_bytes);
SEALPOINT_EXPORT MutableMemoryView DestinationOf(const LocalPart& part,
                                                 const MutableMemoryView& local,
                                                 std::uint32_t element_size_bytes);

// One member of a flat bucket: a whole tensor, or the tensor-parallel part of a tensor. `box`
// starts `offset` elements after the start of the bucket.
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

// Splits a bucket, a flat buffer of `size` elements for several tensors, into `count` equal ranges
// of ceil(size / count) elements. Returns the part of each member that lies in range number
// `index`. Elements outside the members are padding. Errors: InvalidArgument (members that overlap,
// are empty or extend beyond `size`; `index` is not below `count`).
SEALPOINT_EXPORT Result<std::vector<BucketPart>> PlaceBucket(std::span<const BucketMember> members,
                                                             std::uint64_t size,
                                                             std::uint64_t count,
                                                             std::uint64_t index);

}  // namespace sealpoint

#endif  // SEALPOINT_PLACEMENT_H_
