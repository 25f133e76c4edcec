// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string_view>
#include <utility>

#include "lib/base/macros.h"
#include "sealpoint/object_store.h"
#include "sealpoint/s3.h"
#include "sealpoint/storage.h"

namespace sealpoint {

Status RegisterS3Storage(S3Options options) {
  return RegisterStorage("s3",
                         [options = std::move(options)](std::string_view scheme_and_authority)
                             -> Result<std::shared_ptr<Storage>> {
                           const std::string_view bucket =
                               scheme_and_authority.substr(std::string_view("s3://").size());
                           SEALPOINT_ASSIGN_OR_RETURN(auto store, S3Store(bucket, options));
                           return ObjectStorage(std::move(store));
                         });
}

}  // namespace sealpoint
