// SPDX-License-Identifier: Apache-2.0
//
// Small checkpoints that together use every feature of the format. Tests flip every bit of them.
#ifndef SEALPOINT_TESTS_SUPPORT_DAMAGE_CONTAINERS_H_
#define SEALPOINT_TESTS_SUPPORT_DAMAGE_CONTAINERS_H_

#include <deque>
#include <string>

#include "tests/conformance/corpus.h"

namespace sealpoint::testing {

struct DamageCase {
  std::string name;
  MiniSpec spec;
  MiniContainer container;
  CorpusContent content;  // what loading everything yields
};

// Box lists with and without runs, grids with and without run cuts, an element without dimensions,
// an empty tensor; objects of no byte and of several chunks; two blobs.
MiniSpec LayoutsSpec();
// One tensor of each registered dtype and one of an unregistered one.
MiniSpec DTypesSpec();
// Chunks as zstd frames, as split zstd frames, and raw between coded ones; a coded shard that is
// long enough to begin at a page.
MiniSpec CodedSpec();
// More than 64 records in a blob.
MiniSpec GroupsSpec();
// Shards shorter and longer than the length from which a shard begins at a page, in three blobs of
// many pages.
MiniSpec LargeSpec();

// The first four, of which all bits are flipped.
const std::deque<DamageCase>& SmallDamageCases();

// An older version of the same checkpoint: the same tensors, objects and blob ids, but other bytes,
// another attempt and another step.
MiniSpec OlderVersion(MiniSpec spec);

DamageCase MakeDamageCase(std::string name, MiniSpec spec);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_DAMAGE_CONTAINERS_H_
