// SPDX-License-Identifier: Apache-2.0
#include "lib/transfer/host_delivery.h"

#include <cstring>
#include <utility>
#include <vector>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"

namespace sealpoint::internal::transfer {
namespace {

// Coordinates in the tensor of the element with this row-major number among those of the box that
// the steps select.
std::vector<std::uint64_t> CoordinatesIn(const Box& box, const std::vector<std::uint64_t>& steps,
                                         std::uint64_t number) {
  std::vector<std::uint64_t> at = box.offset;
  for (std::size_t d = at.size(); d-- > 0;) {
    const std::uint64_t step = steps.empty() ? 1 : steps[d];
    const std::uint64_t count = DivideRoundUp(box.extent[d], step);
    at[d] += number % count * step;
    number /= count;
  }
  return at;
}

// `number` is the row-major number of the element in the part.
Status RefuseElement(const DeliveryPlan& plan, const ConvertedPart& part, std::uint64_t number,
                     const std::byte* element) {
  const PlanConversion& conversion = plan.conversions[part.conversion];
  return MakeError(Code::kMismatch, "element ",
                   ShapeToString(CoordinatesIn(part.box, conversion.steps, number)), " of region ",
                   conversion.region.ToString(), ": ", conversion.converter.Describe(element));
}

}  // namespace

Status ConvertedCopy::Run(const layout::StridedCopy& copy, std::byte* target) {
  const convert::ElementConverter& converter = plan_.conversions[part_.conversion].converter;
  const layout::CopyRow row = layout::RowOf(copy);
  Status status;
  layout::VisitRows(copy, [&](std::int64_t source_at, std::int64_t target_at) {
    const std::uint64_t good =
        converter.Convert(raw_.data() + source_at, row.source_stride_bytes, target + target_at,
                          row.target_stride_bytes, row.count);
    done_ += good;
    if (good == row.count) return true;
    const std::int64_t at = source_at + static_cast<std::int64_t>(good) * row.source_stride_bytes;
    status = RefuseElement(plan_, part_, done_, raw_.data() + at);
    if (chunk_.codec == Codec::kNone) {
      status = Status(std::move(status).AtOffset(chunk_.offset + static_cast<std::uint64_t>(at)));
    }
    return false;
  });
  return status;
}

Status HostDelivery::Copy(const DeliveryPlan& plan, const PlanChunk& chunk, const PlanCopy& copy,
                          ByteSpan raw) {
  const CopyWay way = copy.way();
  if (way == CopyWay::kCopy) {
    std::memcpy(copy.first_byte(), copy.first_source(raw), copy.element_size());
    return {};
  }
  return copy.With([&](const layout::StridedCopy& strided) -> Status {
    if (way == CopyWay::kConvert) {
      return ConvertedCopy(plan, chunk, copy, raw).Run(strided, copy.target());
    }
    layout::RunStridedCopy(strided, raw.data(), copy.target());
    return {};
  });
}

Status HostDelivery::Begin(const PlanChunk& chunk, ByteSpan raw) {
  for (const PlanCopy& copy : plan_.CopiesOf(chunk)) {
    Status status = Copy(plan_, chunk, copy, raw);
    if (!status.ok()) return plan_.AtItem(chunk.name, std::move(status));
  }
  return {};
}

}  // namespace sealpoint::internal::transfer
