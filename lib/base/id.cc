// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/id.h"

#include <sys/random.h>

#include <cerrno>

#include "lib/base/errors.h"

namespace sealpoint {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

}  // namespace

std::string Id128::ToHex() const {
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    hex.push_back(kHexDigits[std::to_integer<std::size_t>(byte >> 4)]);
    hex.push_back(kHexDigits[std::to_integer<std::size_t>(byte & std::byte{15})]);
  }
  return hex;
}

Result<Id128> Id128::FromHex(std::string_view hex) {
  Id128 id;
  if (hex.size() != 2 * id.bytes.size()) {
    return internal::InvalidArgument("an id has 32 hexadecimal digits, not ", hex.size());
  }
  for (std::size_t i = 0; i < hex.size(); ++i) {
    const std::size_t digit = kHexDigits.find(hex[i]);
    if (digit == std::string_view::npos) {
      return internal::InvalidArgument("not a lower-case hexadecimal digit at position ", i);
    }
    std::byte& byte = id.bytes[i / 2];
    byte = (byte << 4) | static_cast<std::byte>(digit);
  }
  return id;
}

Result<Id128> Id128::Random() {
  Id128 id;
  std::size_t done = 0;
  while (done < id.bytes.size()) {
    const ssize_t got = getrandom(id.bytes.data() + done, id.bytes.size() - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return internal::ErrnoError("getrandom", errno);
    done += static_cast<std::size_t>(got);
  }
  return id;
}

}  // namespace sealpoint
