// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/series/typed_series.h"

#include "sealpoint/storage.h"
#include "tools/common/hint.h"

namespace sealpoint::tools {

Status NoSeries(const std::string& path) {
  const auto directory = DefaultStorage()->OpenDirectory(path);
  if (!directory) return Status(directory.error()).AtPath(path);
  return Status(Code::kNotFound, "no checkpoint of a series is in this directory").AtPath(path);
}

std::string HintForTyped(const std::string& path) {
  return HintForSeries(path, "its series is the directory above");
}

}  // namespace sealpoint::tools
