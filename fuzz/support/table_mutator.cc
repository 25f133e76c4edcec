// SPDX-License-Identifier: Apache-2.0
#include "fuzz/support/table_mutator.h"

#include <algorithm>
#include <optional>

#include "fuzz/support/edit_metadata.h"
#include "tests/conformance/transcribe.h"
#include "tests/support/container/mini_container.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace sealpoint::fuzz {
namespace {

using internal::metadata::MetadataKind;
using testing::HostileMetadata;

// Enough for an edit with texts in it.
constexpr std::size_t kChoiceBytes = 64;

// The FlatBuffer with a few entries changed; nothing if it is too broken for that.
std::optional<Bytes> ChangeTables(MetadataKind kind, const Bytes& buffer, InputReader& choices) {
  const bool is_index = kind == MetadataKind::kIndex;
  std::optional<HostileMetadata> metadata =
      is_index ? TryTranscribeIndex(buffer) : TryTranscribeManifest(buffer);
  if (!metadata) return std::nullopt;
  const std::uint64_t count = choices.TakeIn(1, 3);
  for (std::uint64_t i = 0; i < count; ++i) EditMetadata(choices, *metadata);
  MendMetadata(choices.Take8(), *metadata);
  if (!is_index) return EncodeHostileManifest(*metadata);
  Bytes changed = EncodeHostileIndex(*metadata);
  testing::CopyPins(buffer, changed);
  return changed;
}

}  // namespace

std::size_t MutateTables(MetadataKind kind, std::size_t offset, const MutableInput& input,
                         unsigned seed) {
  const Bytes random = testing::NoiseBytes(seed, kChoiceBytes);
  InputReader choices(random);
  if (input.size > offset && choices.TakeBool()) {
    const ByteSpan rest = AsInput(input.data, input.size).subspan(offset);
    const auto changed = ChangeTables(kind, Bytes(rest.begin(), rest.end()), choices);
    if (changed && changed->size() <= input.size_max - offset) {
      std::ranges::transform(*changed, input.data + offset,
                             [](std::byte byte) { return static_cast<std::uint8_t>(byte); });
      return offset + changed->size();
    }
  }
  return LLVMFuzzerMutate(input.data, input.size, input.size_max);
}

}  // namespace sealpoint::fuzz
