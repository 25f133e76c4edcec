// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/tensor_checks.h"

#include <algorithm>
#include <bit>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/utf8.h"
#include "lib/codec/chunk_codec.h"
#include "lib/format/constants.h"
#include "lib/layout/view_checks.h"

namespace sealpoint::internal::writer {

Status CheckText(std::string_view what, std::string_view text, std::uint64_t size_max) {
  if (text.empty()) return InvalidArgument(what, " is empty");
  if (text.size() > size_max) {
    return InvalidArgument(what, " has ", text.size(), " bytes, at most ", size_max);
  }
  if (!IsPrintableUtf8(text))
    return InvalidArgument(what, " is not UTF-8 without control characters");
  return {};
}

namespace {

Status CheckElementSize(const TensorSpec& tensor) {
  if (tensor.dtype == DType::kNone) return InvalidArgument("dtype is missing");
  const std::uint32_t registered = DTypeSizeBytes(tensor.dtype);
  if (registered != 0 && tensor.element_size != 0 && tensor.element_size != registered) {
    return InvalidArgument("element size ", tensor.element_size, " given for dtype ",
                           DTypeName(tensor.dtype), " of ", registered, " bytes");
  }
  const std::uint32_t size = ElementSize(tensor);
  if (size > 256 || !std::has_single_bit(size)) {
    return InvalidArgument("element size is ", size, ", not a power of two from 1 to 256");
  }
  return {};
}

Status CheckChunking(const TensorSpec& tensor) {
  const std::uint64_t size = tensor.chunk_size_bytes;
  if (!std::has_single_bit(size) || size < kChunkSizeMinBytes || size > kChunkSizeMaxBytes) {
    return InvalidArgument("chunk size is ", size, " bytes, not a power of two from ",
                           kChunkSizeMinBytes, " to ", kChunkSizeMaxBytes);
  }
  if (CodecName(tensor.codec) == "unknown") {
    return InvalidArgument("codec ", static_cast<std::uint32_t>(tensor.codec), " is not known");
  }
  if (tensor.codec != Codec::kNone && size > kCodedChunkSizeMaxBytes) {
    return InvalidArgument("chunk size is ", size, " bytes, with a codec at most ",
                           kCodedChunkSizeMaxBytes);
  }
  return codec::ChunkCodec::CheckLevel(tensor.codec_level);
}

Status CheckSize(const TensorSpec& tensor) {
  if (tensor.shape.size() > kNdimMax) {
    return InvalidArgument("ndim is ", tensor.shape.size(), ", at most ", kNdimMax);
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t elements, ElementCount(tensor.shape));
  if (!CheckedMul<std::uint64_t>(elements, ElementSize(tensor))) {
    return MakeError(Code::kLimitExceeded, "the tensor's bytes do not fit 64 bits");
  }
  if (tensor.stored_cuts.empty() || tensor.stored_cuts.size() == tensor.shape.size()) return {};
  return InvalidArgument("stored_cuts has ", tensor.stored_cuts.size(), " extents, expected ",
                         tensor.shape.size(), ", the dimensions of shape ",
                         ShapeToString(tensor.shape));
}

Status CheckTensorParts(const TensorSpec& tensor) {
  SEALPOINT_RETURN_IF_ERROR(CheckText("tensor name", tensor.name, kNameSizeMaxBytes));
  SEALPOINT_RETURN_IF_ERROR(CheckElementSize(tensor));
  SEALPOINT_RETURN_IF_ERROR(CheckChunking(tensor));
  SEALPOINT_RETURN_IF_ERROR(CheckSize(tensor));
  for (const std::string& text : tensor.placement) {
    SEALPOINT_RETURN_IF_ERROR(CheckText("placement", text, kNameSizeMaxBytes));
  }
  return {};
}

}  // namespace

Status CheckMemory(const MemoryView& source, const Region& region, const TensorSpec& kind) {
  SEALPOINT_RETURN_IF_ERROR(layout::CheckView(source, region, kind.dtype, ElementSize(kind)));
  if (source.is_dense()) return {};
  // A strided copy moves whole elements, so none may be across two staging buffers.
  if (!source.is_host() && format::kSmallShardAlignment % ElementSize(kind) != 0) {
    return InvalidArgument("strided device memory with elements of ", ElementSize(kind),
                           " bytes, which do not divide ", format::kSmallShardAlignment);
  }
  return {};
}

Status CheckCutCount(std::uint64_t count, std::uint64_t count_max) {
  if (count <= count_max) return {};
  return RuleError(Code::kLimitExceeded, "R-IDX-04", "stored_cuts make ", count,
                   " boxes, expected at most ", count_max, ", the limit of shards");
}

Status CheckTensorSpec(const TensorSpec& tensor) {
  return CheckTensorParts(tensor).AtTensor(tensor.name);
}

Status CheckObjectSpec(const ObjectSpec& object) {
  Status status = CheckText("object name", object.name, kNameSizeMaxBytes);
  if (status.ok()) status = CheckText("media type", object.media_type, kMediaTypeSizeMaxBytes);
  if (status.ok() && CodecName(object.codec) == "unknown") {
    status = InvalidArgument("codec ", static_cast<std::uint32_t>(object.codec), " is not known");
  }
  return std::move(status).AtObject(object.name);
}

Status CheckSource(const TensorSpec& tensor, const Region& region, const MemoryView& source) {
  Status status = CheckRegion(tensor.shape, region);
  if (status.ok()) status = CheckMemory(source, region, tensor);
  return std::move(status).AtTensor(tensor.name);
}

std::uint32_t ElementSize(const TensorSpec& tensor) {
  return tensor.element_size != 0 ? tensor.element_size : DTypeSizeBytes(tensor.dtype);
}

metadata::TensorAttributes AttributesOf(const TensorSpec& tensor) {
  return {.name = tensor.name,
          .dtype = tensor.dtype,
          .element_size = ElementSize(tensor),
          .chunk_size = tensor.chunk_size_bytes,
          .shape = tensor.shape,
          .placement = tensor.placement,
          .attributes = tensor.attributes.encoded()};
}

bool IsEmpty(const TensorSpec& tensor) {
  return std::find(tensor.shape.begin(), tensor.shape.end(), 0u) != tensor.shape.end();
}

}  // namespace sealpoint::internal::writer
