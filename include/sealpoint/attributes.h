// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_ATTRIBUTES_H_
#define SEALPOINT_ATTRIBUTES_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sealpoint/export.h"
#include "sealpoint/status.h"

namespace sealpoint {

inline constexpr std::size_t kAttributeNameSizeMaxBytes = 255;
// Maximum size of one set in encoded form. All sets of a checkpoint have at most 64 MiB.
inline constexpr std::size_t kAttributesSizeMaxBytes = std::size_t{1} << 20;

// The value of an attribute: a string in UTF-8, a number, a truth value, or a list of such values.
using AttributeValue =
    std::variant<std::string, std::int64_t, double, bool, std::vector<std::string>,
                 std::vector<std::int64_t>, std::vector<double>, std::vector<bool>>;

// Returns the value as JSON, with the shortest digits of a number. Floating-point numbers have a
// point or an exponent; those that are not finite are NaN, Infinity and -Infinity.
SEALPOINT_EXPORT std::string AttributeToString(const AttributeValue& value);

// A set of attributes of a tensor or of a checkpoint (spec/attributes.md): named values such as
// {"units", "K"}. The class stores the canonical encoding, so sets are equal if and only if all
// names, types and values are equal; NaN equals NaN with the same bits. A value type; concurrent
// reads are safe.
class SEALPOINT_EXPORT Attributes {
 public:
  using Values = std::map<std::string, AttributeValue, std::less<>>;

  Attributes() = default;
  // Errors: InvalidArgument (a name that is empty, too long or has control characters; text that is
  // not UTF-8; a set larger than kAttributesSizeMaxBytes).
  static Result<Attributes> Make(const Values& values);
  // From the bytes of encoded(). Errors: Corrupt or Unsupported with the broken rule (R-ATT-*).
  static Result<Attributes> Decode(std::string_view encoded);

  Values values() const;
  bool empty() const { return encoded_.empty(); }
  const std::string& encoded() const { return encoded_; }

  friend auto operator<=>(const Attributes&, const Attributes&) = default;

 private:
  std::string encoded_;
};

}  // namespace sealpoint

#endif  // SEALPOINT_ATTRIBUTES_H_
