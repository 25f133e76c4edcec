// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/ls/stored.h"

#include <fmt/format.h>

#include "tools/common/text.h"

namespace sealpoint::tools::ls {

std::string CodecName(const StoredChunks& stored) {
  if (stored.codecs.empty()) return "-";
  if (stored.codecs.size() > 1) return "mixed";
  return std::string(sealpoint::CodecName(stored.codecs.front().codec));
}

std::string CodecText(const StoredChunks& stored) {
  if (stored.codecs.size() < 2) return CodecName(stored);
  std::string text;
  for (const auto& [codec, count] : stored.codecs) {
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", sealpoint::CodecName(codec),
                        FormatCount(count, "chunk"));
  }
  return text;
}

std::string RatioText(std::uint64_t raw_bytes, std::uint64_t stored_bytes) {
  constexpr double kWithoutFraction = 100;
  if (stored_bytes == 0) return "-";
  const double ratio = static_cast<double>(raw_bytes) / static_cast<double>(stored_bytes);
  return fmt::format("{:.{}f}", ratio, ratio < kWithoutFraction ? 2 : 0);
}

std::string RatioText(const StoredChunks& stored) {
  return RatioText(stored.raw_bytes, stored.stored_bytes);
}

void WriteStored(JsonWriter& json, const StoredChunks& stored) {
  Json codecs = Json::object();
  for (const auto& [codec, count] : stored.codecs) {
    codecs[std::string(sealpoint::CodecName(codec))] = count;
  }
  json.Field("codecs", codecs);
  json.Field("stored_bytes", stored.stored_bytes);
  json.Field("chunk_count", stored.chunk_count);
}

}  // namespace sealpoint::tools::ls
