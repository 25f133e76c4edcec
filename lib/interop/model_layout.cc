// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/model_layout.h"

#include <algorithm>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/safetensors/dtype_name.h"
#include "lib/safetensors/index_file.h"

namespace sealpoint::internal::interop {
namespace {

Status CheckTensor(const TensorInfo& tensor) {
  Shape shape = tensor.shape;
  if (safetensors::SafetensorsDTypeName(tensor.dtype).empty()) {
    return MakeError(Code::kUnsupported, "dtype is ", DTypeName(tensor.dtype),
                     ", which safetensors lacks")
        .AtTensor(tensor.name);
  }
  if (!safetensors::ShapeToSafetensors(tensor.dtype, shape)) {
    return MakeError(Code::kUnsupported,
                     "a tensor of F4 without dimensions has no shape in safetensors")
        .AtTensor(tensor.name);
  }
  if (tensor.name == "__metadata__") {
    return MakeError(Code::kUnsupported, "safetensors has no tensor of this name")
        .AtTensor(tensor.name);
  }
  return {};
}

// Large elements come first, so that all are aligned.
bool ComesBefore(const TensorInfo& a, const TensorInfo& b) {
  return std::pair(b.element_size, std::string_view(a.name)) <
         std::pair(a.element_size, std::string_view(b.name));
}

Status Finish(PlannedFile& file, const safetensors::StringPairs& metadata,
              std::uint64_t header_size_max) {
  std::ranges::sort(file.tensors, ComesBefore);
  std::vector<safetensors::HeaderTensor> entries;
  for (const TensorInfo& tensor : file.tensors) {
    const std::uint64_t begin = file.payload_size;
    file.payload_size += tensor.raw_bytes;
    entries.push_back({.name = tensor.name,
                       .dtype = tensor.dtype,
                       .shape = tensor.shape,
                       .begin = begin,
                       .end = file.payload_size});
  }
  file.head = safetensors::EncodeSafetensorsHeader(metadata, entries);
  const std::uint64_t size = file.head.size() - safetensors::kSafetensorsLengthBytes;
  if (size <= header_size_max) return {};
  return MakeError(Code::kLimitExceeded, "header of ", file.name, " would have ", size,
                   " bytes, expected ", header_size_max,
                   " at most; leave objects out, or make smaller files");
}

}  // namespace

Result<std::vector<PlannedFile>> LayOutModel(const LayoutOptions& options,
                                             safetensors::StringPairs metadata,
                                             std::vector<TensorInfo> tensors) {
  const bool is_directory = options.file_name.empty();
  std::vector<PlannedFile> files(1);
  std::uint64_t size = 0;
  std::uint64_t total = 0;
  for (TensorInfo& tensor : tensors) {
    SEALPOINT_RETURN_IF_ERROR(CheckTensor(tensor));
    const bool is_full = is_directory && !files.back().tensors.empty() &&
                         (size > options.shard_size_max_bytes ||
                          tensor.raw_bytes > options.shard_size_max_bytes - size);
    if (is_full) {
      files.emplace_back();
      size = 0;
    }
    size += tensor.raw_bytes;
    total += tensor.raw_bytes;
    files.back().tensors.push_back(std::move(tensor));
  }
  const std::size_t count = files.size();
  safetensors::StringPairs places;
  for (std::size_t i = 0; i < count; ++i) {
    files[i].name = !is_directory ? options.file_name
                    : count == 1  ? "model.safetensors"
                                  : safetensors::NumberedFile(i + 1, count);
    SEALPOINT_RETURN_IF_ERROR(Finish(files[i], metadata, options.header_size_max_bytes));
    metadata = {{"format", "pt"}};
    for (const TensorInfo& tensor : files[i].tensors) {
      places.emplace_back(tensor.name, files[i].name);
    }
  }
  if (count == 1) return files;
  static_cast<void>(safetensors::SortUnique(places));
  files.push_back({.name = "model.safetensors.index.json",
                   .head = safetensors::EncodeSafetensorsIndex(places, total),
                   .tensors = {},
                   .payload_size = 0});
  return files;
}

}  // namespace sealpoint::internal::interop
