// SPDX-License-Identifier: Apache-2.0
#include "lib/c/memory.h"

#include <limits>

namespace sealpoint::c_api {
namespace {

Status CheckNdim(std::uint32_t ndim, std::string_view what) {
  return CheckEnum(ndim, kNdimMax, std::string("ndim of ") + std::string(what));
}

// A source and a destination have the same fields.
template <typename Given, typename View>
Status TakeMemory(const Given* given, std::string_view what, View& taken) {
  SEALPOINT_C_TRY(NotNull(given, what));
  Given memory{};
  SEALPOINT_C_TRY(Take(given, memory));
  SEALPOINT_C_TRY(CheckEnum(memory.memory, SEALPOINT_MEMORY_CUDA, "memory"));
  DType dtype{};
  SEALPOINT_C_TRY(TakeDType(memory.dtype, dtype));
  std::vector<std::int64_t> strides;
  SEALPOINT_C_TRY(CheckEnum(memory.stride_count, kNdimMax, "stride_count"));
  SEALPOINT_C_TRY(CheckArray(memory.strides_bytes, memory.stride_count, "strides_bytes"));
  if (memory.stride_count == 0 && memory.strides_bytes != nullptr) {
    return {Code::kInvalidArgument, "strides_bytes is set, but stride_count is 0"};
  }
  strides.assign(memory.strides_bytes, memory.strides_bytes + memory.stride_count);
  taken = memory.memory == SEALPOINT_MEMORY_HOST
              ? View::Host(memory.data, memory.size_bytes, std::move(strides), memory.origin_bytes)
              : View::Cuda(memory.data, memory.size_bytes, memory.device, memory.stream,
                           std::move(strides), memory.origin_bytes);
  taken.dtype = dtype;
  return {};
}

}  // namespace

Status TakeDType(std::uint32_t given, DType& taken) {
  SEALPOINT_C_TRY(CheckEnum(given, std::numeric_limits<std::uint16_t>::max(), "dtype"));
  taken = static_cast<DType>(given);
  return {};
}

Status TakeCodec(std::uint32_t given, Codec& taken) {
  SEALPOINT_C_TRY(CheckEnum(given, std::numeric_limits<std::uint16_t>::max(), "codec"));
  taken = static_cast<Codec>(given);
  return {};
}

Status TakeShape(const std::uint64_t* extents, std::uint32_t ndim, std::string_view what,
                 Shape& taken) {
  SEALPOINT_C_TRY(CheckNdim(ndim, what));
  SEALPOINT_C_TRY(CheckArray(extents, ndim, what));
  taken = ndim == 0 ? Shape() : Shape(extents, extents + ndim);
  return {};
}

Status TakeRegion(const sealpoint_region* given, std::optional<Region>& taken) {
  if (given == nullptr) return {};
  sealpoint_region region;
  SEALPOINT_C_TRY(Take(given, region));
  Box box;
  SEALPOINT_C_TRY(TakeShape(region.offset, region.ndim, "offset of the region", box.offset));
  SEALPOINT_C_TRY(TakeShape(region.extent, region.ndim, "extent of the region", box.extent));
  if (region.run_begin == 0 && region.run_end == 0) {
    // Else the element count, which the box then stands for, would wrap around.
    if (const auto count = ElementCount(box.extent); !count.ok()) return count.error();
    taken = Region::Of(std::move(box));
  } else {
    taken = Region(std::move(box), Run{region.run_begin, region.run_end});
  }
  if (taken->run.begin <= taken->run.end) return {};
  return {Code::kInvalidArgument, "run_begin is " + std::to_string(taken->run.begin) +
                                      ", expected at most run_end, " +
                                      std::to_string(taken->run.end)};
}

Status TakeDestination(const sealpoint_destination* given, MutableMemoryView& taken) {
  return TakeMemory(given, "destination", taken);
}

Status TakeSource(const sealpoint_source* given, MemoryView& taken) {
  return TakeMemory(given, "source", taken);
}

Status TakeTensor(const sealpoint_tensor_spec* given, TensorSpec& taken) {
  SEALPOINT_C_TRY(NotNull(given, "tensor"));
  sealpoint_tensor_spec spec;
  SEALPOINT_C_TRY(Take(given, spec));
  SEALPOINT_C_TRY(Take(spec.name, "name", taken.name));
  SEALPOINT_C_TRY(TakeDType(spec.dtype, taken.dtype));
  SEALPOINT_C_TRY(TakeShape(spec.shape, spec.ndim, "shape", taken.shape));
  SEALPOINT_C_TRY(TakeCodec(spec.codec, taken.codec));
  SEALPOINT_C_TRY(Take(spec.group, "group", taken.group));
  taken.element_size = spec.element_size;
  if (spec.chunk_size_bytes != 0) taken.chunk_size_bytes = spec.chunk_size_bytes;
  if (spec.codec_level != 0) taken.codec_level = spec.codec_level;
  return {};
}

Status TakeMesh(const sealpoint_mesh_axis* axes, std::uint64_t count, MeshAxes& taken) {
  SEALPOINT_C_TRY(CheckArray(axes, count, "mesh_axes"));
  for (std::uint64_t i = 0; i < count; ++i) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
    std::string name;
    SEALPOINT_C_TRY(Take(axes[i].name, "name of a mesh axis", name));
    if (axes[i].size > kMax) {
      return {Code::kInvalidArgument, "mesh axis " + name + " has a size of " +
                                          std::to_string(axes[i].size) + ", expected at most " +
                                          std::to_string(kMax)};
    }
    taken.emplace_back(std::move(name), static_cast<std::uint32_t>(axes[i].size));
  }
  return {};
}

Status TakeProvenance(const sealpoint_key_value* pairs, std::uint64_t count,
                      ProvenanceList& taken) {
  SEALPOINT_C_TRY(CheckArray(pairs, count, "provenance"));
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string key;
    std::string value;
    SEALPOINT_C_TRY(Take(pairs[i].key, "key of the provenance", key));
    SEALPOINT_C_TRY(Take(pairs[i].value, "value of the provenance", value));
    taken.emplace_back(std::move(key), std::move(value));
  }
  return {};
}

std::optional<ParentRef> TakeParent(const sealpoint_id& attempt, std::uint64_t sequence) {
  const auto id = In<AttemptId>(attempt);
  if (id.is_zero()) return {};
  return ParentRef{id, sequence};
}

sealpoint_commit_info Out(const CommitInfo& info) {
  sealpoint_commit_info out{};
  out.attempt = Out(info.attempt);
  out.parent = Out(info.parent);
  out.sequence = info.sequence;
  out.step = info.step;
  out.blob_count = info.blob_count;
  out.tensor_count = info.tensor_count;
  out.raw_bytes = info.raw_bytes;
  out.total_bytes = info.total_bytes;
  out.index_bytes = info.index_bytes;
  return out;
}

}  // namespace sealpoint::c_api
