// SPDX-License-Identifier: Apache-2.0
#include "lib/safetensors/header.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/safetensors/dtype_name.h"
#include "lib/safetensors/json_reader.h"

namespace sealpoint::internal::safetensors {
namespace {

// More dimensions than these are a mistake, or an attack.
constexpr std::size_t kDimensionsMax = 64;

// What an entry of the header says; each part nothing if it is missing or malformed.
struct Entry {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<std::uint64_t>> shape;
  std::optional<std::vector<std::uint64_t>> offsets;
  int member_count = 0;  // of these three
};

// A list of sizes. Nothing if it is another value, or if one of them is none.
std::optional<std::vector<std::uint64_t>> ReadSizes(JsonReader& reader) {
  if (reader.Peek() != JsonReader::Kind::kArray) {
    reader.Skip();
    return std::nullopt;
  }
  std::optional<std::vector<std::uint64_t>> sizes(std::in_place);
  for (reader.BeginArray(); reader.NextElement();) {
    std::optional<std::uint64_t> size;
    if (reader.Peek() == JsonReader::Kind::kNumber) {
      size = reader.ReadSize();
    } else {
      reader.Skip();
    }
    if (!size || (sizes && sizes->size() == kDimensionsMax)) sizes.reset();
    if (sizes) sizes->push_back(*size);
  }
  return sizes;
}

// Other members are passed over, as the format's own reader does it.
void ReadMember(JsonReader& reader, std::string_view key, Entry& entry) {
  const bool is_known = key == "shape" || key == "data_offsets" || key == "dtype";
  if (is_known) ++entry.member_count;
  if (key == "shape") {
    entry.shape = ReadSizes(reader);
  } else if (key == "data_offsets") {
    entry.offsets = ReadSizes(reader);
  } else if (key == "dtype" && reader.Peek() == JsonReader::Kind::kString) {
    reader.ReadString(entry.dtype.emplace());
  } else {
    reader.Skip();
  }
}

Entry ReadEntry(JsonReader& reader, std::string name) {
  Entry entry{.name = std::move(name)};
  if (reader.Peek() != JsonReader::Kind::kObject) {
    reader.Skip();
    return entry;
  }
  StringPairs keys;
  std::string key;
  for (reader.BeginObject(); reader.NextKey(key);) {
    ReadMember(reader, key, entry);
    keys.emplace_back(key, "");
  }
  if (!SortUnique(keys)) reader.Fail("duplicate key");
  return entry;
}

Result<HeaderTensor> TensorOf(Entry entry) {
  const auto corrupt = [](const auto&... parts) { return MakeError(Code::kCorrupt, parts...); };
  if (entry.member_count != 3) {
    return corrupt("entry of the header lacks dtype, shape or data_offsets");
  }
  if (!entry.shape || !entry.offsets || entry.offsets->size() != 2) {
    return corrupt("shape or data_offsets has other values, expected a list of sizes");
  }
  HeaderTensor tensor{.name = std::move(entry.name),
                      .dtype = DTypeOfSafetensors(entry.dtype.value_or("")),
                      .shape = *std::move(entry.shape),
                      .begin = entry.offsets->front(),
                      .end = entry.offsets->back()};
  if (tensor.dtype == DType::kNone) {
    return MakeError(Code::kUnsupported, "dtype is '", entry.dtype.value_or(""),
                     "', which the format lacks");
  }
  const std::string shape = ShapeToString(tensor.shape);
  if (!ShapeOfSafetensors(tensor.dtype, tensor.shape)) {
    return MakeError(Code::kUnsupported, "shape of an F4 tensor is ", shape,
                     ", expected an even last extent, as two elements share a byte");
  }
  const Result<std::uint64_t> count = ElementCount(tensor.shape);
  const auto size =
      count.ok() ? CheckedMul<std::uint64_t>(*count, DTypeSizeBytes(tensor.dtype)) : std::nullopt;
  if (!size || CheckedAdd(tensor.begin, *size) != tensor.end) {
    return corrupt("data_offsets are [", tensor.begin, ", ", tensor.end, "], and dtype and shape ",
                   shape, " have ", size ? StrCat(*size) : "more than 2^64", " bytes");
  }
  return tensor;
}

// Each byte behind the header belongs to exactly one tensor.
Status CheckRanges(const std::vector<HeaderTensor>& tensors, std::uint64_t payload_size) {
  std::uint64_t end = 0;
  for (const HeaderTensor& tensor : tensors) {
    if (tensor.begin != end) {
      return MakeError(Code::kCorrupt, "its bytes begin at ", tensor.begin,
                       " after the header, expected ", end, ", the end of the preceding tensors")
          .AtTensor(tensor.name);
    }
    end = tensor.end;
  }
  if (end > payload_size) {
    return MakeError(Code::kIncomplete, "file has ", payload_size,
                     " bytes after its header, expected ", end);
  }
  if (end < payload_size) {
    return MakeError(Code::kCorrupt, "file has ", payload_size,
                     " bytes after its header, of which ", payload_size - end,
                     " belong to no tensor");
  }
  return {};
}

// __metadata__: strings by name; or null, which is none.
Status ReadMetadata(JsonReader& reader, StringPairs& metadata) {
  const Status wrong = MakeError(Code::kCorrupt, "__metadata__ has a value that is not a string")
                           .AtOffset(kSafetensorsLengthBytes);
  if (reader.Peek() == JsonReader::Kind::kLiteral) {
    return reader.ReadLiteral() == "null" ? Status() : wrong;
  }
  if (reader.Peek() != JsonReader::Kind::kObject) {
    reader.Skip();
    return wrong;
  }
  Status status;
  std::string key;
  for (reader.BeginObject(); reader.NextKey(key);) {
    metadata.emplace_back(key, "");
    if (reader.Peek() == JsonReader::Kind::kString) {
      reader.ReadString(metadata.back().second);
    } else {
      status = wrong;
      reader.Skip();
    }
  }
  if (!SortUnique(metadata)) reader.Fail("duplicate key");
  return status;
}

}  // namespace

bool SortUnique(StringPairs& pairs) {
  using Pair = StringPairs::value_type;
  std::ranges::sort(pairs, {}, &Pair::first);
  return std::ranges::adjacent_find(pairs, {}, &Pair::first) == pairs.end();
}

// What is wrong with an entry counts only if the text as a whole is JSON: all of it is read first.
Result<SafetensorsHeader> DecodeSafetensorsHeader(std::string_view text,
                                                  std::uint64_t payload_size) {
  SafetensorsHeader header;
  JsonReader reader(text);
  Status about_metadata;
  Status about_tensors;
  bool has_metadata = false;
  std::string key;
  for (reader.BeginObject(); reader.NextKey(key);) {
    if (key == "__metadata__") {
      if (std::exchange(has_metadata, true)) reader.Fail("duplicate key");
      about_metadata = ReadMetadata(reader, header.metadata);
      continue;
    }
    Result<HeaderTensor> tensor = TensorOf(ReadEntry(reader, key));
    if (!tensor.ok() && about_tensors.ok()) about_tensors = tensor.status().AtTensor(key);
    header.tensors.push_back(tensor.ok() ? *std::move(tensor) : HeaderTensor{.name = key});
  }
  reader.End();
  std::ranges::sort(header.tensors, {}, &HeaderTensor::name);
  if (std::ranges::adjacent_find(header.tensors, {}, &HeaderTensor::name) != header.tensors.end()) {
    reader.Fail("duplicate key");
  }
  if (!reader.status().ok()) {
    const std::uint64_t at = reader.status().place().offset.value_or(0);
    return MakeError(Code::kCorrupt,
                     "header is malformed, expected JSON: ", reader.status().message())
        .AtOffset(kSafetensorsLengthBytes + at);
  }
  SEALPOINT_RETURN_IF_ERROR(about_metadata);
  SEALPOINT_RETURN_IF_ERROR(about_tensors);
  std::ranges::sort(header.tensors, {}, [](const HeaderTensor& tensor) {
    return std::tuple(tensor.begin, tensor.end, std::string_view(tensor.name));
  });
  SEALPOINT_RETURN_IF_ERROR(CheckRanges(header.tensors, payload_size));
  return header;
}

}  // namespace sealpoint::internal::safetensors
