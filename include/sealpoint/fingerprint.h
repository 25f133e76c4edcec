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

// The fingerprint of a tensor or of a part of it (spec/fingerprint.md): 16 bytes that depend only
// on the elements and their indices. The fingerprints of disjoint parts add up to that of the
// tensor, whatever the parts are. Different elements have the same fingerprint with a probability
// below 2^-100, unless an adversary chose them: a fingerprint is no authentication. It does not
// depend on dtype and shape; compare them, too. A plain value; concurrent reads are safe.
class SEALPOINT_EXPORT Fingerprint {
 public:
  static constexpr std::uint64_t kModulus = (std::uint64_t{1} << 61) - 1;

  // The fingerprint of no elements, and of zeros.
  constexpr Fingerprint() = default;
  // Precondition: both values are below kModulus.
  constexpr explicit Fingerprint(const std::array<std::uint64_t, 2>& values) : values_(values) {}
  // Parses the form of ToString. Errors: InvalidArgument.
  static Result<Fingerprint> FromString(std::string_view text);

  constexpr const std::array<std::uint64_t, 2>& values() const { return values_; }
  // Adds the fingerprint of a disjoint part, or removes that of a part.
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

// Computes the fingerprint of the part `region` of a tensor of this shape, whose elements
// `memory` holds: dense memory, or strided (a transposed view, for example). The memory is read
// once and not kept. Dense memory of a device is summed on the device if this build has kernels;
// other memory of a device is copied to the host in pieces. An empty region has
// Fingerprint(). Thread-safe. Errors: InvalidArgument (the region is not within the shape, or the
// memory does not fit the region), LimitExceeded (the element count of the shape does not fit in 64
// bits), Device.
SEALPOINT_EXPORT Result<Fingerprint> ComputeFingerprint(const Shape& shape,
                                                        std::uint32_t element_size,
                                                        const Region& region,
                                                        const MemoryView& memory);

}  // namespace sealpoint

#endif  // SEALPOINT_FINGERPRINT_H_
