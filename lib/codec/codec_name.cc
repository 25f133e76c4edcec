// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/dtype.h"

namespace sealpoint {

std::string_view CodecName(Codec codec) {
  switch (codec) {
    case Codec::kNone:
      return "none";
    case Codec::kZstd:
      return "zstd";
    case Codec::kByteSplitZstd:
      return "bytesplit+zstd";
    case Codec::kChanges:
      return "changes";
  }
  return "unknown";
}

}  // namespace sealpoint
