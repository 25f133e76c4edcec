// SPDX-License-Identifier: Apache-2.0
#include "tests/support/state/saved_state.h"

#include <utility>

#include "sealpoint/verify.h"

namespace sealpoint::testing {

std::unique_ptr<Engine> SmallEngine(std::shared_ptr<Storage> storage, int buffer_count,
                                    std::uint64_t buffer_size_bytes) {
  return Engine::Create(
             {.memory_budget_bytes = static_cast<std::uint64_t>(buffer_count) * buffer_size_bytes,
              .staging_buffer_size_bytes = buffer_size_bytes,
              .storage = std::move(storage)})
      .value();
}

std::unique_ptr<Checkpoint> OpenFrom(const std::shared_ptr<Storage>& storage,
                                     const std::string& directory) {
  return Checkpoint::Open(directory, {.storage = storage}).value();
}

Bytes LoadWhole(const Checkpoint& checkpoint, std::string_view tensor) {
  const TensorInfo info = checkpoint.FindTensor(tensor).value();
  Bytes bytes(info.raw_bytes);
  ReadRequest request;
  request.Add(tensor, MutableMemoryView::Host(bytes));
  checkpoint.Load(request, LoadContract::Partial()).value();
  return bytes;
}

Bytes LoadRegion(const Checkpoint& checkpoint, std::string_view tensor, const Region& region) {
  const TensorInfo info = checkpoint.FindTensor(tensor).value();
  Bytes bytes(region.element_count() * info.element_size);
  ReadRequest request;
  request.Add(tensor, region, MutableMemoryView::Host(bytes));
  checkpoint.Load(request, LoadContract::Partial()).value();
  return bytes;
}

std::string FindDamage(const std::shared_ptr<Storage>& storage, const std::string& directory) {
  const VerifyReport report = Verify(directory, {.storage = storage}).value();
  std::string found;
  if (report.verdict != Verdict::kCommitted) found.append(VerdictName(report.verdict)).append("\n");
  for (const Status& violation : report.violations) found.append(violation.ToString()).append("\n");
  for (const std::string& note : report.notes) found.append(note).append("\n");
  return found;
}

std::vector<std::string> FileNames(const Storage& storage, const std::string& directory) {
  std::vector<std::string> names;
  const auto opened = storage.OpenDirectory(directory);
  if (!opened.ok()) return names;
  for (const EntryInfo& entry : (*opened)->List().value()) names.push_back(entry.name);
  return names;
}

Bytes ReadWholeFile(const Storage& storage, const std::string& directory, const std::string& name) {
  const auto opened = storage.OpenDirectory(directory).value();
  const auto file = opened->OpenForRead(name, IoMode::kBuffered).value();
  Bytes bytes(file->size_bytes());
  const Status read = file->ReadAt(0, bytes);
  if (!read.ok()) AbortOnBadResultAccess(read);
  return bytes;
}

TensorSpec ByteTensor(std::string name, std::uint64_t size) {
  return {.name = std::move(name),
          .dtype = DType::kUInt8,
          .shape = {size},
          .chunk_size_bytes = kChunkSizeMinBytes};
}

Region Slice(std::uint64_t begin, std::uint64_t end) {
  return Region::Of({.offset = {begin}, .extent = {end - begin}});
}

}  // namespace sealpoint::testing
