// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/storage.h"

#include "lib/c/boundary.h"

#if defined(SEALPOINT_C_WITH_S3)
#include "sealpoint/s3.h"
#endif

namespace sealpoint::c_api {
namespace {

#if defined(SEALPOINT_C_WITH_S3)
Status RegisterS3(const sealpoint_s3_options& options) {
  S3Options s3;
  SEALPOINT_C_TRY(Take(options.endpoint, "endpoint", s3.endpoint));
  SEALPOINT_C_TRY(Take(options.region, "region", s3.region));
  SEALPOINT_C_TRY(Take(options.profile, "profile", s3.profile));
  if (options.no_retries != 0) s3.retries_max = 0;
  return RegisterS3Storage(std::move(s3));
}
#else
Status RegisterS3(const sealpoint_s3_options& /*options*/) {
  return {Code::kUnsupported,
          "this library was built without S3; build it with -D SEALPOINT_C_WITH_S3=ON"};
}
#endif

}  // namespace
}  // namespace sealpoint::c_api

using sealpoint::Status;
using sealpoint::c_api::Guarded;
using sealpoint::c_api::Take;

extern "C" {

int32_t sealpoint_create_directories(sealpoint_string path, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    std::string_view taken;
    SEALPOINT_C_TRY(Take(path, "path", taken));
    return sealpoint::DefaultStorage()->CreateDirectories(taken);
  });
}

int32_t sealpoint_register_s3(const sealpoint_s3_options* options, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    sealpoint_s3_options taken;
    SEALPOINT_C_TRY(Take(options, taken));
    return sealpoint::c_api::RegisterS3(taken);
  });
}

}  // extern "C"
