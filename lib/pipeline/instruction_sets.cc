// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "lib/base/errors.h"
#include "lib/codec/chunk_codec.h"
#include "lib/digest/xxh3.h"
#include "sealpoint/version.h"

namespace sealpoint {

std::string_view InstructionSets() {
  static const std::string text =
      internal::StrCat("XXH3 by ", internal::digest::FastestXxh3().instructions, ", byte split by ",
                       internal::codec::ByteSplitInstructions());
  return text;
}

}  // namespace sealpoint
