// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAFETENSORS_JSON_TEXT_H_
#define SEALPOINT_LIB_SAFETENSORS_JSON_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace sealpoint::internal::safetensors {

enum class JsonCharacters : std::uint8_t { kUtf8, kAscii };

// Appends a text as a JSON string with the necessary escapes; with kAscii, characters outside of
// ASCII are escaped as well. Precondition: the text is UTF-8.
void AppendJson(std::string& out, std::string_view text,
                JsonCharacters characters = JsonCharacters::kUtf8);

}  // namespace sealpoint::internal::safetensors

#endif  // SEALPOINT_LIB_SAFETENSORS_JSON_TEXT_H_
