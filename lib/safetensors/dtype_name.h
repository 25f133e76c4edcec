// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAFETENSORS_DTYPE_NAME_H_
#define SEALPOINT_LIB_SAFETENSORS_DTYPE_NAME_H_

#include <string_view>

#include "sealpoint/dtype.h"
#include "sealpoint/region.h"

namespace sealpoint::internal::safetensors {

// kNone if the name is not known.
DType DTypeOfSafetensors(std::string_view name);

// In safetensors, F4 counts single elements in the last extent, two per byte; all other dtypes
// count as here. False if there is no such shape: without dimensions, or with an odd extent.
bool ShapeOfSafetensors(DType dtype, Shape& shape);

}  // namespace sealpoint::internal::safetensors

#endif  // SEALPOINT_LIB_SAFETENSORS_DTYPE_NAME_H_
