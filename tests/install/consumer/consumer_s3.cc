// SPDX-License-Identifier: Apache-2.0
#include <sealpoint/s3.h>

int main() {
  const auto store = sealpoint::S3Store("no/bucket");
  return store.error().code() == sealpoint::Code::kInvalidArgument &&
                 sealpoint::RegisterS3Storage().ok()
             ? 0
             : 1;
}
