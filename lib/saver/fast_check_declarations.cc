// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/layout/tiling_sum.h"
#include "lib/saver/box_list_sizes.h"
#include "lib/saver/check_declarations.h"
#include "lib/writer/declaration_summary.h"

namespace sealpoint::internal::saver {
namespace {

using Hash = writer::SlotSummary::Hash;

// What this rank sends to one owner of names. 64 bits of a name's hash suffice: a collision costs
// one run of the full check and never hides a duplicate, because equal names have equal hashes.
struct Claims {
  // Hashes of the objects, and of the tensors of which this rank is the first holder of the first
  // element. Over all ranks each may occur once.
  std::vector<std::uint64_t> names{};
  // Pairs (hash of the name, hash of the spec) of empty tensors. Several ranks may declare the same
  // one, but with the same spec.
  std::vector<std::uint64_t> empties{};
  // Hashes of the names of tensors of which this rank holds no element: another one must.
  std::vector<std::uint64_t> mentions{};

  bool is_empty() const { return names.empty() && empties.empty() && mentions.empty(); }
};

// What one rank contributes to the sums and claims of all.
class Contribution {
 public:
  Contribution(const Communicator& comm, std::span<const int> writer_ranks, const Limits& limits)
      : rank_(comm.rank()),
        writer_ranks_(writer_ranks),
        limits_(limits),
        claims_(static_cast<std::size_t>(comm.size())) {}

  void Add(const Declaration& declaration);

  std::vector<Bytes> EncodeClaims() const;
  const layout::TilingSum& sum() const { return sum_; }
  bool is_doubtful() const { return is_doubtful_; }

 private:
  void AddHolders(const std::vector<int>& replicas, const writer::ReplicaGroupSummary& group);
  void AddSlot(const writer::SlotSummary& slot);
  void AddObject(const ObjectSpec& object);
  Claims& ClaimsTo(const Hash& name) { return claims_[name[0] % claims_.size()]; }
  bool AnyWrites(std::span<const int> holders) const;

  const int rank_;
  const std::span<const int> writer_ranks_;
  const Limits& limits_;
  layout::TilingSum sum_;
  bool is_doubtful_ = false;    // only the full check can decide
  std::vector<char> leads_;     // by list of replicas: whether this rank is the first holder
  std::vector<Claims> claims_;  // by owner
};

std::vector<Bytes> Contribution::EncodeClaims() const {
  std::vector<Bytes> outgoing(claims_.size());
  for (std::size_t owner = 0; owner < claims_.size(); ++owner) {
    const Claims& claims = claims_[owner];
    // Among thousands of ranks, most own no name that this rank declares.
    if (claims.is_empty()) continue;
    WireWriter out(outgoing[owner]);
    out.Put(claims.names);
    out.Put(claims.empties);
    out.Put(claims.mentions);
  }
  return outgoing;
}

bool Contribution::AnyWrites(std::span<const int> holders) const {
  return std::any_of(holders.begin(), holders.end(),
                     [this](int rank) { return Writes(writer_ranks_, rank); });
}

void Contribution::Add(const Declaration& declaration) {
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(declaration);
  leads_.resize(summary.replica_groups().size());
  for (const auto& [replicas, group] : summary.replica_groups()) AddHolders(replicas, group);
  for (const writer::SlotSummary& slot : summary.slots()) AddSlot(slot);
  for (const ObjectSpec& object : declaration.objects()) AddObject(object);
}

void Contribution::AddHolders(const std::vector<int>& replicas,
                              const writer::ReplicaGroupSummary& group) {
  if (group.region_count == 0) return;
  const std::span<const int> holders =
      replicas.empty() ? std::span<const int>(&rank_, 1) : replicas;
  // If the committer might refuse the number of corners, the full check counts them exactly.
  if (group.corner_count_max > limits_.tiling_corners_per_shard_max || !AnyWrites(holders)) {
    is_doubtful_ = true;
  }
  // Every holder adds a term that depends on its position in the list; they cancel out only if each
  // rank of the list contributed the same names. Only the first holder adds the regions themselves.
  if (holders.size() > 1)
    sum_.AddHolder(layout::TilingSum::FromValues(group.names), holders, rank_);
  if (holders.front() != rank_) return;
  leads_[group.number] = 1;
  sum_.Add(layout::TilingSum::FromValues(group.tiling));
}

void Contribution::AddSlot(const writer::SlotSummary& slot) {
  if (slot.is_empty_tensor) {
    if (!Writes(writer_ranks_, rank_)) is_doubtful_ = true;
    std::vector<std::uint64_t>& empties = ClaimsTo(slot.name).empties;
    empties.insert(empties.end(), {slot.name[1], slot.spec});
    return;
  }
  if (slot.is_empty) {
    ClaimsTo(slot.name).mentions.push_back(slot.name[1]);
    return;
  }
  if (slot.has_first_element && leads_[slot.replica_group] != 0) {
    ClaimsTo(slot.name).names.push_back(slot.name[1]);
  }
}

void Contribution::AddObject(const ObjectSpec& object) {
  if (!Writes(writer_ranks_, rank_)) is_doubtful_ = true;
  const Hash name = writer::HashObjectName(object.name);
  ClaimsTo(name).names.push_back(name[1]);
}

Result<Hash> ReadHash(WireReader& in) {
  Hash hash{};
  for (std::uint64_t& lane : hash) {
    SEALPOINT_ASSIGN_OR_RETURN(lane, in.Number());
  }
  return hash;
}

// A set of numbers that are hashes already, so that their low bits serve as the position.
class HashSet {
 public:
  // The table has at least twice as many places as `count_max`.
  explicit HashSet(std::size_t count_max) : places_(std::bit_ceil(2 * count_max + 1)) {}

