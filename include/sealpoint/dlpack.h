// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_DLPACK_H_
#define SEALPOINT_DLPACK_H_

#include <cstdint>
#include <optional>

#include "sealpoint/dtype.h"
#include "sealpoint/export.h"

namespace sealpoint {

// A dtype of DLPack, by the numbers of its DLDataType, which it never changes.
struct DlpackDType {
  std::uint8_t code = 0;
  std::uint8_t bits = 0;  // of one lane
  std::uint16_t lanes = 0;
  bool operator==(const DlpackDType&) const = default;
};

// Each registered dtype has one; nothing if it is not registered.
SEALPOINT_EXPORT std::optional<DlpackDType> DlpackOf(DType dtype);
// Nothing if the format has no such dtype.
SEALPOINT_EXPORT std::optional<DType> DTypeOfDlpack(DlpackDType dtype);

// Values of DLDeviceType, which DLPack never changes.
inline constexpr std::int32_t kDlpackCpu = 1;
inline constexpr std::int32_t kDlpackCuda = 2;
inline constexpr std::int32_t kDlpackCudaHost = 3;
inline constexpr std::int32_t kDlpackCudaManaged = 13;

}  // namespace sealpoint

#endif  // SEALPOINT_DLPACK_H_
