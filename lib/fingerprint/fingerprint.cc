// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/fingerprint.h"

#include <charconv>

#include "lib/base/errors.h"
#include "lib/fingerprint/field.h"

namespace sealpoint {
namespace {

constexpr std::string_view kPrefix = "spf1:";
constexpr std::size_t kDigits = 16;  // of each value

}  // namespace

Fingerprint& Fingerprint::operator+=(const Fingerprint& part) {
  values_ = internal::fingerprint::Add(values_, part.values_);
  return *this;
}

Fingerprint& Fingerprint::operator-=(const Fingerprint& part) {
  for (std::size_t set = 0; set < values_.size(); ++set) {
    values_[set] = internal::fingerprint::Add(
        values_[set], part.values_[set] == 0 ? 0 : kModulus - part.values_[set]);
  }
  return *this;
}

std::string Fingerprint::ToString() const {
  std::string text(kPrefix);
  for (const std::uint64_t value : values_) {
    for (std::size_t digit = kDigits; digit > 0; --digit) {
      text += "0123456789abcdef"[value >> (4 * (digit - 1)) & 15];
    }
  }
  return text;
}

Result<Fingerprint> Fingerprint::FromString(std::string_view text) {
  Fingerprint parsed;
  bool is_valid = text.size() == kPrefix.size() + 2 * kDigits && text.starts_with(kPrefix);
  for (std::size_t set = 0; is_valid && set < parsed.values_.size(); ++set) {
    const char* const begin = text.data() + kPrefix.size() + set * kDigits;
    const auto [end, error] = std::from_chars(begin, begin + kDigits, parsed.values_[set], 16);
    is_valid = error == std::errc() && end == begin + kDigits && parsed.values_[set] < kModulus;
  }
  if (is_valid) return parsed;
  return internal::InvalidArgument("fingerprint is '", text, "', expected \"spf1:\" and ",
                                   2 * kDigits, " hexadecimal digits");
}

}  // namespace sealpoint
