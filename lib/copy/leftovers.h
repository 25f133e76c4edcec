// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COPY_LEFTOVERS_H_
#define SEALPOINT_LIB_COPY_LEFTOVERS_H_

#include <string_view>

#include "lib/metadata/metadata.h"
#include "sealpoint/id.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::copy {

// Removes Sealpoint files that a committed checkpoint does not pin: files of writers that died
// before they named or committed them. Nothing else can be committed in the directory any more, so
// none of these files is needed; failing to remove them is not an error. Also removes the file
// `extra`.
void RemoveLeftovers(Directory& directory, const AttemptId& attempt,
                     const metadata::Metadata& index, std::string_view extra = {});

}  // namespace sealpoint::internal::copy

#endif  // SEALPOINT_LIB_COPY_LEFTOVERS_H_
