// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_TENSOR_CHECKS_H_
#define SEALPOINT_LIB_WRITER_TENSOR_CHECKS_H_

#include <cstdint>
#include <string_view>

#include "lib/metadata/tensor_table.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::writer {

// Checks the caller's description of a tensor or an object before the first byte. All errors are
// InvalidArgument (LimitExceeded for sizes beyond 64 bits), with the tensor as the place.
Status CheckTensorSpec(const TensorSpec& tensor);
// Not empty, at most `size_max` bytes, UTF-8 without control characters; `what` names it.
Status CheckText(std::string_view what, std::string_view text, std::uint64_t size_max);
Status CheckObjectSpec(const ObjectSpec& object);
// Region and memory of a tensor that passed CheckTensorSpec.
Status CheckSource(const TensorSpec& tensor, const Region& region, const MemoryView& source);

// That memory fits a valid region of a tensor of this kind (its dtype and element size). Does not
// name the tensor.
Status CheckMemory(const MemoryView& source, const Region& region, const TensorSpec& kind);

// That TensorSpec::stored_cuts make no more boxes than an index has room for. Does not name the
// tensor. Errors: LimitExceeded.
Status CheckCutCount(std::uint64_t count, std::uint64_t count_max);

// Bytes per element: the given size, else the registered size. Precondition: CheckTensorSpec.
std::uint32_t ElementSize(const TensorSpec& tensor);
// The tensor's attributes in a manifest. Borrows the specification. Precondition: CheckTensorSpec.
metadata::TensorAttributes AttributesOf(const TensorSpec& tensor);
// Precondition: CheckTensorSpec, so nothing overflows.
bool IsEmpty(const TensorSpec& tensor);

}  // namespace sealpoint::internal::writer

#endif  // SEALPOINT_LIB_WRITER_TENSOR_CHECKS_H_
