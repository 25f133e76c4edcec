// SPDX-License-Identifier: Apache-2.0
#include "fuzz/support/edit_metadata.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/metadata/verify_metadata.h"
#include "tests/conformance/transcribe.h"

namespace sealpoint::fuzz {
namespace {

namespace metadata = internal::metadata;

using testing::HostileBlob;
using testing::HostileGrid;
using testing::HostileMetadata;
using testing::HostileObject;
using testing::HostileRef;
using testing::HostileTensor;

constexpr std::size_t kEntriesMax = 512;
constexpr Limits kLimits{};

template <typename Number>
void EditNumber(InputReader& input, Number& number) {
  number = static_cast<Number>(input.TakeNumber(number));
}

void EditText(InputReader& input, std::string& text) {
  const std::size_t at = input.TakeBelow(text.size() + 1);
  switch (input.Take8() % 6) {
    case 0:
      text.insert(at, 1, static_cast<char>(input.Take8()));
      break;
    case 1:
      text.erase(at, 1);
      break;
    case 2:
      if (at < text.size()) text[at] = static_cast<char>(input.Take8());
      break;
    case 3:
      text.resize(input.TakeNumber(text.size()) % 2000, 'n');
      break;
    case 4:  // letters of two, three and four bytes
      text.insert(at, std::vector<std::string>{"é", "丁", "😀", "\u007f"}[input.Take8() % 4]);
      break;
    default:
      text += text;
      text.resize(std::min<std::size_t>(text.size(), 2000));
      break;
  }
}

void EditRef(InputReader& input, HostileRef& ref) {
  if (input.TakeBool()) {
    EditNumber(input, ref.first_record);
  } else {
    EditNumber(input, ref.blob);
  }
}

// Changes one entry with `edit`, or the list.
template <typename T, typename Edit>
void EditList(InputReader& input, std::vector<T>& list, const Edit& edit) {
  const unsigned action = input.Take8() % 8;
  if (list.empty()) {
    if (action >= 4) edit(input, list.emplace_back());
    return;
  }
  const std::size_t i = input.TakeBelow(list.size());
  const auto at = list.begin() + static_cast<std::ptrdiff_t>(i);
  switch (action) {
    case 0:
      list.erase(at);
      break;
    case 1:
      if (list.size() < kEntriesMax) list.insert(at, T(list[i]));
      break;
    case 2:
      std::swap(list[i], list[input.TakeBelow(list.size())]);
      break;
    case 3:
      if (list.size() >= kEntriesMax) break;
      list.push_back(T(list[i]));
      edit(input, list.back());
      break;
    default:
      edit(input, list[i]);
      break;
  }
}

template <typename Number>
void EditNumbers(InputReader& input, std::vector<Number>& numbers) {
  EditList(input, numbers, EditNumber<Number>);
}

template <typename Number>
void EditOptionalNumbers(InputReader& input, std::optional<std::vector<Number>>& numbers) {
  if (!numbers) {
    numbers.emplace();
  } else if (input.Take8() % 8 == 0) {
    numbers.reset();
    return;
  }
  EditNumbers(input, *numbers);
}

void EditGrid(InputReader& input, HostileGrid& grid) {
  switch (input.Take8() % 5) {
    case 0:
      return EditNumbers(input, grid.cuts);
    case 1:
      return EditNumbers(input, grid.cut_counts);
    case 2:
      return EditOptionalNumbers(input, grid.run_cut_counts);
    case 3:
      return EditOptionalNumbers(input, grid.run_cuts);
    default: {  // one cut more, and its count
      if (grid.cut_counts.empty()) return;
      grid.cuts.push_back(input.TakeNumber(0));
      ++grid.cut_counts[input.TakeBelow(grid.cut_counts.size())];
    }
  }
}

void EditGeometry(InputReader& input, HostileTensor& tensor) {
  const unsigned action = input.Take8() % 16;
  if (action == 0) {
    tensor.grid.reset();
  } else if (action == 1) {
    tensor.boxes.reset();
  } else if (action == 2 && !tensor.grid) {
    tensor.grid.emplace().cut_counts.assign(tensor.shape.size(), 0);
  } else if (action == 3 && !tensor.boxes) {
    tensor.boxes.emplace().boxes.assign(tensor.shape.size(), 0);
    tensor.boxes->boxes.insert(tensor.boxes->boxes.end(), tensor.shape.begin(), tensor.shape.end());
  } else if (tensor.grid) {
    EditGrid(input, *tensor.grid);
  } else if (tensor.boxes && input.TakeBool()) {
    EditNumbers(input, tensor.boxes->boxes);
  } else if (tensor.boxes) {
    EditOptionalNumbers(input, tensor.boxes->runs);
  }
}

void EditTensor(InputReader& input, HostileTensor& tensor) {
  switch (input.Take8() % 12) {
    case 0:
      return EditText(input, tensor.name);
    case 1:
    case 2:
      return EditNumbers(input, tensor.shape);
    case 3:
      return EditNumber(input, tensor.dtype);
    case 4:
      return EditNumber(input, tensor.element_size);
    case 5:
      return EditNumber(input, tensor.chunk_size_log2);
    case 6:
      return EditList(input, tensor.placement, EditText);
    case 7:
    case 8:
      return EditList(input, tensor.shards, EditRef);
    default:
      return EditGeometry(input, tensor);
  }
}

void EditObject(InputReader& input, HostileObject& object) {
  switch (input.Take8() % 5) {
    case 0:
      return EditText(input, object.name);
    case 1:
      return EditText(input, object.media_type);
    case 2:
      return EditNumber(input, object.size);
    case 3:
      return EditRef(input, object.shard);
    default:
      return EditNumber(input, object.chunk_size_log2);
  }
}

void EditBlob(InputReader& input, HostileBlob& blob) {
  switch (input.Take8() % 5) {
    case 0:
      return EditNumber(input, blob.id);
    case 1:
      return EditNumber(input, blob.file_size);
    case 2:
      return EditNumber(input, blob.table_offset);
    case 3:
      return EditNumber(input, blob.record_count);
    default:
      return EditNumber(input, blob.shard_count);
  }
}

void EditAxis(InputReader& input, std::pair<std::string, std::uint32_t>& axis) {
  if (input.TakeBool()) return EditText(input, axis.first);
  EditNumber(input, axis.second);
}

void EditProvenance(InputReader& input, std::pair<std::string, std::string>& entry) {
  const unsigned action = input.Take8() % 16;
  if (action == 0) {
    entry.second.assign(kProvenanceValueSizeMaxBytes + input.Take8() % 2, 'v');
  } else {
    EditText(input, action % 2 == 0 ? entry.first : entry.second);
  }
}

std::uint64_t ElementsOf(const HostileTensor& tensor) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : tensor.shape) count *= extent;
  return count;
}

