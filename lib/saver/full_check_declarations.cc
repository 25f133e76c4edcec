// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/layout/grid.h"
#include "lib/layout/tiling.h"
#include "lib/saver/check_declarations.h"
#include "lib/saver/declaration_faults.h"
#include "lib/saver/owner_rank.h"
#include "lib/writer/declaration_codec.h"
#include "lib/writer/declaration_summary.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint::internal::saver {
namespace {

struct Holding {
  int rank = 0;
  DeclaredTensor held{};
  Run written{};  // by this rank; empty if other holders write all of it
};

// What all ranks declared for the names that one rank owns. The maps are ordered, so that the first
// error does not depend on the order of arrival.
struct NameClaims {
  std::map<std::string, std::vector<Holding>> tensors{};
  std::map<std::string, std::vector<int>> object_ranks{};
};

std::vector<Bytes> EncodeForOwners(const Declaration& declaration, const SavePlan& plan, int size) {
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(declaration);
  std::vector<Run> written(summary.slots().size());
  for (const PlannedShard& shard : plan.shards) written[shard.slot] = shard.run;
  std::vector<Bytes> outgoing(static_cast<std::size_t>(size));
  for (std::size_t slot = 0; slot < written.size(); ++slot) {
    const writer::DeclaredView held = summary.held(slot);
    WireWriter out(outgoing[OwnerRank(held.name, size)]);
    out.Put(std::uint64_t{1});
    writer::EncodeDeclaredTensor(held, out);
    out.PutAll(std::array{written[slot].begin, written[slot].end});
  }
  for (const ObjectSpec& object : declaration.objects()) {
    WireWriter out(outgoing[OwnerRank(object.name, size)]);
    out.Put(std::uint64_t{0});
    writer::EncodeObjectSpec(object, out);
  }
  return outgoing;
}

Status DecodeFrom(int rank, int size, ByteSpan bytes, NameClaims& claims) {
  WireReader in(bytes);
  while (!in.at_end()) {
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t is_tensor, in.Number());
    if (is_tensor != 0) {
      SEALPOINT_ASSIGN_OR_RETURN(DeclaredTensor held, writer::DecodeDeclaredTensor(in, size));
      Run written;
      SEALPOINT_ASSIGN_OR_RETURN(written.begin, in.Number());
      SEALPOINT_ASSIGN_OR_RETURN(written.end, in.Number());
      claims.tensors[held.tensor.name].push_back({rank, std::move(held), written});
    } else {
      SEALPOINT_ASSIGN_OR_RETURN(const ObjectSpec object, writer::DecodeObjectSpec(in));
      claims.object_ranks[object.name].push_back(rank);
    }
  }
  return {};
}

Status CheckSameTensor(const Holding& first, const Holding& other) {
  const TensorSpec& a = first.held.tensor;
  const TensorSpec& b = other.held.tensor;
  const auto differ = [&](std::string_view what) {
    return RuleError(Code::kInvalidArgument, "R-CMT-18", "ranks ", first.rank, " and ", other.rank,
                     " declare different ", what)
        .AtRank(other.rank, "");
  };
  if (a.dtype != b.dtype || writer::ElementSize(a) != writer::ElementSize(b))
    return differ("dtypes");
  if (a.shape != b.shape) {
    return differ(
        "shapes; expected one shape, or a different name on each rank (per_rank in "
        "sealpoint.torch)");
  }
  if (a.chunk_size_bytes != b.chunk_size_bytes) return differ("chunk sizes");
  if (a.stored_cuts != b.stored_cuts) return differ("stored cuts");
  if (a.placement != b.placement) return differ("placements");
  if (a.attributes != b.attributes) {
    return RuleError(Code::kInvalidArgument, "R-ATT-07", "ranks ", first.rank, " and ", other.rank,
                     " declare different attributes")
        .AtRank(other.rank, "");
  }
  return {};
}

std::string RanksToString(std::span<const int> ranks) {
  std::string out;
  for (const int rank : ranks) {
    if (!out.empty()) out.append(", ");
    out.append(std::to_string(rank));
  }
  return out;
}

// The ranks that hold a region must be exactly those that each of them lists as its replicas.
Status CheckReplicas(const Region& region, const std::vector<int>& holders,
                     const std::vector<const Holding*>& holdings) {
  for (const Holding* holding : holdings) {
    const std::vector<int>& listed = holding->held.replicas;
    const bool is_alone = listed.empty() && holders.size() == 1;
    if (is_alone || listed == holders) continue;
    return RuleError(Code::kInvalidArgument, "R-CMT-18", "region ", region.ToString(),
                     " is held by ranks ", RanksToString(holders), " but rank ", holding->rank,
                     " lists ", listed.empty() ? "no replicas" : RanksToString(listed))
        .AtRank(holding->rank, "");
  }
  return {};
}

Status CheckAnyWrites(std::string_view what, std::span<const int> holders,
                      std::span<const int> writer_ranks) {
  const bool one_writes = std::any_of(holders.begin(), holders.end(),
                                      [&](int rank) { return Writes(writer_ranks, rank); });
  if (one_writes) return {};
  return RuleError(Code::kInvalidArgument, "R-CMT-27", what, " is held by ranks ",
                   RanksToString(holders), ", and none of them writes")
      .AtRank(holders.front(), "");
}

