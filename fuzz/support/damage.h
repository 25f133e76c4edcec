// SPDX-License-Identifier: Apache-2.0
//
// Inputs of fuzz_open. Byte 0 chooses a good checkpoint of the conformance corpus, byte 1 says
// which digests are repaired after the damage (a sum of testing::Seal). Each further 8 bytes are
// one damage:
//   0     what is done, see damage.cc
//   1     low 4 bits: the file; high 4 bits: the part of a blob that the offset counts from
//   2, 3  offset, little-endian
//   4-7   value, little-endian
#ifndef SEALPOINT_FUZZ_SUPPORT_DAMAGE_H_
#define SEALPOINT_FUZZ_SUPPORT_DAMAGE_H_

#include <cstddef>

#include "fuzz/support/check_directory.h"
#include "sealpoint/bytes.h"

namespace sealpoint::fuzz {

Suspect MakeDamaged(ByteSpan input);
// The number of checkpoints from which byte 0 chooses.
std::size_t DamagedKindCount();

}  // namespace sealpoint::fuzz

#endif  // SEALPOINT_FUZZ_SUPPORT_DAMAGE_H_
