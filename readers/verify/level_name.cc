// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/verify.h"

namespace sealpoint {

std::string_view VerifyLevelName(VerifyLevel level) {
  switch (level) {
    case VerifyLevel::kFiles:
      return "files";
    case VerifyLevel::kStructure:
      return "structure";
    case VerifyLevel::kFull:
      return "full";
  }
  return "unknown";
}

}  // namespace sealpoint