  bool Contains(std::uint64_t hash) const {
    if (hash == kFree) return has_free_;
    const std::size_t mask = places_.size() - 1;
    std::size_t at = hash & mask;
    while (places_[at] != kFree && places_[at] != hash) at = (at + 1) & mask;
    return places_[at] == hash;
  }

  // False if it was there already.
  bool Insert(std::uint64_t hash) {
    if (hash == kFree) return !std::exchange(has_free_, true);
    const std::size_t mask = places_.size() - 1;
    std::size_t at = hash & mask;
    while (places_[at] != kFree && places_[at] != hash) at = (at + 1) & mask;
    return std::exchange(places_[at], hash) == kFree;
  }

 private:
  static constexpr std::uint64_t kFree = 0;

  std::vector<std::uint64_t> places_;
  bool has_free_ = false;
};

// What an owner finds out about its names.
struct OwnedNames {
  bool agree = true;
  std::uint64_t count = 0;
};

Result<OwnedNames> CompareClaims(const std::vector<Bytes>& incoming) {
  std::vector<Claims> all;
  std::size_t count_max = 0;
  for (const Bytes& bytes : incoming) {
    if (bytes.empty()) continue;
    WireReader in(bytes);
    Claims& claims = all.emplace_back();
    SEALPOINT_ASSIGN_OR_RETURN(claims.names, in.Numbers());
    SEALPOINT_ASSIGN_OR_RETURN(claims.empties, in.Numbers());
    SEALPOINT_ASSIGN_OR_RETURN(claims.mentions, in.Numbers());
    count_max += claims.names.size() + claims.empties.size();
  }
  HashSet seen(count_max);
  std::map<std::uint64_t, std::uint64_t> empties;
  OwnedNames names;
  const auto insert = [&](std::uint64_t name) {
    if (seen.Insert(name)) {
      ++names.count;
    } else {
      names.agree = false;
    }
  };
  for (const Claims& claims : all) {
    for (const std::uint64_t name : claims.names) insert(name);
    const std::vector<std::uint64_t>& pairs = claims.empties;
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      const auto known = empties.emplace(pairs[i], pairs[i + 1]).first;
      if (known->second != pairs[i + 1]) names.agree = false;
    }
  }
  for (const auto& [name, spec] : empties) insert(name);
  for (const Claims& claims : all) {
    for (const std::uint64_t name : claims.mentions) {
      if (!seen.Contains(name)) names.agree = false;
    }
  }
  return names;
}

// How much the index of the checkpoint will have.
struct Counts {
  std::uint64_t names = 0;  // of tensors and objects
  std::uint64_t objects = 0;
  std::uint64_t shards = 0;  // of tensors
};

// The committer refuses these too, and shards of objects, but learns of them when all is written.
// Names that occur twice were found before: else what is counted would hide the fault.
Status CheckCounts(const Counts& counts, const Limits& limits) {
  const auto check = [](std::string_view what, std::uint64_t count, std::uint64_t max) -> Status {
    if (count <= max) return {};
    return RuleError(Code::kLimitExceeded, "R-IDX-04", count, " ", what,
                     " on all ranks together, the limit is ", max);
  };
  SEALPOINT_RETURN_IF_ERROR(check("shards of tensors", counts.shards, limits.shard_count_max));
  SEALPOINT_RETURN_IF_ERROR(check("objects", counts.objects, limits.object_count_max));
  return check("tensors", counts.names - counts.objects, limits.tensor_count_max);
}

// The limits that count here, of rank 0, which commits: all ranks come to the same answer.
constexpr std::array kLimits = {
    &Limits::tensor_count_max,        &Limits::object_count_max,
    &Limits::shard_count_max,         &Limits::box_list_shard_count_max,
    &Limits::tiling_corner_count_max, &Limits::tiling_corners_per_shard_max};

// The contributions of all ranks.
struct Sums {
  bool has_doubts = false;
  Limits limits{};
  Counts counts{};
  BoxListSize shares{};
  layout::TilingSum tiling{};
};

Result<Sums> SumUp(const std::vector<Bytes>& all) {
  Sums sums;
  for (const Bytes& message : all) {
    WireReader in(message);
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t has_doubts, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t names, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t objects, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t shards, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t shard_count, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t corner_count, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(const Hash values, ReadHash(in));
    if (has_doubts != 0) sums.has_doubts = true;
    sums.counts.names += names;
    sums.counts.objects += objects;
    sums.counts.shards += shards;
    sums.shares.shard_count += shard_count;
    sums.shares.corner_count += corner_count;
    sums.tiling.Add(layout::TilingSum::FromValues(values));
    if (&message != &all.front()) continue;
    for (const auto limit : kLimits) {
      SEALPOINT_ASSIGN_OR_RETURN(sums.limits.*limit, in.Number());
    }
  }
  return sums;
}

}  // namespace

