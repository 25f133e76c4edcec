// SPDX-License-Identifier: Apache-2.0
#include "fuzz/support/write_state.h"

#include <algorithm>
#include <utility>

#include "tests/support/container/mini_container.h"

namespace sealpoint::fuzz {
namespace {

constexpr std::uint64_t kElementsMax = 4096;
constexpr unsigned kIllegalOneIn = 32;  // of the places where something can be illegal

// Decides whether to do something illegal here, and marks the state if so.
bool TakeIllegal(InputReader& input, WrittenState& state) {
  if (input.Take8() % kIllegalOneIn != kIllegalOneIn - 1) return false;
  state.is_legal = false;
  return true;
}

// g++ 12 falsely warns of "t" + std::to_string(number) at -O3 (-Wrestrict).
std::string Numbered(char letter, std::size_t number) {
  return std::string(1, letter).append(std::to_string(number));
}

// A name, or a text that is not a legal name.
std::string TakeText(InputReader& input, WrittenState& state, std::string good,
                     std::size_t size_max) {
  if (!TakeIllegal(input, state)) {
    if (input.Take8() % 16 == 0) good.resize(size_max, 'x');
    return good;
  }
  switch (input.Take8() % 4) {
    case 0:
      return "";
    case 1:
      return good + '\n';
    case 2:
      return good + '\xc3';
    default:
      return std::string(size_max + 1, 'x');
  }
}

void TakeDType(InputReader& input, WrittenState& state, TensorSpec& spec) {
  const auto dtypes = RegisteredDTypes();
  const std::size_t chosen = input.TakeBelow(dtypes.size() + 2);
  if (chosen < dtypes.size()) {
    spec.dtype = dtypes[chosen].dtype;
    if (input.TakeBool()) spec.element_size = dtypes[chosen].size_bytes;
  } else {
    spec.dtype = static_cast<DType>(40000);
    spec.element_size = 1u << input.Take8() % 9;
  }
  if (!TakeIllegal(input, state)) return;
  constexpr std::uint32_t kSizes[] = {3, 512, 0, ~0u};
  spec.dtype = static_cast<DType>(input.TakeBool() ? 0 : 40000);
  spec.element_size = kSizes[input.Take8() % 4];
}

void TakeStorageOptions(InputReader& input, WrittenState& state, TensorSpec& spec) {
  spec.chunk_size_bytes = kChunkSizeMinBytes << input.Take8() % 4;
  spec.codec = static_cast<Codec>(input.Take8() % 3);
  spec.codec_level = static_cast<int>(input.TakeBelow(6)) - 2;
  spec.group = std::string(input.Take8() % 2, 'g');
  for (std::uint64_t count = input.Take8() % 4; count > 1; --count) {
    spec.placement.push_back(TakeText(input, state, "data: shard dim 0", kNameSizeMaxBytes));
  }
  if (!TakeIllegal(input, state)) return;
  constexpr std::uint64_t kChunkSizes[] = {0, 2048, 4095, 5000, kChunkSizeMaxBytes * 2};
  const unsigned action = input.Take8() % 8;
  if (action < std::size(kChunkSizes)) {
    spec.chunk_size_bytes = kChunkSizes[action];
  } else if (action == 5) {
    spec.codec = static_cast<Codec>(9);
  } else {
    spec.shape.assign(kNdimMax + 1, 1);
  }
}

// Loses, doubles or spoils one region.
void DisturbTiling(InputReader& input, const Shape& shape, std::vector<Region>& regions) {
  const std::size_t i = input.TakeBelow(regions.size());
  const unsigned action = input.Take8() % 3;
  if (action == 0 && regions.size() > 1) {
    regions.erase(regions.begin() + static_cast<std::ptrdiff_t>(i));
  } else if (action == 1 && !shape.empty()) {
    regions[i].box.offset[input.TakeBelow(shape.size())] += ~std::uint64_t{0} >> input.Take8() % 64;
  } else {
    regions.push_back(Region(regions[i]));
  }
}

// Where a legal tensor lies.
void TakeParts(InputReader& input, WrittenState& state, const WrittenTensor& tensor) {
  const Shape& shape = tensor.spec.shape;
  std::vector<Region> regions = TakeTiling(input, shape);
  if (TakeIllegal(input, state)) DisturbTiling(input, shape, regions);
  const std::uint32_t element_size = ElementSizeOf(tensor.spec);
  for (Region& region : regions) {
    const std::size_t writer = input.TakeBelow(state.writer_count);
    MemoryLayout layout{.size = 1};
    if (CheckRegion(shape, region).ok()) layout = TakeLayout(input, region, element_size, false);
    state.parts.push_back({.writer = writer,
                           .tensor = &tensor,
                           .region = std::move(region),
                           .layout = std::move(layout)});
  }
}

void TakeTensor(InputReader& input, WrittenState& state) {
  auto tensor = std::make_unique<WrittenTensor>();
  TensorSpec& spec = tensor->spec;
  const bool was_legal = std::exchange(state.is_legal, true);
  spec.name = TakeText(input, state, Numbered('t', state.tensors.size()), kNameSizeMaxBytes);
  TakeDType(input, state, spec);
  spec.shape = TakeShape(input, kElementsMax);
  if (input.Take8() % 16 == 0) spec.shape.push_back(0);
  TakeStorageOptions(input, state, spec);
  const bool is_legal = std::exchange(state.is_legal, was_legal && state.is_legal);
  if (!is_legal || std::ranges::find(spec.shape, 0u) != spec.shape.end()) {
    // Every call with an illegal tensor is refused, this one too.
    state.parts.push_back({.writer = input.TakeBelow(state.writer_count), .tensor = tensor.get()});
  } else {
    tensor->bytes =
        testing::NoiseBytes(input.Take8(), ElementCount(spec.shape).value() * ElementSizeOf(spec));
    std::fill_n(tensor->bytes.begin(), tensor->bytes.size() / 2, std::byte{7});  // compresses
    TakeParts(input, state, *tensor);
  }
  state.tensors.push_back(std::move(tensor));
}

void TakeObject(InputReader& input, WrittenState& state) {
  const std::string name = Numbered('o', state.objects.size());
  auto object = std::make_unique<WrittenObject>();
  object->name = TakeText(input, state, name, kNameSizeMaxBytes);
  object->media_type = TakeText(input, state, "text/plain", kMediaTypeSizeMaxBytes);
  object->bytes = testing::NoiseBytes(input.Take8(), input.Take32() % (32 * kKiB));
  std::fill_n(object->bytes.begin(), object->bytes.size() / 2, std::byte{7});
  object->codec = static_cast<Codec>(input.Take8() % 3);
  if (TakeIllegal(input, state)) object->codec = static_cast<Codec>(9);
  state.parts.push_back({.writer = input.TakeBelow(state.writer_count), .object = object.get()});
  state.objects.push_back(std::move(object));
}

void TakeDescription(InputReader& input, WrittenState& state) {
  CommitOptions& commit = state.commit;
  for (unsigned count = input.Take8() % 3; count > 0; --count) {
    const std::string axis = "axis" + std::to_string(count);
    const std::uint32_t size = input.Take8() + 1u;
    commit.mesh.emplace_back(TakeText(input, state, axis, kNameSizeMaxBytes), size);
  }
  for (unsigned count = input.Take8() % 3; count > 0; --count) {
    const std::string key = TakeText(input, state, Numbered('k', count), kNameSizeMaxBytes);
    commit.provenance.emplace_back(key, std::string(input.Take8(), 'v'));
  }
  if (TakeIllegal(input, state)) commit.provenance.emplace_back("sealpoint.mine", "");
  if (TakeIllegal(input, state)) {
    commit.provenance.emplace_back("large", std::string(kProvenanceValueSizeMaxBytes + 1, 'v'));
  }
  if (input.TakeBool()) {
    commit.parent = {testing::MiniSpec::MakeId(input.Take8() % 255 + 1), input.Take32() + 1ull};
  }
  if (TakeIllegal(input, state)) {
    commit.parent = {testing::MiniSpec::MakeId(input.Take8() % 2), 0};
  }
}

void TakeIds(InputReader& input, WrittenState& state) {
  if (input.TakeBool()) state.commit.attempt = testing::MiniSpec::MakeId(0);
  if (input.TakeBool()) {
    state.commit.attempt = testing::MiniSpec::MakeId(0xa7);
    if (input.TakeBool()) state.blob_attempt = state.commit.attempt;
  }
  if (state.commit.parent && state.commit.parent->attempt == state.commit.attempt) {
    state.is_legal = false;  // its own parent
  }
  if (!state.parts.empty() && TakeIllegal(input, state)) {
    state.blob_attempt = testing::MiniSpec::MakeId(0xa8);
  }
  if (input.TakeBool()) state.commit.step = input.Take64();
}

}  // namespace

std::uint32_t ElementSizeOf(const TensorSpec& spec) {
  return spec.element_size != 0 ? spec.element_size : DTypeSizeBytes(spec.dtype);
}

WrittenState TakeState(ByteSpan bytes) {
  InputReader input(bytes);
  WrittenState state;
  state.writer_count = input.TakeIn(1, 3);
  state.buffer_size = std::uint64_t{4096} << input.Take8() % 3;
  if (input.TakeBool()) state.blob_size_max = kMiB;
  if (TakeIllegal(input, state)) state.blob_size_max = kMiB - 1;
  const std::uint64_t tensor_count = input.TakeBelow(4);
  const std::uint64_t object_count = input.TakeBelow(3);
  for (std::uint64_t i = 0; i < tensor_count; ++i) TakeTensor(input, state);
  for (std::uint64_t i = 0; i < object_count; ++i) TakeObject(input, state);
  TakeDescription(input, state);
  TakeIds(input, state);
  const auto has_region = [](const WrittenPart& part) { return part.region.has_value(); };
  if (std::ranges::any_of(state.parts, has_region) && TakeIllegal(input, state)) {
    state.has_null_source = true;
  }
  if (input.TakeBool()) std::ranges::reverse(state.parts);
  state.commit.allow_empty = !(state.parts.empty() && TakeIllegal(input, state));
  return state;
}

Bytes SourceMemory(const WrittenTensor& tensor, const Region& region, const MemoryLayout& layout) {
  Bytes memory(std::max<std::size_t>(layout.size, 1));
  if (!CheckRegion(tensor.spec.shape, region).ok()) return memory;
  const std::uint32_t element_size = ElementSizeOf(tensor.spec);
  for (std::uint64_t i = 0; i < region.element_count(); ++i) {
    const std::size_t from = ElementNumber(tensor.spec.shape, region, i) * element_size;
    const std::size_t to = ElementOffset(layout, region, element_size, i);
    std::copy_n(tensor.bytes.begin() + static_cast<std::ptrdiff_t>(from), element_size,
                memory.begin() + static_cast<std::ptrdiff_t>(to));
  }
  return memory;
}

}  // namespace sealpoint::fuzz
