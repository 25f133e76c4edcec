// SPDX-License-Identifier: Apache-2.0
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/fingerprint/part.h"
#include "lib/layout/view_checks.h"
#include "lib/transfer/source_reader.h"
#include "sealpoint/fingerprint.h"

namespace sealpoint {

Result<Fingerprint> ComputeFingerprint(const Shape& shape, std::uint32_t element_size,
                                       const Region& region, const MemoryView& memory) {
  if (element_size == 0) return internal::InvalidArgument("the element size is 0");
  SEALPOINT_ASSIGN_OR_RETURN(const bool has_elements, HasElements(shape, region));
  if (!has_elements) return Fingerprint();
  if (!memory.is_host()) {
    return internal::InvalidArgument("a fingerprint is computed of host memory; copy it first");
  }
  SEALPOINT_RETURN_IF_ERROR(
      internal::layout::CheckView(memory, region, memory.dtype, element_size));
  const internal::fingerprint::Part part(shape, element_size, region);
  internal::transfer::SourceReader source(region, element_size, memory);
  Fingerprint sum;
  for (std::uint64_t at = 0; source.remaining_bytes() > 0;) {
    const ByteSpan piece = source.Next(source.remaining_bytes());
    sum += part.Of(at, piece);
    at += piece.size();
  }
  return sum;
}

}  // namespace sealpoint
