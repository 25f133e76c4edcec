// SPDX-License-Identifier: Apache-2.0
#include "lib/container/resize.h"

#include <new>

#include "lib/base/errors.h"

namespace sealpoint::internal::container {

Status ResizeBytes(Bytes& bytes, std::uint64_t size) {
  if (size <= bytes.max_size()) {
    try {
      bytes.resize(static_cast<std::size_t>(size));
      return {};
    } catch (const std::bad_alloc&) {
      // Reported below, as the length that no vector can have.
    }
  }
  return MakeError(Code::kIo, "no memory for ", size, " bytes");
}

}  // namespace sealpoint::internal::container
