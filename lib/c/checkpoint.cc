// SPDX-License-Identifier: Apache-2.0
#include "lib/c/checkpoint.h"

#include <algorithm>
#include <ranges>
#include <string>

#include "lib/c/read.h"

namespace sealpoint::c_api {
namespace {

constexpr std::uint32_t kDirectIoOff = 2;  // 1: on

Result<std::unique_ptr<sealpoint_checkpoint>> HandleOf(Result<std::unique_ptr<Checkpoint>> opened) {
  if (!opened.ok()) return opened.error();
  auto handle = std::make_unique<sealpoint_checkpoint>();
  handle->checkpoint = std::move(opened).value();
  return handle;
}

const std::vector<ObjectInfo>& ObjectsOf(const sealpoint_checkpoint& handle) {
  return handle.objects.Get([&] { return handle.checkpoint->objects(); });
}

// The number of the tensor of this name, by which alone its name lives long enough.
Result<std::size_t> NumberOf(const Checkpoint& checkpoint, std::string_view name) {
  const auto numbers = std::views::iota(std::size_t{0}, checkpoint.tensor_count());
  const auto found = std::ranges::lower_bound(
      numbers, name, {}, [&](std::size_t i) { return checkpoint.tensor_name(i); });
  if (found != numbers.end() && checkpoint.tensor_name(*found) == name) return *found;
  return Status(Code::kNotFound, "there is no tensor of this name")
      .AtPath(checkpoint.path())
      .AtTensor(name);
}

Status FillTensor(const Checkpoint& checkpoint, std::size_t number, sealpoint_tensor_info* out) {
  const TensorInfo info = checkpoint.tensor(number);
  sealpoint_tensor_info filled{};
  filled.dtype = static_cast<std::uint32_t>(info.dtype);
  filled.name = Out(checkpoint.tensor_name(number));
  filled.index = number;
  filled.element_size = info.element_size;
  filled.ndim = static_cast<std::uint32_t>(info.shape.size());
  filled.chunk_size_bytes = info.chunk_size_bytes;
  filled.raw_bytes = info.raw_bytes;
  filled.shard_count = info.shard_count;
  std::ranges::copy(info.shape, filled.shape);
  return Fill(filled, out);
}

Status FillObject(const ObjectInfo& object, sealpoint_object_info* out) {
  sealpoint_object_info filled{};
  filled.name = Out(object.name);
  filled.media_type = Out(object.media_type);
  filled.size_bytes = object.size_bytes;
  return Fill(filled, out);
}

Status TakePatterns(const sealpoint_string* patterns, std::uint64_t count,
                    std::vector<std::string>& taken) {
  SEALPOINT_C_TRY(CheckArray(patterns, count, "patterns"));
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string pattern;
    SEALPOINT_C_TRY(Take(patterns[i], "a pattern", pattern));
    taken.push_back(std::move(pattern));
  }
  return {};
}

}  // namespace

Status TakeOpenOptions(const sealpoint_open_options* given, OpenOptions& taken) {
  sealpoint_open_options options;
  SEALPOINT_C_TRY(Take(given, options));
  taken.check_files = options.skip_file_check == 0;
  if (options.direct_io > kDirectIoOff) {
    return {Code::kInvalidArgument,
            "direct_io is " + std::to_string(options.direct_io) + ", expected 0, 1 or 2"};
  }
  if (options.direct_io != 0) taken.direct_io = options.direct_io != kDirectIoOff;
  if (options.memory_budget_bytes != 0) taken.memory_budget_bytes = options.memory_budget_bytes;
  return {};
}

}  // namespace sealpoint::c_api

using sealpoint::ByteSpan;
using sealpoint::Status;
using sealpoint::c_api::CheckIndex;
using sealpoint::c_api::CheckOut;
using sealpoint::c_api::Guarded;
using sealpoint::c_api::Make;
using sealpoint::c_api::NotNull;
using sealpoint::c_api::Out;
using sealpoint::c_api::Take;
using OpenedHandle = sealpoint::Result<std::unique_ptr<sealpoint_checkpoint>>;

