// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_SLABS_H_
#define SEALPOINT_LIB_INTEROP_SLABS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sealpoint::internal::interop {

// Contiguous bytes of a file that belong together, such as those of a tensor.
struct Extent {
  std::uint64_t size = 0;
  std::uint64_t unit = 1;  // it may be cut at multiples of this only
};

// The bytes [begin, end) of an extent.
struct ExtentPart {
  std::size_t extent = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
  friend bool operator==(const ExtentPart&, const ExtentPart&) = default;
};

// Iterates over extents in order, and returns each time as many as fit into a buffer together. An
// extent that does not fit is split at multiples of its unit and returned alone.
class Slabs {
 public:
  // Borrows the extents. Precondition: no unit is larger than the buffer.
  Slabs(std::span<const Extent> extents, std::uint64_t buffer_size)
      : extents_(extents), buffer_size_(buffer_size) {}

  // The next pieces; none at the end. Empty extents have none.
  std::vector<ExtentPart> Next();

 private:
  std::span<const Extent> extents_;
  const std::uint64_t buffer_size_;
  std::size_t at_ = 0;       // the extent that comes next
  std::uint64_t begin_ = 0;  // and where in it
};

}  // namespace sealpoint::internal::interop

#endif  // SEALPOINT_LIB_INTEROP_SLABS_H_
