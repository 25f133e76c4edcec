// SPDX-License-Identifier: Apache-2.0
#include "lib/digest/xxh3_variant.h"

namespace sealpoint::internal::digest {

const Xxh3 kXxh3Avx512 = kXxh3Here;

}  // namespace sealpoint::internal::digest
