// SPDX-License-Identifier: Apache-2.0
//
// Inputs of fuzz_container: a checkpoint of the conformance corpus is made anew, and each part may
// be changed before what digests, measures and pins it is made. So the damage lies behind digests
// that are right, wherever it is. Byte 0 chooses the checkpoint, byte 1 is a sum of Repair, and
// each further 14 bytes are one change:
//   0     the part, see container.cc
//   1     of which blob
//   2-13  what is changed in it, and how
#ifndef SEALPOINT_FUZZ_SUPPORT_CONTAINER_H_
#define SEALPOINT_FUZZ_SUPPORT_CONTAINER_H_

#include <cstddef>

#include "fuzz/support/check_directory.h"
#include "sealpoint/bytes.h"

namespace sealpoint::fuzz {

enum Repair : unsigned {
  kRepairMend = 7,     // a sum of Mend, for each changed index or manifest
  kRepairDigests = 8,  // digests of chunks, in the records, after payload and records changed
};

// Files with changes that a reader need not detect: `pinned_files` is empty. The content is known
// if nothing was changed.
Suspect MakeContainer(ByteSpan input);

inline constexpr std::size_t kContainerChangeBytes = 14;
inline constexpr std::size_t kContainerPartCount = 11;
// The number of checkpoints from which byte 0 chooses.
std::size_t ContainerKindCount();

}  // namespace sealpoint::fuzz

#endif  // SEALPOINT_FUZZ_SUPPORT_CONTAINER_H_
