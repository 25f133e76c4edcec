// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_CONTAINER_REBASE_H_
#define SEALPOINT_LIB_CONTAINER_REBASE_H_

#include <cstdint>
#include <utility>

#include "sealpoint/status.h"

namespace sealpoint::internal::container {

// Converts an error offset that counts from byte `base` of the file to an offset in the file. An
// error without offset gets `base`.
inline Status Rebased(const Status& error, std::uint64_t base) {
  const Place& place = error.place();
  return Status(error.code(), error.message())
      .AtRule(place.rule)
      .AtPath(place.path)
      .AtOffset(base + place.offset.value_or(0))
      .AtTensor(place.tensor)
      .AtObject(place.object);
}

}  // namespace sealpoint::internal::container

#endif  // SEALPOINT_LIB_CONTAINER_REBASE_H_
