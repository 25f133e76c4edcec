// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_S3_OBJECT_READ_H_
#define SEALPOINT_LIB_S3_OBJECT_READ_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/s3/s3_client.h"
#include "sealpoint/object_store.h"

// Reads of one object.

namespace sealpoint::internal::s3 {

// Digits and nothing else.
std::optional<std::uint64_t> ParseNumber(std::string_view text);

// "bytes 0-511/4096" of an answer 206; "bytes */4096" of an answer 416 has no bounds.
struct ContentRange {
  std::optional<std::uint64_t> first{};
  std::optional<std::uint64_t> last{};
  std::optional<std::uint64_t> total{};
};
std::optional<ContentRange> ParseContentRange(std::string_view text);

// As the functions of ObjectStore.
Result<StoredObject> HeadS3Object(S3Client& client, const std::string& key);
Result<StoredObject> GetFirstOfS3Object(S3Client& client, const std::string& key,
                                        std::size_t size_max, Bytes& out);
Status GetS3Ranges(S3Client& client, const StoredObject& object,
                   std::span<const ObjectRange> ranges);

}  // namespace sealpoint::internal::s3

#endif  // SEALPOINT_LIB_S3_OBJECT_READ_H_
