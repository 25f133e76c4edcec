// SPDX-License-Identifier: Apache-2.0
#include "readers/load/copy_out.h"

#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

// Where the element with this row-major number in the box lies in the tensor.
std::vector<std::uint64_t> CoordinatesIn(const Box& box, std::uint64_t number) {
  std::vector<std::uint64_t> at = box.offset;
  for (std::size_t d = at.size(); d-- > 0;) {
    at[d] += number % box.extent[d];
    number /= box.extent[d];
  }
  return at;
}

// `number` is that of the element in the part.
Status Refuse(const ReadPlanData& plan, const ConvertedPart& part, std::uint64_t number,
              const std::byte* element) {
  const PlanConversion& conversion = plan.conversions[part.conversion];
  return MakeError(Code::kMismatch, "element ", ShapeToString(CoordinatesIn(part.box, number)),
                   " of region ", conversion.region.ToString(), ": ",
                   conversion.converter.Describe(element));
}

Status ConvertOut(const ReadPlanData& plan, const PlanCopy& copy, const PlanChunk& chunk,
                  ByteSpan raw) {
  const ConvertedPart& part = plan.converted_parts[copy.converted_part];
  const ElementConverter& converter = plan.conversions[part.conversion].converter;
  const CopyRow row = RowOf(copy.copy);
  std::uint64_t done = 0;  // elements of this part, in row-major order
  Status status;
  VisitRows(copy.copy, [&](std::int64_t source_at, std::int64_t target_at) {
    const std::uint64_t good =
        converter.Convert(raw.data() + source_at, row.source_stride_bytes, copy.target + target_at,
                          row.target_stride_bytes, row.count);
    done += good;
    if (good == row.count) return true;
    const std::int64_t at = source_at + static_cast<std::int64_t>(good) * row.source_stride_bytes;
    status = Refuse(plan, part, done, raw.data() + at);
    if (chunk.codec == Codec::kNone) {
      status = Status(std::move(status).AtOffset(chunk.offset + static_cast<std::uint64_t>(at)));
    }
    return false;
  });
  return status;
}

}  // namespace

Status CopyOut(const ReadPlanData& plan, const PlanChunk& chunk, ByteSpan raw) {
  for (std::uint64_t i = 0; i < chunk.copy_count; ++i) {
    const PlanCopy& copy = plan.copies[chunk.first_copy + i];
    if (copy.is_converted()) {
      Status status = ConvertOut(plan, copy, chunk, raw);
      if (!status.ok()) return std::move(status).AtTensor(plan.names[chunk.name]);
    } else {
      RunStridedCopy(copy.copy, raw.data(), copy.target);
    }
  }
  return {};
}

}  // namespace sealpoint::internal
