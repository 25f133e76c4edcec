// SPDX-License-Identifier: Apache-2.0
//
// A load is checked by what it touches: each stored chunk is read alone, with each part of each
// blob damaged in turn.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "tests/support/damage/check.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

struct WantedChunk {
  std::string blob;
  std::uint32_t record = 0;
  ChunkOf content;
};

struct Counts {
  std::uint64_t touched = 0;
  std::uint64_t untouched = 0;
};

const MiniTensor& TensorNamed(const DamageCase& one, const std::string& name) {
  return *std::find_if(one.spec.tensors.begin(), one.spec.tensors.end(),
                       [&](const MiniTensor& tensor) { return tensor.name == name; });
}

// Objects are read as a whole, tensors by chunk.
std::vector<WantedChunk> FindWantedChunks(const DamageCase& one) {
  std::vector<WantedChunk> chunks;
  for (const auto& [blob, owners] : FindChunkOwners(one)) {
    for (std::uint32_t r = 0; r < owners.size(); ++r) {
      if (!owners[r].is_object) chunks.push_back({blob, r, owners[r]});
    }
  }
  return chunks;
}

// True if reading the chunk touches this part of the blob: reader-rules.md section 4.
bool Touches(const WantedChunk& chunk, const BlobArea& area) {
  switch (area.kind) {
    case AreaKind::kPlainChunk:
    case AreaKind::kCodedChunk:
      return area.record == chunk.record;
    case AreaKind::kGroup:
      return area.group == chunk.record / 64;
    case AreaKind::kGroupList:
      return true;
    default:
      return false;
  }
}

std::string RuleOf(AreaKind kind) {
  if (kind == AreaKind::kPlainChunk) return "R-CHK-02";
  return kind == AreaKind::kCodedChunk ? "R-CHK-01" : "R-BLB-05";
}

class PartialLoads {
 public:
  explicit PartialLoads(const DamageCase& one)
      : case_(one), checker_(one), chunks_(FindWantedChunks(one)) {}

  void Run(Counts& counts) {
    for (const auto& [blob, areas] : checker_.model().areas()) {
      for (const BlobArea& area : areas) {
        checker_.bytes(blob)[area.begin + (area.end - area.begin) / 2] ^= std::byte{4};
        for (const WantedChunk& chunk : chunks_) {
          const bool is_touched = chunk.blob == blob && Touches(chunk, area);
          (is_touched ? counts.touched : counts.untouched) += 1;
          is_touched ? ExpectFailure(chunk, area) : ExpectBytes(chunk);
          ASSERT_FALSE(::testing::Test::HasFailure())
              << case_.name << ": record " << chunk.record << " of " << chunk.blob
              << " with damage in " << blob << " from " << area.begin << " to " << area.end;
        }
        checker_.Restore(blob);
      }
    }
  }

 private:
  Status Load(const WantedChunk& chunk, Bytes& bytes) {
    auto checkpoint =
        Checkpoint::Open(DamageStorage::kPath, {.storage = checker_.shared_storage()});
    if (!checkpoint.ok()) return std::move(checkpoint).error();
    ReadRequest request;
    request.Add(chunk.content.owner, chunk.content.elements, MutableMemoryView::Host(bytes));
    return (*checkpoint)->Load(request, LoadContract::Partial()).status();
  }

  Bytes Expected(const WantedChunk& chunk) const {
    const MiniTensor& tensor = TensorNamed(case_, chunk.content.owner);
    return ExtractRegion(case_.content.tensors.at(tensor.name), tensor.shape, ElementSize(tensor),
                         chunk.content.elements);
  }
  static std::uint32_t ElementSize(const MiniTensor& tensor) {
    return tensor.element_size != 0 ? tensor.element_size : DTypeSizeBytes(tensor.dtype);
  }

  void ExpectBytes(const WantedChunk& chunk) {
    const Bytes expected = Expected(chunk);
    Bytes bytes(expected.size());
    const Status status = Load(chunk, bytes);
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(bytes, expected);
  }

  void ExpectFailure(const WantedChunk& chunk, const BlobArea& area) {
    Bytes bytes(Expected(chunk).size());
    const Status status = Load(chunk, bytes);
    EXPECT_EQ(status.code(), Code::kCorrupt);
    EXPECT_EQ(status.place().rule, RuleOf(area.kind));
    EXPECT_EQ(status.place().path, JoinPath(DamageStorage::kPath, chunk.blob));
    EXPECT_EQ(status.place().tensor, chunk.content.owner);
  }

  const DamageCase& case_;
  DamageChecker checker_;
  const std::vector<WantedChunk> chunks_;
};

TEST(DamagePartialLoads, DamageMattersExactlyWhereItIsTouched) {
  Counts counts;
  for (const DamageCase& damage_case : SmallDamageCases()) {
    PartialLoads(damage_case).Run(counts);
    if (HasFatalFailure()) return;
  }
  const DamageCase large = MakeDamageCase("large", LargeSpec());
  PartialLoads(large).Run(counts);
  if (HasFatalFailure()) return;
  RecordRun({.row = "damage-partial-loads",
             .title = "Loads of one chunk, one part of a blob damaged",
             .command = "ctest --test-dir build/dev -R damage.partial_loads",
             .counts = {{"touched", counts.touched}, {"untouched", counts.untouched}}});
}

// Damages every chunk that is not the item's.
void DamageAllBut(DamageChecker& checker, const std::string& item) {
  for (const auto& [blob, areas] : checker.model().areas()) {
    for (const BlobArea& area : areas) {
      if (!area.owner.empty() && area.owner != item)
        checker.bytes(blob)[area.begin] ^= std::byte{1};
    }
  }
}

TEST(DamagePartialLoads, OneItemLoadsWithDamageInAllOthers) {
  for (const DamageCase& damage_case : SmallDamageCases()) {
    DamageChecker checker(damage_case);
    const auto open = [&](const std::string& item) {
      DamageAllBut(checker, item);
      return Checkpoint::Open(DamageStorage::kPath, {.storage = checker.shared_storage()}).value();
    };
    for (const auto& [item, expected] : damage_case.content.tensors) {
      Bytes bytes(expected.size());
      ReadRequest request;
      request.Add(item, MutableMemoryView::Host(bytes));
      const Status status = open(item)->Load(request, LoadContract::Partial()).status();
      EXPECT_TRUE(status.ok()) << damage_case.name << ", " << item << ": " << status.ToString();
      EXPECT_EQ(bytes, expected) << damage_case.name << ", " << item;
      checker.Restore();
    }
    for (const auto& [item, expected] : damage_case.content.objects) {
      const Result<Bytes> bytes = open(item)->ReadObject(item);
      ASSERT_TRUE(bytes.ok()) << damage_case.name << ", " << item << ": "
                              << bytes.error().ToString();
      EXPECT_EQ(*bytes, expected) << damage_case.name << ", " << item;
      checker.Restore();
    }
  }
}

}  // namespace
}  // namespace sealpoint::testing
