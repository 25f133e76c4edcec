// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_OWNER_RANK_H_
#define SEALPOINT_LIB_SAVER_OWNER_RANK_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/base/endian.h"
#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal::saver {

// The rank that owns the name of a tensor or object: all ranks send their declarations of this name
// to it, and it checks or merges them. Every rank computes the same owner without communication.
inline std::size_t OwnerRank(std::string_view name, int size) {
  const Digest digest = ComputeDigest(AsBytes(name));
  return static_cast<std::size_t>(LoadLe<std::uint64_t>(digest.bytes, 0) %
                                  static_cast<std::uint64_t>(size));
}

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_OWNER_RANK_H_
