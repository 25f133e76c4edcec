// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_FINGERPRINT_H_
#define SEALPOINT_FINGERPRINT_H_

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "sealpoint/export.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint {

// The fingerprint of a tensor or of a part of a tensor (spec/fingerprint.md): 16 bytes that depend
// only on the elements and their indices. If a tensor is divided into disjoint parts in any way,
// the sum of the parts' fingerprints is the fingerprint of the tensor. Different elements have the
// same fingerprint with a probability below 2^-100. An adversary can choose different elements with
// the same fingerprint, so a fingerprint does not authenticate data. A fingerprint does not depend
// on dtype and shape; compare dtype and shape, too. A plain value; concurrent reads are safe.
class SEALPOINT_EXPORT Fingerprint {
 public:
  static constexpr std::uint64_t kModulus = (std::uint64_t{1} << 61) - 1;

  // The fingerprint of an empty part, and of elements with only zero bytes.
  constexpr Fingerprint() = default;
  // Precondition: both values are below kModulus.
  constexpr explicit Fingerprint(const std::array<std::uint64_t, 2>& values) : values_(values) {}
  // Parses the text that ToString returns. Errors: InvalidArgument.
  static Result<Fingerprint> FromString(std::string_view text);

  constexpr const std::array<std::uint64_t, 2>& values() const { return values_; }
  // Add the fingerprint of a disjoint part, or subtract the fingerprint of a contained part.
  Fingerprint& operator+=(const Fingerprint& part);
  Fingerprint& operator-=(const Fingerprint& part);
  friend Fingerprint operator+(Fingerprint a, const Fingerprint& b) { return a += b; }
  friend Fingerprint operator-(Fingerprint a, const Fingerprint& b) { return a -= b; }
  // Returns "spf1:" and 32 hexadecimal digits.
  std::string ToString() const;

  friend auto operator<=>(const Fingerprint&, const Fingerprint&) = default;

 private:
  std::array<std::uint64_t, 2> values_{};
};

// Computes the fingerprint of the part `region` of a tensor with this shape. `memory` contains the
// elements of the region, and may be dense or strided (for example a transposed view). The memory
// is read once and is not needed after the call. If the build has CUDA kernels, the fingerprint of
// dense device memory is computed on the device. Other device memory is copied to the host in
// pieces. For an empty region, returns Fingerprint(). Thread-safe. Errors: InvalidArgument (the
// region is not within the shape, or the memory does not fit the region), LimitExceeded (the
// element count of the shape does not fit in 64 bits), Device.
SEALPOINT_EXPORT Result<Fingerprint> ComputeFingerprint(const Shape& shape,
                                                        std::uint32_t element_size,
                                                        const Region& region,
                                                        const MemoryView& memory);

}  // namespace sealpoint

#endif  // SEALPOINT_FINGERPRINT_H_
