// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_KNOWN_CLASSES_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_KNOWN_CLASSES_H_

#include <optional>
#include <string_view>

#include "sealpoint/dtype.h"

namespace sealpoint::internal::foreign {

// Classes and functions that values of states may name.
bool IsKnownValueClass(std::string_view name);
// Also classes of DCP's own metadata, of Megatron's plans, and of paths.
bool IsKnownMetadataClass(std::string_view name);

// "torch.bfloat16", or without its module.
std::optional<DType> DTypeOfTorch(std::string_view name);
// "torch.FloatStorage", or without its module.
std::optional<DType> DTypeOfStorage(std::string_view name);
// "f4"; without byte order.
std::optional<DType> DTypeOfNumpy(std::string_view code);

bool IsUntypedStorage(std::string_view name);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_KNOWN_CLASSES_H_
