// SPDX-License-Identifier: Apache-2.0
//
// The damaged checkpoints together use every feature of the format, so that none is forgotten.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "lib/base/endian.h"
#include "lib/format/constants.h"
#include "lib/format/fields.h"
#include "sealpoint/checkpoint.h"
#include "tests/conformance/transcribe.h"
#include "tests/support/damage/areas.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

using internal::LoadLe;

// Collects the features that the index shows.
void CollectFromIndex(const DamageCase& one, std::set<std::string>& features) {
  const Bytes& file = one.container.files.at(one.container.index_name);
  // The FlatBuffer requires aligned memory.
  const Bytes buffer(file.begin() + 128, file.end());
  const HostileMetadata index = TranscribeIndex(buffer);
  for (const HostileTensor& tensor : index.tensors) {
    features.insert(FindDType(static_cast<DType>(tensor.dtype))
                        ? "dtype " + std::to_string(tensor.dtype)
                        : "unregistered dtype");
    if (tensor.shape.empty()) features.insert("scalar");
    if (std::count(tensor.shape.begin(), tensor.shape.end(), 0u) > 0)
      features.insert("empty tensor");
    if (tensor.grid) features.insert(tensor.grid->run_cuts ? "grid with run cuts" : "grid");
    if (tensor.boxes) features.insert(tensor.boxes->runs ? "box list with runs" : "box list");
    if (!tensor.placement.empty()) features.insert("placement");
  }
  for (const HostileObject& object : index.objects) {
    const bool is_long = object.size > std::uint64_t{1} << object.chunk_size_log2;
    features.insert(object.size == 0 ? "empty object" : is_long ? "object of chunks" : "object");
  }
  if (index.blobs.size() > 1) features.insert("several blobs");
  if (!index.mesh.empty()) features.insert("mesh");
  if (!index.provenance.empty()) features.insert("provenance");
}

// Collects the features that the table and the padding of a blob show.
void CollectFromBlob(const Bytes& blob, std::set<std::string>& features) {
  std::uint64_t shard_raw_size = 0;
  std::set<std::uint16_t> codecs_of_shard;
  const ByteSpan trailer = ByteSpan(blob).last(format::kTrailerSize);
  const auto records = LoadLe<std::uint64_t>(trailer, format::TrailerFields::kRecords.at);
  const auto count = LoadLe<std::uint32_t>(trailer, format::TrailerFields::kRecordCount.at);
  for (std::uint32_t r = 0; r < count; ++r) {
    const std::uint64_t at = records + r * format::kRecordSize;
    if (LoadLe<std::uint32_t>(blob, at + format::RecordFields::kChunk.at) == 0) {
      shard_raw_size = 0;
      codecs_of_shard.clear();
    } else {
      features.insert("shard of chunks");
    }
    shard_raw_size += LoadLe<std::uint32_t>(blob, at + format::RecordFields::kRawSize.at);
    codecs_of_shard.insert(LoadLe<std::uint16_t>(blob, at + format::RecordFields::kCodec.at));
    features.insert("codec " + std::to_string(*codecs_of_shard.rbegin()));
    features.insert(shard_raw_size >= 65536 ? "large shard" : "small shard");
    if (codecs_of_shard.size() > 1) features.insert("raw chunk between coded ones");
  }
  if (count > format::kRecordsPerGroup) features.insert("several record groups");
  for (const BlobArea& area : FindBlobAreas(blob)) {
    features.insert("area " + std::to_string(static_cast<int>(area.kind)));
  }
}

std::set<std::string> AllFeatures() {
  std::set<std::string> features = {"unregistered dtype",
                                    "scalar",
                                    "empty tensor",
                                    "grid",
                                    "grid with run cuts",
                                    "box list",
                                    "object",
                                    "box list with runs",
                                    "placement",
                                    "empty object",
                                    "object of chunks",
                                    "mesh",
                                    "several blobs",
                                    "provenance",
                                    "shard of chunks",
                                    "codec 0",
                                    "codec 1",
                                    "codec 2",
                                    "large shard",
                                    "small shard",
                                    "raw chunk between coded ones",
                                    "several record groups"};
  for (const DTypeInfo& dtype : RegisteredDTypes()) {
    features.insert("dtype " + std::to_string(static_cast<int>(dtype.dtype)));
  }
  for (int area = 0; area <= static_cast<int>(AreaKind::kTrailer); ++area) {
    features.insert("area " + std::to_string(area));
  }
  return features;
}

TEST(DamageFeatures, TheSmallCheckpointsUseAllOfThem) {
  std::set<std::string> features;
  std::uint64_t bytes = 0;
  for (const DamageCase& damage_case : SmallDamageCases()) {
    CollectFromIndex(damage_case, features);
    for (const auto& [number, blob] : damage_case.container.blobs) {
      CollectFromBlob(damage_case.container.files.at(blob.name), features);
    }
    for (const auto& [name, file] : damage_case.container.files) bytes += file.size();
  }
  EXPECT_EQ(features, AllFeatures());
  EXPECT_LT(bytes, 50 * kKiB);  // each bit of them is flipped
}

// It has many pages, and plain shards that begin at a page and others that do not.
TEST(DamageFeatures, TheLargeCheckpointHasLongShards) {
  std::set<std::string> features;
  const DamageCase large = MakeDamageCase("large", LargeSpec());
  for (const auto& [number, blob] : large.container.blobs) {
    const Bytes& file = large.container.files.at(blob.name);
    EXPECT_GT(file.size(), 16 * 4096u);
    CollectFromBlob(file, features);
  }
  EXPECT_TRUE(features.contains("large shard"));
  EXPECT_TRUE(features.contains("small shard"));
}

}  // namespace
}  // namespace sealpoint::testing
