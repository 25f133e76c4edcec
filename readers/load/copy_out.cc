// SPDX-License-Identifier: Apache-2.0
#include "readers/load/copy_out.h"

#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

// Coordinates in the tensor of the element with this row-major number in the box.
std::vector<std::uint64_t> CoordinatesIn(const Box& box, std::uint64_t number) {
  std::vector<std::uint64_t> at = box.offset;
  for (std::size_t d = at.size(); d-- > 0;) {
    at[d] += number % box.extent[d];
    number /= box.extent[d];
  }
  return at;
}

// `number` is the row-major number of the element in the part.
Status RefuseElement(const ReadPlanData& plan, const ConvertedPart& part, std::uint64_t number,
                     const std::byte* element) {
  const PlanConversion& conversion = plan.conversions[part.conversion];
  return MakeError(Code::kMismatch, "element ", ShapeToString(CoordinatesIn(part.box, number)),
                   " of region ", conversion.region.ToString(), ": ",
                   conversion.converter.Describe(element));
}

// Converts the elements of a planned copy, at once or part by part. Parts must come in row-major
// order: an element that does not convert is named by how many were converted before it.
class ConversionOut {
 public:
  ConversionOut(const ReadPlanData& plan, const PlanChunk& chunk, const PlanCopy& copy,
                ByteSpan raw)
      : plan_(plan), chunk_(chunk), part_(plan.converted_parts[copy.converted_part]), raw_(raw) {}

  Status Run(const StridedCopy& copy, std::byte* target);

 private:
  const ReadPlanData& plan_;
  const PlanChunk& chunk_;
  const ConvertedPart& part_;
  const ByteSpan raw_;
  std::uint64_t done_ = 0;  // elements
};

Status ConversionOut::Run(const StridedCopy& copy, std::byte* target) {
  const ElementConverter& converter = plan_.conversions[part_.conversion].converter;
  const CopyRow row = RowOf(copy);
  Status status;
  VisitRows(copy, [&](std::int64_t source_at, std::int64_t target_at) {
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

Status CopyToDevice(const ReadPlanData& plan, const PlanChunk& chunk, const PlanCopy& copy,
                    ByteSpan raw, bool raw_stays, CopiesToDevices& devices) {
  if (copy.is_converted()) {
    ConversionOut conversion(plan, chunk, copy, raw);
    return devices.Copy(chunk, copy, nullptr, [&](const StridedCopy& part, std::byte* staging) {
      return conversion.Run(part, staging);
    });
  }
  return devices.Copy(chunk, copy, raw_stays ? raw.data() : nullptr,
                      [&](StridedCopy part, std::byte* staging) {
                        part.Normalize();
                        RunStridedCopy(part, raw.data(), staging);
                        return Status();
                      });
}

Status CopyOne(const ReadPlanData& plan, const PlanChunk& chunk, const PlanCopy& copy, ByteSpan raw,
               bool raw_stays, CopiesToDevices* devices) {
  if (copy.device() != kHostDevice) {
    return CopyToDevice(plan, chunk, copy, raw, raw_stays, *devices);
  }
  if (copy.is_converted()) {
    return copy.With([&](const StridedCopy& strided) {
      return ConversionOut(plan, chunk, copy, raw).Run(strided, copy.target());
    });
  }
  copy.With(
      [&](const StridedCopy& strided) { RunStridedCopy(strided, raw.data(), copy.target()); });
  return {};
}

}  // namespace

Status CopyOut(const ReadPlanData& plan, const PlanChunk& chunk, ByteSpan raw,
               CopiesToDevices* devices, bool raw_stays) {
  for (const PlanCopy& copy : plan.CopiesOf(chunk)) {
    Status status = CopyOne(plan, chunk, copy, raw, raw_stays, devices);
    if (!status.ok()) return plan.AtItem(chunk.name, std::move(status));
  }
  return {};
}

bool CopyOutPacked(const ReadPlanData& plan, const PlanChunk& chunk, ByteSpan packed) {
  if (chunk.copy_count != 1) return false;
  const PlanCopy& copy = plan.CopiesOf(chunk).front();
  if (copy.device() != kHostDevice || copy.is_converted()) return false;
  // A plan's copies take their source forwards, each element once.
  copy.With([&](const StridedCopy& strided) {
    RunStridedCopy(CopyFromPacked(strided), packed.data(), copy.target());
  });
  return true;
}

}  // namespace sealpoint::internal