Result<bool> FastCheckDeclarations(Communicator& comm, const Declaration& declaration,
                                   const SavePlan& plan, std::span<const int> writer_ranks,
                                   const Limits& limits) {
  Contribution contribution(comm, writer_ranks, limits);
  contribution.Add(declaration);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> incoming,
                             comm.AllToAll(contribution.EncodeClaims()));
  const auto names = CompareClaims(incoming);
  const bool is_doubtful = contribution.is_doubtful() || !names.ok() || !names->agree;
  const BoxListSize share = LargestShareOf(declaration);
  Bytes bytes;
  WireWriter out(bytes);
  out.PutAll(std::array{std::uint64_t{is_doubtful ? 1u : 0u}, names.ok() ? names->count : 0,
                        declaration.objects().size(), plan.shards.size(), share.shard_count,
                        share.corner_count});
  out.PutAll(contribution.sum().values());
  if (comm.rank() == 0) {
    for (const auto limit : kLimits) out.Put(limits.*limit);
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.AllGather(bytes));
  SEALPOINT_ASSIGN_OR_RETURN(const Sums sums, SumUp(all));
  if (sums.has_doubts || !sums.tiling.is_zero()) return false;
  SEALPOINT_RETURN_IF_ERROR(CheckCounts(sums.counts, sums.limits));
  // Usually no tensor can have too many shards for a box list, even in the worst case. Only
  // otherwise are they counted per tensor.
  if (FitsLimits(sums.shares, sums.limits)) return true;
  return AllFitBoxLists(comm, declaration, plan, sums.limits);
}

}  // namespace sealpoint::internal::saver
