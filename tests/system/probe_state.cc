// SPDX-License-Identifier: Apache-2.0
#include "tests/system/probe_state.h"

#include <cstdlib>
#include <numeric>
#include <utility>

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kRowSize = 1024;
constexpr std::uint64_t kSharedSize = 10000;
constexpr std::uint64_t kObjectSize = 700;

// Bytes [begin, begin + size) of what `name` holds at `step`.
Bytes Content(const std::string& name, std::uint64_t step, std::uint64_t begin,
              std::uint64_t size) {
  std::uint64_t seed = step + 1;
  for (const char letter : name) seed = seed * 131 + static_cast<unsigned char>(letter);
  Bytes bytes(size);
  for (std::uint64_t i = 0; i < size; ++i) {
    std::uint64_t mixed = (seed + begin + i) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93u;
    bytes[i] = static_cast<std::byte>(mixed >> 56);
  }
  return bytes;
}

TensorSpec BytesTensor(std::string name, Shape shape) {
  return {.name = std::move(name),
          .dtype = DType::kUInt8,
          .shape = std::move(shape),
          .chunk_size_bytes = 4 * kKiB};
}

void Expect(const Status& status) {
  if (!status.ok()) AbortOnBadResultAccess(status);
}

std::string ObjectName(int rank) { return "rng." + std::to_string(rank); }

}  // namespace

ProbeState::ProbeState(int rank, int size, std::uint64_t row_count, std::uint64_t step) {
  const std::uint64_t first_row = static_cast<std::uint64_t>(rank) * row_count;
  const std::uint64_t rows = static_cast<std::uint64_t>(size) * row_count;
  std::vector<int> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  const Box own = {.offset = {first_row, 0}, .extent = {row_count, kRowSize}};
  declaration_.Add({.tensor = BytesTensor("w", {rows, kRowSize}), .region = Region::Of(own)})
      .value();
  declaration_.Add({.tensor = BytesTensor("shared", {kSharedSize}), .replicas = all}).value();
  declaration_.Add({.tensor = BytesTensor("empty", {0}), .replicas = all}).value();
  Expect(declaration_.AddObject({.name = ObjectName(rank), .media_type = "text/plain"}));
  memory_.push_back(Content("w", step, first_row * kRowSize, row_count * kRowSize));
  memory_.push_back(Content("shared", step, 0, kSharedSize));
  memory_.push_back(Content(ObjectName(rank), step, 0, kObjectSize));
  sources_ = std::make_unique<Sources>(declaration_);
  Expect(sources_->Bind("w", MemoryView::Host(memory_[0])));
  Expect(sources_->Bind("shared", MemoryView::Host(memory_[1])));
  Expect(sources_->BindObject(ObjectName(rank), memory_[2]));
}

namespace {

Result<Bytes> LoadWhole(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  Bytes bytes(tensor.raw_bytes);
  if (bytes.empty()) return bytes;
  ReadRequest request;
  request.Add(tensor.name, MutableMemoryView::Host(bytes));
  const auto loaded = checkpoint.Load(request, LoadContract::Partial());
  if (!loaded.ok()) return loaded.error();
  return bytes;
}

}  // namespace

std::string FindWrongBytes(const std::string& directory) {
  const auto opened = Checkpoint::Open(directory);
  if (!opened.ok()) return opened.error().ToString();
  const Checkpoint& checkpoint = **opened;
  if (checkpoint.tensor_count() != 3) return "not three tensors";
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    const Result<Bytes> found = LoadWhole(checkpoint, tensor);
    if (!found.ok()) return found.error().ToString();
    if (*found != Content(tensor.name, checkpoint.step(), 0, found->size())) {
      return tensor.name + " holds other bytes";
    }
  }
  if (checkpoint.object_count() == 0) return "no objects";
  for (const ObjectInfo& object : checkpoint.objects()) {
    const auto found = checkpoint.ReadObject(object.name);
    if (!found.ok()) return found.error().ToString();
    if (*found != Content(object.name, checkpoint.step(), 0, kObjectSize)) {
      return object.name + " holds other bytes";
    }
  }
  return "";
}

}  // namespace sealpoint::testing
