// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/declarations_add_up.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "lib/base/endian.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/layout/region_algebra.h"
#include "lib/layout/tiling_sum.h"
#include "lib/saver/save_plan.h"
#include "lib/writer/tensor_checks.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal {
namespace {

TilingSum::Key KeyOf(const Digest& digest) {
  return {LoadLe<std::uint64_t>(digest.bytes, 0), LoadLe<std::uint64_t>(digest.bytes, 8)};
}

// Who sends this name, and of what kind: tensors and objects have names of their own.
struct NamedOnce {
  Digest name{};
  Digest spec{};  // that of an empty tensor, which many ranks may declare, if alike; else zero
  friend auto operator<=>(const NamedOnce&, const NamedOnce&) = default;
};

// What one rank adds.
class Contribution {
 public:
  Contribution(const Communicator& comm, std::span<const int> writer_ranks, const Limits& limits)
      : rank_(comm.rank()),
        writer_ranks_(writer_ranks),
        limits_(limits),
        outgoing_(static_cast<std::size_t>(comm.size())) {}

  void Add(const HeldTensor& held);
  void Add(const HeldObject& object);

  const std::vector<Bytes>& outgoing() const { return outgoing_; }
  const TilingSum& sum() const { return sum_; }
  bool is_doubtful() const { return is_doubtful_; }

 private:
  Digest NameOf(std::string_view kind, std::string_view name);
  Digest SpecOf(const TensorSpec& tensor);
  void AddRegion(const TilingSum::Key& key, const HeldTensor& held);
  void SendName(const NamedOnce& one);
  bool OneWrites(std::span<const int> holders) const;

  const int rank_;
  const std::span<const int> writer_ranks_;
  const Limits& limits_;
  TilingSum sum_;
  bool is_doubtful_ = false;
  std::vector<Bytes> outgoing_;
  Bytes scratch_;
};

Digest Contribution::NameOf(std::string_view kind, std::string_view name) {
  scratch_.clear();
  WireWriter out(scratch_);
  out.Put(kind);
  out.Put(name);
  return ComputeDigest(scratch_);
}

// Of all in which the declarations of a tensor must agree.
Digest Contribution::SpecOf(const TensorSpec& tensor) {
  scratch_.clear();
  WireWriter out(scratch_);
  out.Put(tensor.name);
  out.Put(static_cast<std::uint64_t>(tensor.dtype));
  out.Put(std::uint64_t{ElementSize(tensor)});
  out.Put(tensor.shape);
  out.Put(tensor.chunk_size_bytes);
  out.Put(std::uint64_t{tensor.placement.size()});
  for (const std::string& rule : tensor.placement) out.Put(rule);
  return ComputeDigest(scratch_);
}

void Contribution::SendName(const NamedOnce& one) {
  WireWriter out(outgoing_[LoadLe<std::uint64_t>(one.name.bytes, 0) % outgoing_.size()]);
  out.Put(one.name);
  out.Put(one.spec);
}

bool Contribution::OneWrites(std::span<const int> holders) const {
  return std::any_of(holders.begin(), holders.end(),
                     [this](int rank) { return Writes(writer_ranks_, rank); });
}

void Contribution::AddRegion(const TilingSum::Key& key, const HeldTensor& held) {
  const Region region = HeldRegionOf(held);
  const std::vector<int> alone = {rank_};
  const std::span<const int> holders = held.replicas.empty() ? alone : held.replicas;
  // Shards of so many corners are counted exactly.
  std::uint64_t boxes = 0;
  ForEachBox(region, [&boxes](const Box&) { ++boxes; });
  const std::size_t ndim = held.tensor.shape.size();
  if (boxes > limits_.tiling_corners_per_shard_max >> ndim || !OneWrites(holders)) {
    is_doubtful_ = true;
  }
  if (holders.size() > 1) sum_.AddHolder(key, region, holders, rank_);
  if (holders.front() != rank_) return;
  sum_.AddRegion(key, region);
  const bool has_first_element =
      region.run.begin == 0 && std::all_of(region.box.offset.begin(), region.box.offset.end(),
                                           [](std::uint64_t offset) { return offset == 0; });
  if (!has_first_element) return;
  sum_.SubtractTensor(key, held.tensor.shape);
  SendName({.name = NameOf("tensor", held.tensor.name)});
}

void Contribution::Add(const HeldTensor& held) {
  const Digest spec = SpecOf(held.tensor);
  if (!IsEmpty(held.tensor)) return AddRegion(KeyOf(spec), held);
  if (!Writes(writer_ranks_, rank_)) is_doubtful_ = true;
  SendName({.name = NameOf("tensor", held.tensor.name), .spec = spec});
}

void Contribution::Add(const HeldObject& object) {
  if (!Writes(writer_ranks_, rank_)) is_doubtful_ = true;
  SendName({.name = NameOf("object", object.name)});
}

// No name comes twice, but that of an empty tensor whose declarations are alike.
Result<bool> NamesAreUnique(const std::vector<Bytes>& incoming) {
  std::vector<NamedOnce> all;
  for (const Bytes& bytes : incoming) {
    WireReader in(bytes);
    while (!in.at_end()) {
      NamedOnce one;
      SEALPOINT_ASSIGN_OR_RETURN(one.name, in.Id());
      SEALPOINT_ASSIGN_OR_RETURN(one.spec, in.Id());
      all.push_back(one);
    }
  }
  std::sort(all.begin(), all.end());
  return std::adjacent_find(all.begin(), all.end(), [](const auto& a, const auto& b) {
           return a.name == b.name && (a.spec.is_zero() || a.spec != b.spec);
         }) == all.end();
}

}  // namespace

Result<bool> DeclarationsAddUp(Communicator& comm, const Declaration& declaration,
                               std::span<const int> writer_ranks, const Limits& limits) {
  Contribution mine(comm, writer_ranks, limits);
  for (const HeldTensor& held : declaration.tensors()) mine.Add(held);
  for (const HeldObject& object : declaration.objects()) mine.Add(object);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> incoming, comm.AllToAll(mine.outgoing()));
  const auto unique = NamesAreUnique(incoming);
  const bool is_doubtful = mine.is_doubtful() || !unique.ok() || !*unique;
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(std::uint64_t{is_doubtful ? 1u : 0u});
  for (const std::uint64_t value : mine.sum().values()) out.Put(value);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.AllGather(bytes));
  TilingSum sum;
  bool adds_up = true;
  for (const Bytes& one : all) {
    WireReader in(one);
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t has_doubts, in.Number());
    std::array<std::uint64_t, 2> values{};
    for (std::uint64_t& value : values) {
      SEALPOINT_ASSIGN_OR_RETURN(value, in.Number());
    }
    sum.Add(TilingSum::FromValues(values));
    if (has_doubts != 0) adds_up = false;
  }
  return adds_up && sum.is_zero();
}

}  // namespace sealpoint::internal