bool IsSmall(const auto& root) {
  if (root.tensors()->size() > kEntriesMax || root.objects()->size() > kEntriesMax) return false;
  std::uint64_t numbers = 0;
  for (const fb::Tensor* tensor : *root.tensors()) {
    numbers += tensor->shape()->size() + tensor->shards()->size();
    if (tensor->grid() != nullptr) numbers += tensor->grid()->cuts()->size();
    if (tensor->boxes() != nullptr) numbers += tensor->boxes()->boxes()->size();
  }
  return numbers <= 16 * kEntriesMax;
}

}  // namespace

void EditMetadata(InputReader& input, HostileMetadata& metadata) {
  switch (input.Take8() % 16) {
    case 0:
      return EditNumber(input, metadata.digest_algorithm);
    case 1:
      return EditNumber(input, metadata.raw_bytes);
    case 2:
      return EditList(input, metadata.mesh, EditAxis);
    case 3:
      return EditList(input, metadata.provenance, EditProvenance);
    case 4:
      metadata.unknown_fields = {static_cast<testing::UnknownField>(input.Take8() % 9)};
      return;
    case 5:
    case 6:
      return EditList(input, metadata.objects, EditObject);
    case 7:
    case 8:
      return EditList(input, metadata.blobs, EditBlob);
    default:
      return EditList(input, metadata.tensors, EditTensor);
  }
}

void MendMetadata(unsigned which, HostileMetadata& metadata) {
  if (which & kMendOrder) {
    std::ranges::sort(metadata.tensors, {}, &HostileTensor::name);
    std::ranges::sort(metadata.objects, {}, &HostileObject::name);
  }
  if (which & kMendRawBytes) {
    metadata.raw_bytes = 0;
    for (const HostileTensor& tensor : metadata.tensors) {
      metadata.raw_bytes += ElementsOf(tensor) * tensor.element_size;
    }
    for (const HostileObject& object : metadata.objects) metadata.raw_bytes += object.size;
  }
  if ((which & kMendCounts) == 0) return;
  for (HostileBlob& blob : metadata.blobs) blob.shard_count = 0;
  const auto count = [&metadata](const HostileRef& ref) {
    if (ref.blob < metadata.blobs.size()) ++metadata.blobs[ref.blob].shard_count;
  };
  for (const HostileTensor& tensor : metadata.tensors) std::ranges::for_each(tensor.shards, count);
  for (const HostileObject& object : metadata.objects) {
    if (object.size != 0) count(object.shard);
  }
}

std::optional<HostileMetadata> TryTranscribeIndex(ByteSpan buffer) {
  if (!metadata::VerifyBuffer(metadata::MetadataKind::kIndex, buffer, kLimits, {}).ok()) return {};
  const fb::Index* const root = fb::GetIndex(buffer.data());
  const metadata::VerifyInput input{.buffer = buffer, .limits = kLimits, .index = root};
  if (!metadata::VerifyFields(input).ok() || !IsSmall(*root)) return {};
  return testing::TranscribeIndex(buffer);
}

std::optional<HostileMetadata> TryTranscribeManifest(ByteSpan buffer) {
  if (!metadata::VerifyBuffer(metadata::MetadataKind::kManifest, buffer, kLimits, {}).ok())
    return {};
  const auto* const root = flatbuffers::GetRoot<fb::Manifest>(buffer.data());
  const metadata::VerifyInput input{.buffer = buffer, .limits = kLimits, .manifest = root};
  if (!metadata::VerifyFields(input).ok() || !IsSmall(*root)) return {};
  return testing::TranscribeManifest(buffer);
}

}  // namespace sealpoint::fuzz
