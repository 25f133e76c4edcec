// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/series/typed_series.h"

#include "sealpoint/storage.h"

namespace sealpoint::tools {

Status NoSeries(const std::string& path) {
  const auto directory = DefaultStorage()->OpenDirectory(path);
  if (!directory) return Status(directory.error()).AtPath(path);
  return Status(Code::kNotFound, "no checkpoint of a series is in this directory").AtPath(path);
}

}  // namespace sealpoint::tools
