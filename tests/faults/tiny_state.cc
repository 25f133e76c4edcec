// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/tiny_state.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "lib/base/macros.h"
#include "sealpoint/verify.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/save_in_mode.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kRowSize = 1500;
constexpr std::uint64_t kSharedSize = 9000;
constexpr std::uint64_t kPackedSize = 5000;

std::string ObjectName(int rank) { return "rng." + std::to_string(rank); }

// The bytes that a slot of a declaration holds; all regions here are rows of one dimension.
Bytes BytesOf(const TinyState& state, const DeclaredTensor& held) {
  const Bytes whole = state.Content(held.tensor.name);
  if (!held.region) return whole;
  const auto first = whole.begin() + static_cast<std::ptrdiff_t>(held.region->box.offset[0]);
  return Bytes(first, first + static_cast<std::ptrdiff_t>(held.region->box.extent[0]));
}

}  // namespace

Declaration TinyState::Declare(int rank) const {
  const auto at = static_cast<std::uint64_t>(rank);
  const auto size = static_cast<std::uint64_t>(rank_count);
  Declaration declaration;
  declaration
      .Add({.tensor = ByteTensor("w", size * kRowSize),
            .region = Slice(at * kRowSize, (at + 1) * kRowSize)})
      .value();
  std::vector<int> all(static_cast<std::size_t>(rank_count));
  std::iota(all.begin(), all.end(), 0);
  declaration.Add({.tensor = ByteTensor("shared", kSharedSize), .replicas = all}).value();
  if (rank == 0) {
    TensorSpec packed = ByteTensor("packed", kPackedSize);
    packed.codec = Codec::kZstd;
    packed.group = "optimizer";
    declaration.Add({.tensor = packed}).value();
    declaration.Add({.tensor = {.name = "empty", .dtype = DType::kF32, .shape = {0, 4}}}).value();
  }
  if (rank == rank_count - 1)
    declaration.Add({.tensor = {.name = "scalar", .dtype = DType::kF32, .shape = {}}}).value();
  const Status added =
      declaration.AddObject({.name = ObjectName(rank), .media_type = "text/plain"});
  if (!added.ok()) AbortOnBadResultAccess(added);
  return declaration;
}

Bytes TinyState::Content(const std::string& name) const {
  const std::uint64_t seed = std::hash<std::string>()(name) + generation;
  if (name == "w") return NoiseBytes(seed, static_cast<std::uint64_t>(rank_count) * kRowSize);
  if (name == "shared") return NoiseBytes(seed, kSharedSize);
  if (name == "scalar") return NoiseBytes(seed, 4);
  if (name == "empty") return {};
  if (name != "packed") return NoiseBytes(seed, 100);
  Bytes repeated;
  const Bytes block = NoiseBytes(seed, 50);
  while (repeated.size() < kPackedSize) repeated.insert(repeated.end(), block.begin(), block.end());
  return repeated;
}

Result<CommitInfo> SaveState(Saver& saver, const SaveTarget& target, const TinyState& state,
                             int rank, std::uint64_t step) {
  const Declaration declaration = state.Declare(rank);
  Sources sources(declaration);
  std::vector<Bytes> memory;
  for (std::size_t slot = 0; slot < declaration.tensors().size(); ++slot) {
    memory.push_back(BytesOf(state, declaration.tensors()[slot]));
    if (memory.back().empty()) continue;
    SEALPOINT_RETURN_IF_ERROR(sources.Bind(slot, MemoryView::Host(memory.back())));
  }
  const Bytes object = state.Content(ObjectName(rank));
  SEALPOINT_RETURN_IF_ERROR(sources.BindObject(ObjectName(rank), object));
  const auto spoil = [&memory] {
    for (Bytes& bytes : memory) std::fill(bytes.begin(), bytes.end(), std::byte{0xee});
  };
  return SaveInMode(saver, target, {.step = step}, sources, spoil);
}

Result<CommitInfo> SaveByHand(Engine& engine, const std::string& directory, const TinyState& state,
                              const CommitOptions& options) {
  SEALPOINT_RETURN_IF_ERROR(engine.storage().CreateDirectories(directory));
  SEALPOINT_ASSIGN_OR_RETURN(const auto writer, BlobWriter::Create(engine, directory));
  const Declaration declaration = state.Declare(0);
  for (const DeclaredTensor& held : declaration.tensors()) {
    const Bytes bytes = BytesOf(state, held);
    if (bytes.empty()) {
      SEALPOINT_RETURN_IF_ERROR(writer->AddEmpty(held.tensor));
      continue;
    }
    const Region region = held.region.value_or(Region::Whole(held.tensor.shape));
    SEALPOINT_RETURN_IF_ERROR(writer->Add(held.tensor, region, MemoryView::Host(bytes)));
  }
  SEALPOINT_RETURN_IF_ERROR(writer->AddObject({.name = ObjectName(0), .media_type = "text/plain"},
                                              state.Content(ObjectName(0))));
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<BlobSummary> summaries, writer->Finish());
  auto info = Commit(engine.storage(), directory, options, summaries);
  if (!info.ok() && !OutcomeIsUnknown(info.error())) static_cast<void>(writer->Abandon());
  return info;
}

Result<std::string> LoadAndCompare(const Checkpoint& checkpoint, const TinyState& state,
                                   int threads) {
  ReadRequest request;
  std::vector<std::pair<std::string, Bytes>> found;
  for (const char* const name : {"w", "shared", "packed", "scalar"}) {
    found.emplace_back(name, Bytes(state.Content(name).size()));
    request.Add(name, MutableMemoryView::Host(found.back().second));
  }
  if (!checkpoint.FindTensor("empty")) return std::string("the empty tensor is not there");
  SEALPOINT_RETURN_IF_ERROR(
      checkpoint.Load(request, LoadContract::Partial(), {.threads = threads}).status());
  for (int rank = 0; rank < state.rank_count; ++rank) {
    SEALPOINT_ASSIGN_OR_RETURN(Bytes object, checkpoint.ReadObject(ObjectName(rank)));
    found.emplace_back(ObjectName(rank), std::move(object));
  }
  for (const auto& [name, bytes] : found) {
    if (bytes != state.Content(name)) return name + " has other bytes than were saved";
  }
  return std::string();
}

std::string FindDifference(const std::shared_ptr<Storage>& storage, const std::string& directory,
                           const TinyState& state) {
  const auto checkpoint = Checkpoint::Open(directory, {.storage = storage});
  if (!checkpoint.ok()) return checkpoint.error().ToString();
  const auto different = LoadAndCompare(**checkpoint, state);
  if (!different.ok()) return different.error().ToString();
  if (!different->empty()) return *different;
  const VerifyReport report = Verify(directory, {.storage = storage}).value();
  for (const Status& violation : report.violations) return violation.ToString();
  return report.verdict == Verdict::kCommitted ? "" : std::string(VerdictName(report.verdict));
}

}  // namespace sealpoint::testing