extern "C" {

int32_t sealpoint_checkpoint_open(sealpoint_string path, const sealpoint_open_options* options,
                                  sealpoint_checkpoint** out, sealpoint_error** error) {
  return Make(out, error, [&]() -> OpenedHandle {
    std::string taken_path;
    sealpoint::OpenOptions taken;
    SEALPOINT_C_TRY(Take(path, "path", taken_path));
    SEALPOINT_C_TRY(sealpoint::c_api::TakeOpenOptions(options, taken));
    return sealpoint::c_api::HandleOf(sealpoint::Checkpoint::Open(taken_path, std::move(taken)));
  });
}

int32_t sealpoint_checkpoint_open_from(sealpoint_string path, sealpoint_bytes marker,
                                       sealpoint_bytes index, const sealpoint_open_options* options,
                                       sealpoint_checkpoint** out, sealpoint_error** error) {
  return Make(out, error, [&]() -> OpenedHandle {
    std::string taken_path;
    ByteSpan marker_span;
    ByteSpan index_span;
    sealpoint::OpenOptions taken;
    SEALPOINT_C_TRY(Take(path, "path", taken_path));
    SEALPOINT_C_TRY(Take(marker, "marker", marker_span));
    SEALPOINT_C_TRY(Take(index, "index", index_span));
    SEALPOINT_C_TRY(sealpoint::c_api::TakeOpenOptions(options, taken));
    return sealpoint::c_api::HandleOf(
        sealpoint::Checkpoint::OpenFrom(taken_path, {marker_span.begin(), marker_span.end()},
                                        {index_span.begin(), index_span.end()}, std::move(taken)));
  });
}

void sealpoint_checkpoint_free(sealpoint_checkpoint* checkpoint) { delete checkpoint; }

sealpoint_bytes sealpoint_checkpoint_marker(const sealpoint_checkpoint* checkpoint) {
  return checkpoint == nullptr ? sealpoint_bytes{nullptr, 0}
                               : Out(checkpoint->checkpoint->marker_bytes());
}

sealpoint_bytes sealpoint_checkpoint_index(const sealpoint_checkpoint* checkpoint) {
  return checkpoint == nullptr ? sealpoint_bytes{nullptr, 0}
                               : Out(checkpoint->checkpoint->index_bytes());
}

sealpoint_string sealpoint_checkpoint_path(const sealpoint_checkpoint* checkpoint) {
  return checkpoint == nullptr ? sealpoint_string{"", 0} : Out(checkpoint->checkpoint->path());
}

int32_t sealpoint_checkpoint_get_info(const sealpoint_checkpoint* checkpoint,
                                      sealpoint_checkpoint_info* out, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(checkpoint, "checkpoint"));
    SEALPOINT_C_TRY(CheckOut(out));
    const sealpoint::Checkpoint& of = *checkpoint->checkpoint;
    sealpoint_checkpoint_info filled{};
    filled.attempt = Out(of.attempt());
    filled.parent = Out(of.parent());
    filled.sequence = of.sequence();
    filled.step = of.step();
    filled.created_unix_ns = of.created_unix_ns();
    filled.raw_bytes = of.raw_bytes();
    filled.tensor_count = of.tensor_count();
    filled.object_count = of.object_count();
    filled.blob_count = of.blobs().size();
    filled.provenance_count = of.provenance().size();
    filled.mesh_axis_count = of.mesh().size();
    return sealpoint::c_api::Fill(filled, out);
  });
}

int32_t sealpoint_checkpoint_tensor(const sealpoint_checkpoint* checkpoint, uint64_t index,
                                    sealpoint_tensor_info* out, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(checkpoint, "checkpoint"));
    SEALPOINT_C_TRY(CheckOut(out));
    SEALPOINT_C_TRY(CheckIndex(index, checkpoint->checkpoint->tensor_count(), "tensors"));
    return sealpoint::c_api::FillTensor(*checkpoint->checkpoint, index, out);
  });
}

int32_t sealpoint_checkpoint_find_tensor(const sealpoint_checkpoint* checkpoint,
                                         sealpoint_string name, sealpoint_tensor_info* out,
                                         sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(checkpoint, "checkpoint"));
    SEALPOINT_C_TRY(CheckOut(out));
    std::string_view taken;
    SEALPOINT_C_TRY(Take(name, "name", taken));
    const auto number = sealpoint::c_api::NumberOf(*checkpoint->checkpoint, taken);
    if (!number.ok()) return number.error();
    return sealpoint::c_api::FillTensor(*checkpoint->checkpoint, *number, out);
  });
}

