// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_LS_STORED_H_
#define SEALPOINT_TOOLS_CKPT_LS_STORED_H_

#include <cstdint>
#include <string>

#include "sealpoint/checkpoint.h"
#include "tools/common/json.h"

namespace sealpoint::tools::ls {

// "bytesplit+zstd", "none", "mixed" of several, "-" without chunks.
std::string CodecName(const StoredChunks& stored);
// The same with numbers: "bytesplit+zstd of 31 chunks, none of 1".
std::string CodecText(const StoredChunks& stored);
// Raw bytes divided by stored ones: "1.52", "7877"; "-" without any.
std::string RatioText(std::uint64_t raw_bytes, std::uint64_t stored_bytes);
std::string RatioText(const StoredChunks& stored);

// codecs, stored_bytes and chunk_count.
void WriteStored(JsonWriter& json, const StoredChunks& stored);

}  // namespace sealpoint::tools::ls

#endif  // SEALPOINT_TOOLS_CKPT_LS_STORED_H_
