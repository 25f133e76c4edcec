// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PROMOTE_LEFTOVERS_H_
#define SEALPOINT_LIB_PROMOTE_LEFTOVERS_H_

#include <string_view>

#include "lib/metadata/metadata.h"
#include "sealpoint/id.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::promote {

// Removes the files of our names that a committed checkpoint does not pin: what died before it got
// its name, or its marker. Nothing can be committed in the directory any more but what is, so that
// none of it will be missed; failing to remove it is no error. Also removes the file `extra`.
void RemoveLeftovers(Directory& directory, const AttemptId& attempt,
                     const metadata::Metadata& index, std::string_view extra = {});

}  // namespace sealpoint::internal::promote

#endif  // SEALPOINT_LIB_PROMOTE_LEFTOVERS_H_
