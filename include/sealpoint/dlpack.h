// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_DLPACK_H_
#define SEALPOINT_DLPACK_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sealpoint/dtype.h"
#include "sealpoint/export.h"

namespace sealpoint {

// A DLPack dtype: the numbers of DLDataType, which are stable.
struct DlpackDType {
  std::uint8_t code = 0;
  std::uint8_t bits = 0;  // of one lane
  std::uint16_t lanes = 0;
  bool operator==(const DlpackDType&) const = default;
};

// Every registered dtype has a DLPack dtype. Empty if the dtype is not registered.
SEALPOINT_EXPORT std::optional<DlpackDType> DlpackOf(DType dtype);
// Empty if the format has no such dtype.
SEALPOINT_EXPORT std::optional<DType> DTypeOfDlpack(DlpackDType dtype);

// Values of DLDeviceType, which are stable.
inline constexpr std::int32_t kDlpackCpu = 1;
inline constexpr std::int32_t kDlpackCuda = 2;
inline constexpr std::int32_t kDlpackCudaHost = 3;
inline constexpr std::int32_t kDlpackCudaManaged = 13;

// Address of the first byte of an array that covers the bytes [lowest, end) relative to its element
// 0, at data + byte_offset. Empty if any of these addresses is invalid.
inline std::optional<std::byte*> DlpackBegin(void* data, std::uint64_t byte_offset,
                                             std::int64_t lowest, std::int64_t end) {
  std::int64_t first = 0;
  std::int64_t begin = 0;
  std::int64_t past = 0;
  if (__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(data), byte_offset, &first) ||
      __builtin_add_overflow(first, lowest, &begin) || __builtin_add_overflow(first, end, &past) ||
      begin < 0) {
    return std::nullopt;
  }
  return static_cast<std::byte*>(data) +
         (begin - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data)));
}

}  // namespace sealpoint

#endif  // SEALPOINT_DLPACK_H_
