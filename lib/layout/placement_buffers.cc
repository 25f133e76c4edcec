// SPDX-License-Identifier: Apache-2.0
//
// Tensors that share one local buffer, and views of parts of it.
#include <algorithm>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/layout/intervals.h"
#include "sealpoint/placement.h"

namespace sealpoint {

using internal::CheckedAdd;
using internal::CheckedMul;
using internal::InvalidArgument;
using internal::MakeError;
using internal::layout::Interval;

namespace {

// The memory of a part. If the part passes the end, the view has fewer bytes than it needs.
template <typename Byte>
BasicMemoryView<Byte> ViewOf(const LocalPart& part, BasicMemoryView<Byte> local,
                             std::uint32_t element_size) {
  const std::uint64_t size = local.is_plan_only ? ~std::uint64_t{0} : local.size_bytes;
  const std::uint64_t offset =
      std::min(CheckedMul<std::uint64_t>(part.local_offset, element_size).value_or(size), size);
  for (const std::uint64_t stride : part.local_strides) {
    local.strides_bytes.push_back(static_cast<std::int64_t>(stride * element_size));
  }
  if (!local.is_dense() || local.is_plan_only) {
    local.origin_bytes = offset;
    return local;
  }
  if (local.data != nullptr) local.data += offset;
  const auto needed = CheckedMul<std::uint64_t>(part.region.element_count(), element_size);
  local.size_bytes = std::min(needed.value_or(size), size - offset);
  return local;
}

// The flat positions that a member takes in the bucket.
Result<Interval> PositionsOf(const BucketMember& member, std::uint64_t bucket_size) {
  if (member.box.offset.size() != member.box.extent.size()) {
    return InvalidArgument("box has ", member.box.offset.size(), " offsets and ",
                           member.box.extent.size(), " extents, expected as many of each");
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t elements, ElementCount(member.box.extent));
  if (elements == 0) return InvalidArgument("member has no elements");
  if (!internal::RangeFits(member.offset, elements, bucket_size)) {
    return InvalidArgument("elements ", member.offset, " to ", member.offset, " + ", elements,
                           " exceed the bucket's ", bucket_size);
  }
  return Interval{member.offset, member.offset + elements};
}

Status CheckDisjoint(std::vector<Interval> taken) {
  std::sort(taken.begin(), taken.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < taken.size(); ++i) {
    if (taken[i].begin < taken[i - 1].end) {
      return InvalidArgument("two members overlap at element ", taken[i].begin, " of the bucket");
    }
  }
  return {};
}

}  // namespace

MemoryView SourceOf(const LocalPart& part, const MemoryView& local,
                    std::uint32_t element_size_bytes) {
  return ViewOf(part, local, element_size_bytes);
}

MutableMemoryView DestinationOf(const LocalPart& part, const MutableMemoryView& local,
                                std::uint32_t element_size_bytes) {
  return ViewOf(part, local, element_size_bytes);
}

Result<std::vector<BucketPart>> PlaceBucket(std::span<const BucketMember> members,
                                            std::uint64_t size, std::uint64_t count,
                                            std::uint64_t index) {
  if (index >= count) {
    return InvalidArgument("index of the range is ", index, ", expected below ", count);
  }
  const Interval local = internal::layout::SplitPart(size, count, index, SplitRule::kCeilChunk);
  std::vector<Interval> taken;
  std::vector<BucketPart> parts;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const BucketMember& member = members[i];
    auto positions = PositionsOf(member, size);
    if (!positions.ok()) {
      return std::move(positions).error().Prefixed(internal::StrCat("bucket member ", i));
    }
    taken.push_back(*positions);
    const std::uint64_t begin = std::max(positions->begin, local.begin);
    const std::uint64_t end = std::min(positions->end, local.end);
    if (begin >= end) continue;
    parts.push_back({.member = i,
                     .region = {member.box, {begin - member.offset, end - member.offset}},
                     .local_offset = begin - local.begin});
  }
  SEALPOINT_RETURN_IF_ERROR(CheckDisjoint(std::move(taken)));
  return parts;
}

}  // namespace sealpoint
