// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_DESTINATION_H_
#define SEALPOINT_READERS_LOAD_DESTINATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/convert/element_converter.h"
#include "sealpoint/dtype.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::load {

// A region, with a stride in memory for each dimension of its box.
struct StridedRegion {
  Region region;
  std::vector<std::int64_t> strides_bytes;
  // ReadItem::steps. The extents of the region then count the selected positions.
  std::vector<std::uint64_t> steps{};

  // The region is dense.
  static std::shared_ptr<const StridedRegion> Dense(const Region& region,
                                                    std::uint32_t element_size);
};

// Memory that receives a region.
struct Destination {
  std::byte* data = nullptr;
  std::shared_ptr<const StridedRegion> place;  // of many tensors of one shape it is the same
  std::uint32_t element_size = 1;              // in the memory
  int device = kHostDevice;
  void* stream = nullptr;  // of a device
  bool is_plan_only = false;
  // Added to the offset given by an element's strides. Nonzero for a view with an origin, and for a
  // run, because its first element is not that of its box.
  std::int64_t shift_bytes = 0;
  std::shared_ptr<const convert::ElementConverter>
      converter{};  // if its dtype is not the stored one

  const Region& region() const { return place->region; }
  const std::vector<std::uint64_t>& steps() const { return place->steps; }
  // The smallest box of the tensor with all elements that `steps` select. Precondition: steps.
  Region Spanned() const;
  const std::vector<std::int64_t>& strides_bytes() const { return place->strides_bytes; }

  // `element_size` is that of the memory. Precondition: the view fits the region
  // (CheckDestination).
  static Destination Make(const MutableMemoryView& view, const Region& region,
                          std::uint32_t element_size);
  // A dense view of dense data.
  static Destination Make(const MutableMemoryView& view, std::shared_ptr<const StridedRegion> dense,
                          std::uint32_t element_size);
};

// The absolute value of a stride.
inline std::uint64_t Magnitude(std::int64_t stride_bytes) {
  const auto bits = static_cast<std::uint64_t>(stride_bytes);
  return stride_bytes < 0 ? 0 - bits : bits;
}

// `dtype` and `element_size` are those of the memory. Errors: InvalidArgument: those of CheckView;
// strides for a run, or so short that elements overlap. Precondition: the region is valid.
Status CheckDestination(const MutableMemoryView& view, const Region& region, DType dtype,
                        std::uint32_t element_size);

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_DESTINATION_H_
