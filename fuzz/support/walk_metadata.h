// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_FUZZ_SUPPORT_WALK_METADATA_H_
#define SEALPOINT_FUZZ_SUPPORT_WALK_METADATA_H_

#include "lib/metadata/metadata.h"

namespace sealpoint::fuzz {

// Asks everything that an accepted index or manifest can be asked, and requires that the answers
// fit together: regions lie in their tensors, an index's regions tile them, references exist.
void WalkContents(const internal::Metadata& contents);

}  // namespace sealpoint::fuzz

#endif  // SEALPOINT_FUZZ_SUPPORT_WALK_METADATA_H_
