// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/declarations_add_up.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/endian.h"
#include "lib/base/macros.h"
#include "lib/base/mix.h"
#include "lib/base/wire.h"
#include "lib/layout/region_algebra.h"
#include "lib/layout/tiling_sum.h"
#include "lib/saver/save_plan.h"
#include "lib/writer/tensor_checks.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal {
namespace {

using Key = TilingSum::Key;

Key KeyOf(std::string_view text) {
  const Digest digest = ComputeDigest(AsBytes(text));
  return {LoadLe<std::uint64_t>(digest.bytes, 0), LoadLe<std::uint64_t>(digest.bytes, 8)};
}

void Append(Key& key, std::uint64_t number) {
  for (std::uint64_t& lane : key) lane = MixWith(lane, number);
}

// Of all in which the declarations of a tensor must agree.
Key SpecOf(const Key& name, const TensorSpec& tensor) {
  Key spec = name;
  Append(spec, static_cast<std::uint64_t>(tensor.dtype));
  Append(spec, ElementSize(tensor));
  for (const std::uint64_t extent : tensor.shape) Append(spec, extent);
  Append(spec, tensor.chunk_size_bytes);
  for (const std::string& rule : tensor.placement) {
    for (const std::uint64_t lane : KeyOf(rule)) Append(spec, lane);
  }
  return spec;
}

// What may not come twice: a name of a tensor, a name of an object. Of an empty tensor, which many
// ranks may declare, no two specs may come.
struct Claim {
  Key name{};
  Key spec{};  // zero but for empty tensors
  friend auto operator<=>(const Claim&, const Claim&) = default;
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
  void AddRegion(const Key& name, const HeldTensor& held);
  void Send(const Claim& claim);
  bool OneWrites(std::span<const int> holders) const;

  const int rank_;
  const std::span<const int> writer_ranks_;
  const Limits& limits_;
  TilingSum sum_;
  bool is_doubtful_ = false;
  std::vector<Bytes> outgoing_;
  std::optional<Region> whole_;  // of the tensor that is being added
};

void Contribution::Send(const Claim& claim) {
  WireWriter(outgoing_[claim.name[0] % outgoing_.size()])
      .PutAll(std::array{claim.name[0], claim.name[1], claim.spec[0], claim.spec[1]});
}

bool Contribution::OneWrites(std::span<const int> holders) const {
  return std::any_of(holders.begin(), holders.end(),
                     [this](int rank) { return Writes(writer_ranks_, rank); });
}

void Contribution::AddRegion(const Key& name, const HeldTensor& held) {
  const Key spec = SpecOf(name, held.tensor);
  const Region& region = held.region ? *held.region : whole_.emplace(HeldRegionOf(held));
  const std::span<const int> holders =
      held.replicas.empty() ? std::span<const int>(&rank_, 1) : held.replicas;
  // What the committer may find too much for a check of corners is counted exactly.
  const std::size_t ndim = region.box.extent.size();
  const bool is_box = region.run == Run{0, BoxElementCount(region.box)};
  const std::uint64_t boxes_max = is_box ? 1 : 2 * ndim - 1;
  if (boxes_max > limits_.tiling_corners_per_shard_max >> ndim || !OneWrites(holders)) {
    is_doubtful_ = true;
  }
  if (holders.size() > 1) sum_.AddHolder(spec, region, holders, rank_);
  if (holders.front() != rank_) return;
  sum_.AddRegion(spec, region);
  const bool has_first_element =
      region.run.begin == 0 && std::all_of(region.box.offset.begin(), region.box.offset.end(),
                                           [](std::uint64_t offset) { return offset == 0; });
  if (!has_first_element) return;
  sum_.SubtractTensor(spec, held.tensor.shape);
  Send({.name = name});
}

void Contribution::Add(const HeldTensor& held) {
  const Key name = KeyOf(held.tensor.name);
  if (!IsEmpty(held.tensor)) return AddRegion(name, held);
  if (!Writes(writer_ranks_, rank_)) is_doubtful_ = true;
  Send({.name = name, .spec = SpecOf(name, held.tensor)});
}

void Contribution::Add(const HeldObject& object) {
  if (!Writes(writer_ranks_, rank_)) is_doubtful_ = true;
  Key name = KeyOf(object.name);
  Append(name, 1);  // objects and tensors have names of their own
  Send({.name = name});
}

Result<Key> ReadKey(WireReader& in) {
  Key key{};
  for (std::uint64_t& lane : key) {
    SEALPOINT_ASSIGN_OR_RETURN(lane, in.Number());
  }
  return key;
}

Result<bool> ClaimsAreUnique(const std::vector<Bytes>& incoming) {
  std::vector<Claim> all;
  for (const Bytes& bytes : incoming) {
    WireReader in(bytes);
    while (!in.at_end()) {
      SEALPOINT_ASSIGN_OR_RETURN(const Key name, ReadKey(in));
      SEALPOINT_ASSIGN_OR_RETURN(const Key spec, ReadKey(in));
      all.push_back({.name = name, .spec = spec});
    }
  }
  std::sort(all.begin(), all.end());
  return std::adjacent_find(all.begin(), all.end(), [](const Claim& a, const Claim& b) {
           return a.name == b.name && (a.spec == Key{} || a.spec != b.spec);
         }) == all.end();
}

}  // namespace

Result<bool> DeclarationsAddUp(Communicator& comm, const Declaration& declaration,
                               std::span<const int> writer_ranks, const Limits& limits) {
  Contribution mine(comm, writer_ranks, limits);
  for (const HeldTensor& held : declaration.tensors()) mine.Add(held);
  for (const HeldObject& object : declaration.objects()) mine.Add(object);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> incoming, comm.AllToAll(mine.outgoing()));
  const auto unique = ClaimsAreUnique(incoming);
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
    SEALPOINT_ASSIGN_OR_RETURN(const Key values, ReadKey(in));
    sum.Add(TilingSum::FromValues(values));
    if (has_doubts != 0) adds_up = false;
  }
  return adds_up && sum.is_zero();
}

}  // namespace sealpoint::internal
