// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_S3_LISTING_H_
#define SEALPOINT_LIB_S3_LISTING_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/object_store.h"
#include "sealpoint/status.h"

// Answers that list. Errors: Io.

namespace sealpoint::internal::s3 {

// More than a page of the longest keys needs, with each byte as %XX.
inline constexpr std::size_t kListingSizeMax = 16 * kMiB;

// The answer to ListObjectsV2 with the delimiter '/', sorted by key.
Result<ObjectPage> ParseObjectPage(std::string_view xml);

struct UploadPage {
  std::vector<UnfinishedUpload> uploads{};
  std::string next_key{};  // both empty after the last page
  std::string next_id{};
};
Result<UploadPage> ParseUploadPage(std::string_view xml);

// Objects that DeleteObjects reports as not deleted; ok() if there are none.
Status ParseDeleteAnswer(std::string_view xml);

}  // namespace sealpoint::internal::s3

#endif  // SEALPOINT_LIB_S3_LISTING_H_
