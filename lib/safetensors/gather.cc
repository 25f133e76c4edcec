// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/layout/tiling.h"
#include "lib/safetensors/json_reader.h"
#include "lib/safetensors/model.h"

namespace sealpoint::internal::safetensors {
namespace {

using Offsets = std::map<std::string, std::vector<std::uint64_t>, std::less<>>;

std::vector<std::uint64_t> ReadOffsets(JsonReader& reader) {
  std::vector<std::uint64_t> offsets;
  std::string key;
  for (reader.BeginObject(); reader.NextKey(key);) {
    if (key != "saved_offsets") {
      reader.Skip();
      continue;
    }
    for (reader.BeginArray(); reader.NextElement();) {
      const std::optional<std::uint64_t> offset = reader.ReadSize();
      if (!offset) reader.Fail("saved_offsets has another value, expected integers from 0");
      offsets.push_back(offset.value_or(0));
    }
  }
  return offsets;
}

// Where the parts of a file lie in their tensors, as torch's HuggingFaceStorageWriter says.
Result<Offsets> OffsetsOf(const OpenedFile& file) {
  const auto* const found = FindMetadata(file.info.metadata, kShardingKey);
  if (found == nullptr) return Offsets();
  Offsets offsets;
  std::string key;
  JsonReader reader(*found);
  for (reader.BeginObject(); reader.NextKey(key);) offsets[key] = ReadOffsets(reader);
  reader.End();
  if (!reader.status().ok()) return Status(reader.status()).Prefixed(kShardingKey);
  return offsets;
}

Result<SafetensorsPart> PartOf(const HeaderTensor& tensor, const Offsets& offsets,
                               const OpenedFile& file, std::size_t number) {
  SafetensorsPart part{.file = number,
                       .offset = file.payload_begin + tensor.begin,
                       .box = {.offset = Shape(tensor.shape.size(), 0), .extent = tensor.shape}};
  const auto found = offsets.find(tensor.name);
  if (found == offsets.end()) return part;
  if (found->second.size() != tensor.shape.size()) {
    return MakeError(Code::kCorrupt, kShardingKey, " has ", found->second.size(),
                     " offsets, expected ", tensor.shape.size());
  }
  part.box.offset = found->second;
  return part;
}

// Adds a part. Errors: Corrupt (not of this tensor).
Status AddPart(const HeaderTensor& stored, SafetensorsPart part, SafetensorsTensor& tensor) {
  if (stored.dtype != tensor.dtype || stored.shape.size() != tensor.shape.size()) {
    return MakeError(Code::kCorrupt, "files disagree about its dtype or dimensions");
  }
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    // Each is below 2^62.
    tensor.shape[d] = std::max(tensor.shape[d], part.box.offset[d] + part.box.extent[d]);
  }
  const bool is_empty = stored.begin == stored.end;
  if (!is_empty) tensor.parts.push_back(std::move(part));
  return {};
}

// Errors: Corrupt, LimitExceeded: the parts are not exactly the tensor.
Status CheckParts(SafetensorsTensor& tensor, const Limits& limits) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t count, ElementCount(tensor.shape));
  const auto size = CheckedMul<std::uint64_t>(count, DTypeSizeBytes(tensor.dtype));
  if (!size) return MakeError(Code::kLimitExceeded, "tensor has more than 2^64 bytes");
  tensor.raw_bytes = *size;
  std::vector<Region> regions;
  for (const SafetensorsPart& part : tensor.parts) regions.emplace_back(part.box);
  SEALPOINT_ASSIGN_OR_RETURN(
      const auto fault,
      layout::FindTilingFault(tensor.shape, regions,
                              layout::TilingCornerCountMax(limits, regions.size())));
  if (!fault) return {};
  return MakeError(Code::kCorrupt, "parts of the tensor do not fit together: ",
                   fault->times_covered == 0 ? "none" : "several", " of them have the element at ",
                   ShapeToString(fault->element));
}

}  // namespace

const std::string* FindMetadata(const StringPairs& metadata, std::string_view key) {
  const auto found = std::ranges::find(metadata, key, &StringPairs::value_type::first);
  return found == metadata.end() ? nullptr : &found->second;
}

Result<std::vector<SafetensorsTensor>> GatherTensors(const std::vector<OpenedFile>& files,
                                                     bool is_sharded, const Limits& limits) {
  std::map<std::string, SafetensorsTensor, std::less<>> tensors;
  for (std::size_t number = 0; number < files.size(); ++number) {
    const OpenedFile& file = files[number];
    const std::string path = JoinPath(file.directory, file.entry);
    Result<Offsets> offsets = is_sharded ? OffsetsOf(file) : Offsets();
    if (!offsets.ok()) return std::move(offsets).error().AtPath(path);
    for (const HeaderTensor& stored : file.tensors) {
      auto [at, is_new] = tensors.try_emplace(
          stored.name,
          SafetensorsTensor{stored.name, stored.dtype, Shape(stored.shape.size(), 0), 0, {}});
      if (!is_new && !is_sharded) {
        return MakeError(Code::kCorrupt, "stored in two files").AtPath(path).AtTensor(stored.name);
      }
      Result<SafetensorsPart> part = PartOf(stored, *offsets, file, number);
      Status added = part.ok() ? AddPart(stored, *std::move(part), at->second) : part.error();
      if (!added.ok()) return std::move(added).AtPath(path).AtTensor(stored.name);
    }
    if (tensors.size() > limits.tensor_count_max) {
      return MakeError(Code::kLimitExceeded, "model has more than ", limits.tensor_count_max,
                       " tensors")
          .AtPath(path);
    }
  }
  std::vector<SafetensorsTensor> sorted;
  sorted.reserve(tensors.size());
  for (auto& [name, tensor] : tensors) {
    Status checked = CheckParts(tensor, limits);
    if (!checked.ok()) {
      const std::size_t file = tensor.parts.empty() ? 0 : tensor.parts.front().file;
      return std::move(checked)
          .AtPath(JoinPath(files[file].directory, files[file].entry))
          .AtTensor(name);
    }
    sorted.push_back(std::move(tensor));
  }
  return sorted;
}

}  // namespace sealpoint::internal::safetensors
