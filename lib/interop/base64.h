// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_BASE64_H_
#define SEALPOINT_LIB_INTEROP_BASE64_H_

#include <optional>
#include <string>
#include <string_view>

#include "sealpoint/bytes.h"

namespace sealpoint::internal::interop {

// RFC 4648, with padding.
std::string EncodeBase64(ByteSpan bytes);
// Empty if the text differs from the encoder's output.
std::optional<Bytes> DecodeBase64(std::string_view text);

}  // namespace sealpoint::internal::interop

#endif  // SEALPOINT_LIB_INTEROP_BASE64_H_
