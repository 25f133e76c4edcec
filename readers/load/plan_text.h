// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_PLAN_TEXT_H_
#define SEALPOINT_READERS_LOAD_PLAN_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace sealpoint::internal {

// How plans are shown: "3 ranges", "x 1.042".
std::string CountText(std::uint64_t count, std::string_view noun);
std::string RatioText(double ratio);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_LOAD_PLAN_TEXT_H_
