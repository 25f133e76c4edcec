// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_PLAN_TEXT_H_
#define SEALPOINT_READERS_LOAD_PLAN_TEXT_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "lib/base/errors.h"

namespace sealpoint::internal::load {

// How plans are shown: "3 ranges", "x 1.042".
inline std::string CountText(std::uint64_t count, std::string_view noun) {
  return StrCat(count, " ", noun, count == 1 ? "" : "s");
}

inline std::string RatioText(double ratio) {
  char text[32];
  std::snprintf(text, sizeof(text), "x %.3f", ratio);
  return text;
}

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_PLAN_TEXT_H_
