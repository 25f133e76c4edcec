// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_VERDICT_H_
#define SEALPOINT_VERDICT_H_

#include <cstdint>
#include <string_view>

#include "sealpoint/export.h"
#include "sealpoint/status.h"

namespace sealpoint {

// Result of examining a directory.
enum class Verdict : std::uint8_t {
  kCommitted,    // valid at the level that was checked
  kUncommitted,  // no marker, or a void one
  kIncomplete,   // a pinned file is missing or short
  kCorrupt,
  kUnsupported,  // version, feature, id or limit beyond this build
  kUnreadable,   // the storage failed, or the directory has no Sealpoint file
};
SEALPOINT_EXPORT std::string_view VerdictName(Verdict verdict);
// The verdict that corresponds to an error of Checkpoint::Open or of a read.
SEALPOINT_EXPORT Verdict VerdictOf(const Status& error);

}  // namespace sealpoint

#endif  // SEALPOINT_VERDICT_H_