int32_t sealpoint_checkpoint_match_tensors(const sealpoint_checkpoint* checkpoint,
                                           const sealpoint_string* patterns, uint64_t pattern_count,
                                           uint64_t* indices, uint64_t capacity, uint64_t* count,
                                           sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(checkpoint, "checkpoint"));
    SEALPOINT_C_TRY(NotNull(count, "count"));
    SEALPOINT_C_TRY(sealpoint::c_api::CheckArray(indices, capacity, "indices"));
    std::vector<std::string> taken;
    SEALPOINT_C_TRY(sealpoint::c_api::TakePatterns(patterns, pattern_count, taken));
    const auto numbers = checkpoint->checkpoint->MatchTensorNumbers(taken);
    if (!numbers.ok()) return numbers.error();
    *count = numbers->size();
    std::copy_n(numbers->begin(), std::min<std::uint64_t>(capacity, *count), indices);
    return {};
  });
}

int32_t sealpoint_checkpoint_object(const sealpoint_checkpoint* checkpoint, uint64_t index,
                                    sealpoint_object_info* out, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(checkpoint, "checkpoint"));
    SEALPOINT_C_TRY(CheckOut(out));
    SEALPOINT_C_TRY(CheckIndex(index, checkpoint->checkpoint->object_count(), "objects"));
    return sealpoint::c_api::FillObject(sealpoint::c_api::ObjectsOf(*checkpoint)[index], out);
  });
}

int32_t sealpoint_checkpoint_find_object(const sealpoint_checkpoint* checkpoint,
                                         sealpoint_string name, sealpoint_object_info* out,
                                         sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(checkpoint, "checkpoint"));
    SEALPOINT_C_TRY(CheckOut(out));
    std::string_view taken;
    SEALPOINT_C_TRY(Take(name, "name", taken));
    if (!checkpoint->checkpoint->FindObject(taken)) {
      return Status(sealpoint::Code::kNotFound, "there is no object of this name")
          .AtPath(checkpoint->checkpoint->path())
          .AtObject(taken);
    }
    const auto& all = sealpoint::c_api::ObjectsOf(*checkpoint);
    return sealpoint::c_api::FillObject(
        *std::ranges::lower_bound(all, taken, {}, &sealpoint::ObjectInfo::name), out);
  });
}

int32_t sealpoint_checkpoint_read_object(const sealpoint_checkpoint* checkpoint,
                                         sealpoint_string name, sealpoint_buffer** out,
                                         sealpoint_error** error) {
  return Make(out, error, [&]() -> sealpoint::Result<std::unique_ptr<sealpoint_buffer>> {
    SEALPOINT_C_TRY(NotNull(checkpoint, "checkpoint"));
    std::string_view taken;
    SEALPOINT_C_TRY(Take(name, "name", taken));
    auto bytes = checkpoint->checkpoint->ReadObject(taken);
    if (!bytes.ok()) return bytes.error();
    return std::make_unique<sealpoint_buffer>(std::move(bytes).value());
  });
}

int32_t sealpoint_checkpoint_provenance(const sealpoint_checkpoint* checkpoint, uint64_t index,
                                        sealpoint_string* key, sealpoint_string* value,
                                        sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(checkpoint, "checkpoint"));
    const auto& all =
        checkpoint->provenance.Get([&] { return checkpoint->checkpoint->provenance(); });
    SEALPOINT_C_TRY(CheckIndex(index, all.size(), "entries of the provenance"));
    if (key != nullptr) *key = Out(all[index].first);
    if (value != nullptr) *value = Out(all[index].second);
    return {};
  });
}

int32_t sealpoint_checkpoint_mesh_axis(const sealpoint_checkpoint* checkpoint, uint64_t index,
                                       sealpoint_string* name, uint32_t* size,
                                       sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(checkpoint, "checkpoint"));
    const auto& all = checkpoint->mesh.Get([&] { return checkpoint->checkpoint->mesh(); });
    SEALPOINT_C_TRY(CheckIndex(index, all.size(), "axes of the mesh"));
    if (name != nullptr) *name = Out(all[index].first);
    if (size != nullptr) *size = all[index].second;
    return {};
  });
}

}  // extern "C"