Status DescribeFault(const layout::TilingFault& fault, const std::vector<Region>& regions,
                     const std::vector<std::vector<const Holding*>>& holdings,
                     const std::vector<int>& all_ranks) {
  std::string holders;
  for (const std::size_t i : fault.holders) {
    holders.append(holders.empty() ? ": rank " : " and rank ");
    holders.append(std::to_string(holdings[i].front()->rank)).append(" holds ");
    holders.append(regions[i].ToString());
  }
  const std::string element = ShapeToString(fault.element);
  if (all_ranks.empty()) {
    return RuleError(Code::kInvalidArgument, "R-CMT-19",
                     "no rank holds an element: all declared regions have an extent of 0");
  }
  if (fault.times_covered == 0) {
    return RuleError(Code::kInvalidArgument, "R-CMT-19", "no rank holds element ", element,
                     "; regions of the tensor are held by ranks ", RanksToString(all_ranks));
  }
  return RuleError(Code::kInvalidArgument, "R-CMT-19", "element ", element, " is held ",
                   fault.times_covered, " times", holders)
      .AtRank(holdings[fault.holders.back()].front()->rank, "");
}

std::vector<int> RanksOf(const std::vector<const Holding*>& holdings) {
  std::vector<int> ranks;
  for (const Holding* holding : holdings) ranks.push_back(holding->rank);
  return ranks;
}

// The limits that the committer would find exceeded after the payload is written. Precondition: the
// shards form no grid and tile the tensor.
Status CheckBoxList(const std::vector<Holding>& holdings, const Limits& limits) {
  std::vector<Region> shards;
  for (const Holding& holding : holdings) {
    if (holding.written.size() == 0) continue;
    shards.push_back(writer::HeldRegionOf(holding.held));
    shards.back().run = holding.written;
  }
  if (shards.size() > limits.box_list_shard_count_max) {
    return MakeError(Code::kLimitExceeded, shards.size(),
                     " shards that form no grid, the limit is ", limits.box_list_shard_count_max);
  }
  return layout::FindTilingFault(holdings.front().held.tensor.shape, shards,
                                 layout::TilingCornerCountMax(limits, shards.size()))
      .status();
}

Status CheckTensor(const std::vector<Holding>& holdings, std::span<const int> writer_ranks,
                   const Limits& limits) {
  for (const Holding& holding : holdings) {
    SEALPOINT_RETURN_IF_ERROR(CheckSameTensor(holdings.front(), holding));
  }
  if (writer::IsEmpty(holdings.front().held.tensor)) {
    std::vector<const Holding*> all;
    for (const Holding& holding : holdings) all.push_back(&holding);
    return CheckAnyWrites("the empty tensor", RanksOf(all), writer_ranks);
  }
  std::map<Region, std::vector<const Holding*>> by_region;  // holdings in rank order
  std::vector<int> all_ranks;                               // that hold an element
  for (const Holding& holding : holdings) {
    Region region = writer::HeldRegionOf(holding.held);
    if (region.element_count() == 0) continue;
    by_region[std::move(region)].push_back(&holding);
    if (all_ranks.empty() || all_ranks.back() != holding.rank) all_ranks.push_back(holding.rank);
  }
  std::vector<Region> regions;
  std::vector<std::vector<const Holding*>> holders;
  for (const auto& [region, same] : by_region) {
    const std::vector<int> ranks = RanksOf(same);
    SEALPOINT_RETURN_IF_ERROR(CheckReplicas(region, ranks, same));
    SEALPOINT_RETURN_IF_ERROR(CheckAnyWrites(region.ToString(), ranks, writer_ranks));
    regions.push_back(region);
    holders.push_back(same);
  }
  if (layout::MatchGrid(holdings.front().held.tensor.shape, regions)) return {};
  SEALPOINT_ASSIGN_OR_RETURN(
      const std::optional<layout::TilingFault> fault,
      layout::FindTilingFault(holdings.front().held.tensor.shape, regions,
                              layout::TilingCornerCountMax(limits, regions.size())));
  if (!fault) return CheckBoxList(holdings, limits);
  return DescribeFault(*fault, regions, holders, all_ranks);
}

Status CheckObject(const std::vector<int>& ranks, std::span<const int> writer_ranks) {
  if (ranks.size() == 1) return CheckAnyWrites("the object", ranks, writer_ranks);
  return RuleError(Code::kInvalidArgument, "R-CMT-18", "object is declared by ranks ",
                   RanksToString(ranks), "; exactly one may hold it")
      .AtRank(ranks[1], "");
}

void CheckClaims(const NameClaims& claims, std::span<const int> writer_ranks, const Limits& limits,
                 DeclarationFaults& faults) {
  for (const auto& [name, holdings] : claims.tensors) {
    faults.Add(name, CheckTensor(holdings, writer_ranks, limits).AtTensor(name));
  }
  for (const auto& [name, ranks] : claims.object_ranks) {
    faults.Add(name, CheckObject(ranks, writer_ranks).AtObject(name));
  }
}

}  // namespace

Status FullCheckDeclarations(Communicator& comm, const Declaration& declaration,
                             const SavePlan& plan, std::span<const int> writer_ranks,
                             const Limits& limits) {
  auto incoming = comm.AllToAll(EncodeForOwners(declaration, plan, comm.size()));
  if (!incoming.ok()) return std::move(incoming).error();
  NameClaims claims;
  Status local_status;
  for (int rank = 0; rank < comm.size() && local_status.ok(); ++rank) {
    local_status =
        DecodeFrom(rank, comm.size(), (*incoming)[static_cast<std::size_t>(rank)], claims);
  }
  DeclarationFaults faults;
  faults.Add("", std::move(local_status).AtRank(comm.rank(), comm.host()));
  CheckClaims(claims, writer_ranks, limits, faults);
  return faults.Agree(comm);
}

}  // namespace sealpoint::internal::saver
