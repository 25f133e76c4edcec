// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_FUZZ_SUPPORT_WALK_METADATA_H_
#define SEALPOINT_FUZZ_SUPPORT_WALK_METADATA_H_

#include "lib/metadata/metadata.h"

namespace sealpoint::fuzz {

// Calls every accessor of an accepted index or manifest, and requires that the results are
// consistent: regions lie in their tensors, an index's regions tile them, references exist.
void WalkMetadata(const internal::metadata::Metadata& metadata);

}  // namespace sealpoint::fuzz

#endif  // SEALPOINT_FUZZ_SUPPORT_WALK_METADATA_H_
