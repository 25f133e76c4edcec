// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAFETENSORS_DTYPE_NAME_H_
#define SEALPOINT_LIB_SAFETENSORS_DTYPE_NAME_H_

#include <string_view>

#include "sealpoint/dtype.h"
#include "sealpoint/region.h"

namespace sealpoint::internal::safetensors {

// What safetensors calls a dtype; empty if it has none: complex numbers but of two f32.
std::string_view SafetensorsDTypeName(DType dtype);
// kNone if the name is not known.
DType DTypeOfSafetensors(std::string_view name);

// F4 counts single elements, of which two share a byte, in the last extent; all others as here.
// False if there is no such shape: without dimensions or, of a file's, odd.
bool ShapeOfSafetensors(DType dtype, Shape& shape);
bool ShapeToSafetensors(DType dtype, Shape& shape);

}  // namespace sealpoint::internal::safetensors

#endif  // SEALPOINT_LIB_SAFETENSORS_DTYPE_NAME_H_
