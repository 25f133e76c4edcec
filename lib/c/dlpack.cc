// SPDX-License-Identifier: Apache-2.0
#include "lib/c/memory.h"

namespace sealpoint::c_api {
namespace {

Status TakeDlDtype(const sealpoint_dl_tensor& given, DType& taken) {
  const DlpackDType dlpack{given.dtype.code, given.dtype.bits, given.dtype.lanes};
  if (const auto found = DTypeOfDlpack(dlpack)) {
    taken = *found;
    return {};
  }
  return {Code::kUnsupported,
          "dtype of the array is DLPack's code " + std::to_string(given.dtype.code) + " with " +
              std::to_string(given.dtype.bits) + " bits and " + std::to_string(given.dtype.lanes) +
              " lanes, expected one of docs/guides/c.md"};
}

Status TakeDlDevice(const sealpoint_dl_tensor& given, void* stream, MutableMemoryView& taken) {
  const auto type = static_cast<std::int32_t>(given.device.device_type);
  if (type == kDlpackCuda || type == kDlpackCudaManaged) {
    taken.device = given.device.device_id;
    taken.stream = stream;
  } else if (type != kDlpackCpu && type != kDlpackCudaHost) {
    return {Code::kUnsupported, "device of the array is DLPack's type " + std::to_string(type) +
                                    ", expected CPU (1, 3) or CUDA (2, 13)"};
  }
  return {};
}

Status TooLarge() {
  return {Code::kInvalidArgument, "the array has more bytes than an address can have"};
}

// What strides make of the shape: whether it is dense, and the lowest and the last byte, counted
// from element 0.
struct Extent {
  bool is_dense = true;
  std::int64_t lowest = 0;
  std::int64_t end = 0;
};
Result<Extent> ExtentOf(const sealpoint_dl_tensor& given, std::int64_t element_size) {
  Extent extent;
  std::int64_t dense_stride = 1;
  std::int64_t highest = 0;
  for (std::int32_t i = given.ndim - 1; i >= 0; --i) {
    const std::int64_t size = given.shape[i];
    const std::int64_t stride = given.strides == nullptr ? dense_stride : given.strides[i];
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(size - 1, stride, &reach) ||
        __builtin_mul_overflow(reach, element_size, &reach) ||
        __builtin_mul_overflow(dense_stride, size, &dense_stride) ||
        __builtin_add_overflow(reach < 0 ? extent.lowest : highest, reach,
                               reach < 0 ? &extent.lowest : &highest)) {
      return TooLarge();
    }
    if (size > 1 && stride != dense_stride / size) extent.is_dense = false;
  }
  if (__builtin_add_overflow(highest, element_size, &extent.end)) return TooLarge();
  return extent;
}

// The strides in bytes; those of extents of one, which any value may stand for, are made harmless.
Status TakeStrides(const sealpoint_dl_tensor& given, std::int64_t element_size,
                   std::vector<std::int64_t>& taken) {
  for (std::int32_t i = 0; i < given.ndim; ++i) {
    std::int64_t bytes = element_size;
    if (given.shape[i] > 1 && __builtin_mul_overflow(given.strides[i], element_size, &bytes)) {
      return TooLarge();
    }
    taken.push_back(bytes);
  }
  return {};
}

}  // namespace

Result<DlpackDType> DlDtypeOf(DType dtype) {
  if (const auto found = DlpackOf(dtype)) return *found;
  return Status(Code::kUnsupported, "dtype " + std::to_string(static_cast<std::uint16_t>(dtype)) +
                                        " is not registered, so it has no DLPack type");
}

Status TakeArray(const sealpoint_dl_tensor* given, void* stream, Array& taken) {
  SEALPOINT_C_TRY(NotNull(given, "the array"));
  if (given->ndim < 0) return {Code::kInvalidArgument, "ndim of the array is negative"};
  SEALPOINT_C_TRY(
      CheckEnum(static_cast<std::uint32_t>(given->ndim), kNdimMax, "ndim of the array"));
  SEALPOINT_C_TRY(
      CheckArray(given->shape, static_cast<std::uint64_t>(given->ndim), "shape of the array"));
  bool is_empty = false;
  for (std::int32_t i = 0; i < given->ndim; ++i) {
    if (given->shape[i] < 0) return {Code::kInvalidArgument, "an extent of the array is negative"};
    is_empty = is_empty || given->shape[i] == 0;
    taken.shape.push_back(static_cast<std::uint64_t>(given->shape[i]));
  }
  DType dtype{};
  SEALPOINT_C_TRY(TakeDlDtype(*given, dtype));
  taken.view.dtype = dtype;
  SEALPOINT_C_TRY(TakeDlDevice(*given, stream, taken.view));
  if (is_empty) return {};
  SEALPOINT_C_TRY(NotNull(given->data, "data of the array"));

  const auto element_size = static_cast<std::int64_t>(DTypeSizeBytes(dtype));
  const auto extent = ExtentOf(*given, element_size);
  if (!extent.ok()) return extent.error();
  const auto begin = DlpackBegin(given->data, given->byte_offset, extent->lowest, extent->end);
  if (!begin) return TooLarge();
  taken.view.data = *begin;
  taken.view.size_bytes =
      static_cast<std::size_t>(extent->end) - static_cast<std::size_t>(extent->lowest);
  if (extent->is_dense) return {};
  taken.view.origin_bytes = static_cast<std::size_t>(-extent->lowest);
  return TakeStrides(*given, element_size, taken.view.strides_bytes);
}

Status CheckArrayShape(const Array& array, const std::optional<Region>& region,
                       const Shape& shape) {
  Shape expected = shape;
  if (region && *region == Region::Of(region->box)) {
    expected = region->box.extent;
  } else if (region) {
    expected = {region->element_count()};
    if (!array.view.is_dense()) {
      return {Code::kInvalidArgument, "the array is strided, expected a dense one for a run"};
    }
  }
  if (array.shape == expected) return {};
  return {Code::kInvalidArgument, "shape of the array is " + ShapeToString(array.shape) +
                                      ", expected " + ShapeToString(expected)};
}

}  // namespace sealpoint::c_api
