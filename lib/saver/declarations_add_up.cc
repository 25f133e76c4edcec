// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/declarations_add_up.h"

#include <algorithm>
#include <map>
#include <vector>

#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/layout/tiling_sum.h"
#include "lib/saver/save_plan.h"
#include "lib/writer/slot_facts.h"

namespace sealpoint::internal {
namespace {

using Hash = SlotFacts::Hash;

// What goes to one judge. Half of a name's hash is enough there: two names that share it cost an
// exchange of declarations, and one name that comes twice always shares it.
struct Claims {
  // Of tensors that this rank leads, and of objects: may not come twice.
  std::vector<std::uint64_t> names{};
  // Of empty tensors, name and spec, one behind the other: many ranks may declare them, alike.
  std::vector<std::uint64_t> empties{};
};

// What one rank adds.
class Contribution {
 public:
  Contribution(const Communicator& comm, std::span<const int> writer_ranks, const Limits& limits)
      : rank_(comm.rank()),
        writer_ranks_(writer_ranks),
        limits_(limits),
        claims_(static_cast<std::size_t>(comm.size())) {}

  void Add(const HeldTensor& held, const SlotFacts& facts);
  void Add(const HeldObject& object);

  std::vector<Bytes> EncodeClaims() const;
  const TilingSum& sum() const { return sum_; }
  bool is_doubtful() const { return is_doubtful_; }

 private:
  Claims& ClaimsTo(const Hash& name) { return claims_[name[0] % claims_.size()]; }
  bool OneWrites(std::span<const int> holders) const;

  const int rank_;
  const std::span<const int> writer_ranks_;
  const Limits& limits_;
  TilingSum sum_;
  bool is_doubtful_ = false;
  std::vector<Claims> claims_;  // by judge
};

std::vector<Bytes> Contribution::EncodeClaims() const {
  std::vector<Bytes> outgoing(claims_.size());
  for (std::size_t judge = 0; judge < claims_.size(); ++judge) {
    WireWriter out(outgoing[judge]);
    out.Put(claims_[judge].names);
    out.Put(claims_[judge].empties);
  }
  return outgoing;
}

bool Contribution::OneWrites(std::span<const int> holders) const {
  return std::any_of(holders.begin(), holders.end(),
                     [this](int rank) { return Writes(writer_ranks_, rank); });
}

void Contribution::Add(const HeldTensor& held, const SlotFacts& facts) {
  if (facts.is_empty) {
    if (!Writes(writer_ranks_, rank_)) is_doubtful_ = true;
    std::vector<std::uint64_t>& empties = ClaimsTo(facts.name).empties;
    empties.insert(empties.end(), {facts.name[1], facts.spec[1]});
    return;
  }
  const std::span<const int> holders =
      held.replicas.empty() ? std::span<const int>(&rank_, 1) : held.replicas;
  // What the committer may find too much for a check of corners is counted exactly.
  if (facts.corner_count > limits_.tiling_corners_per_shard_max || !OneWrites(holders)) {
    is_doubtful_ = true;
  }
  if (holders.size() > 1) sum_.AddHolder(facts.group, holders, rank_);
  if (holders.front() != rank_) return;
  sum_.Add(TilingSum::FromValues(facts.tiling));
  if (facts.has_first_element) ClaimsTo(facts.name).names.push_back(facts.name[1]);
}

void Contribution::Add(const HeldObject& object) {
  if (!Writes(writer_ranks_, rank_)) is_doubtful_ = true;
  const Hash name = HashObjectName(object.name);
  ClaimsTo(name).names.push_back(name[1]);
}

Result<Hash> ReadHash(WireReader& in) {
  Hash hash{};
  for (std::uint64_t& lane : hash) {
    SEALPOINT_ASSIGN_OR_RETURN(lane, in.Number());
  }
  return hash;
}

Result<bool> ClaimsAgree(const std::vector<Bytes>& incoming) {
  std::vector<std::uint64_t> names;
  std::map<std::uint64_t, std::uint64_t> empties;
  bool are_alike = true;
  for (const Bytes& bytes : incoming) {
    WireReader in(bytes);
    SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> more, in.Numbers());
    SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> pairs, in.Numbers());
    names.insert(names.end(), more.begin(), more.end());
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      const auto known = empties.emplace(pairs[i], pairs[i + 1]).first;
      if (known->second != pairs[i + 1]) are_alike = false;
    }
  }
  for (const auto& [name, spec] : empties) names.push_back(name);
  std::sort(names.begin(), names.end());
  return are_alike && std::adjacent_find(names.begin(), names.end()) == names.end();
}

}  // namespace

Result<bool> DeclarationsAddUp(Communicator& comm, const Declaration& declaration,
                               std::span<const int> writer_ranks, const Limits& limits) {
  Contribution mine(comm, writer_ranks, limits);
  for (std::size_t slot = 0; slot < declaration.tensors().size(); ++slot) {
    mine.Add(declaration.tensors()[slot], declaration.facts()[slot]);
  }
  for (const HeldObject& object : declaration.objects()) mine.Add(object);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> incoming, comm.AllToAll(mine.EncodeClaims()));
  const auto agree = ClaimsAgree(incoming);
  const bool is_doubtful = mine.is_doubtful() || !agree.ok() || !*agree;
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
    SEALPOINT_ASSIGN_OR_RETURN(const Hash values, ReadHash(in));
    sum.Add(TilingSum::FromValues(values));
    if (has_doubts != 0) adds_up = false;
  }
  return adds_up && sum.is_zero();
}

}  // namespace sealpoint::internal
