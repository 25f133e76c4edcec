// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_ELEMENT_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_ELEMENT_H_

#include <cstddef>
#include <span>
#include <string>

#include "sealpoint/dtype.h"
#include "tools/common/json.h"

namespace sealpoint::tools {

// One element in the bytes of its dtype, for people: "0.5", "-3", "true", "1.5-2j", of f4_e2m1x2
// its two values, first the low half: "0.5|-6"; of other dtypes its bytes: "0x0f2a". The shortest
// digits that yield the same value again; f16, bf16 and f8 have to be converted to f32 before.
std::string ElementText(DType dtype, std::span<const std::byte> element);

// The same for programs: numbers and booleans; [real, imaginary]; of f4_e2m1x2 [low, high]; "nan",
// "inf" and "-inf", for which JSON has no numbers; other bytes as text.
Json ElementToJson(DType dtype, std::span<const std::byte> element);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_ELEMENT_H_
