// SPDX-License-Identifier: Apache-2.0
//
// Proves of manifests what fuzz_index proves of indexes, and that their rules R-IDX-* hold with the
// counts of the blob that they describe.
#include <memory>

#include "fuzz/support/target.h"
#include "fuzz/support/walk_metadata.h"
#include "lib/metadata/metadata.h"

// The input is the number of records (4 bytes) and of shards (4 bytes) and a manifest.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sealpoint;
  fuzz::InputReader input(fuzz::AsInput(data, size));
  const std::uint32_t record_count = input.Take32();
  const std::uint32_t shard_count = input.Take32();
  const auto buffer = std::make_shared<Bytes>(input.rest().begin(), input.rest().end());
  const auto manifest = internal::metadata::Metadata::DecodeManifest(
      buffer, *buffer, {.record_count = record_count, .shard_count = shard_count}, {},
      {.fingerprints = true, .attributes = true});
  if (!manifest.ok()) {
    fuzz::RequireAnswer(manifest.error());
    return 0;
  }
  fuzz::WalkMetadata(*manifest);
  fuzz::Require(manifest->total_shard_count() == shard_count, "a manifest of other counts");
  return 0;
}
