// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/compare_replicas.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/saver/declaration_faults.h"
#include "lib/saver/replica_digests.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal::saver {
namespace {

// For one list of holders, the digests of its tensors and then of its objects, in the order of
// SharedItems.
using Digests = std::vector<Digest>;

Digest HashOf(const std::vector<int>& holders) {
  return ComputeDigest(std::as_bytes(std::span(holders)));
}

// By list of holders, in the order of `shared_items`.
Result<std::vector<Digests>> DigestAll(pipeline::EngineParts& engine, const Sources& sources,
                                       const ItemsByHolders& shared_items) {
  std::vector<Digests> all;
  for (const auto& [holders, content] : shared_items) {
    SEALPOINT_ASSIGN_OR_RETURN(Digests digests, DigestSlots(engine, sources, content.slots));
    for (const std::size_t i : content.objects) {
      digests.push_back(DigestObject(sources.declaration().objects()[i], *sources.objects()[i]));
    }
    all.push_back(std::move(digests));
  }
  return all;
}

// A list of holders and some digests, from every holder to the first.
class Exchange {
 public:
  Exchange(const Communicator& comm, const ItemsByHolders& shared_items)
      : rank_(comm.rank()), outgoing_(static_cast<std::size_t>(comm.size())) {
    std::size_t number = 0;
    for (const auto& [holders, content] : shared_items) {
      if (holders.front() == rank_) led_.emplace(HashOf(holders), number);
      ++number;
    }
  }

  void Send(const std::vector<int>& holders, std::span<const Digest> digests) {
    if (holders.front() == rank_) return;
    WireWriter out(outgoing_[static_cast<std::size_t>(holders.front())]);
    out.Put(HashOf(holders));
    out.Put(std::uint64_t{digests.size()});
    for (const Digest& digest : digests) out.Put(digest);
  }

  // Calls see(rank, number of the list in `shared_items`, its digests) for each that was sent here.
  // Collective.
  template <typename See>
  Status Run(Communicator& comm, const See& see) {
    SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.AllToAll(std::move(outgoing_)));
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      WireReader in(all[rank]);
      while (!in.at_end()) {
        SEALPOINT_ASSIGN_OR_RETURN(const Digest holders, in.Id<Digest>());
        SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t count, in.Number());
        Digests digests;
        for (std::uint64_t i = 0; i < count; ++i) {
          SEALPOINT_ASSIGN_OR_RETURN(digests.emplace_back(), in.Id<Digest>());
        }
        const auto led = led_.find(holders);
        if (led == led_.end()) return MalformedMessage();
        see(static_cast<int>(rank), led->second, digests);
      }
    }
    return {};
  }

 private:
  const int rank_;
  std::vector<Bytes> outgoing_;
  std::map<Digest, std::size_t> led_;  // the lists of which this rank is the first
};

// Ranks by what they hold, the first holder's first.
using RanksByDigest = std::vector<std::pair<Digest, std::vector<int>>>;

void AddRank(RanksByDigest& ranks, const Digest& digest, int rank) {
  const auto known = std::find_if(ranks.begin(), ranks.end(),
                                  [&](const auto& entry) { return entry.first == digest; });
  if (known == ranks.end()) {
    ranks.push_back({digest, {rank}});
  } else {
    known->second.push_back(rank);
  }
}

std::string RanksText(const std::vector<int>& ranks) {
  constexpr std::size_t kNamedMax = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kNamedMax); ++i) {
    text.append(i == 0 ? "" : ", ").append(std::to_string(ranks[i]));
  }
  if (ranks.size() > kNamedMax) {
    text.append(StrCat(" and ", ranks.size() - kNamedMax, " more"));
  }
  return text;
}

Status DescribeDifference(const RanksByDigest& ranks) {
  constexpr std::size_t kNamedMax = 4;
  std::string text = "replicas differ: digest ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kNamedMax); ++i) {
    text.append(i == 0 ? "" : ", ").append(ranks[i].first.ToHex());
    text.append(" on ").append(RanksText(ranks[i].second));
  }
  if (ranks.size() > kNamedMax) {
    text.append(StrCat(" and ", ranks.size() - kNamedMax, " other digests"));
  }
  text.append(
      "; replicas must be equal on all ranks; store a value that differs from one rank, or from "
      "each (sealpoint.torch: first_rank=[\"*.running_*\"] or the module in "
      "DistributedDataParallel "
      "itself for statistics of BatchNorm, per_rank() for values of each rank)");
  return RuleError(Code::kInvalidArgument, "R-CMT-33", text).AtRank(ranks[1].second.front(), "");
}

// Finds the tensors and objects that differ among those that this rank is the first to hold.
class Comparison {
 public:
  Comparison(const Communicator& comm, const Declaration& declaration,
             const ItemsByHolders& shared_items, const std::vector<Digests>& digests)
      : declaration_(declaration) {
    auto local = digests.begin();
    for (const auto& [holders, content] : shared_items) {
      items_.push_back(&content);
      std::vector<RanksByDigest>& of_list = seen_.emplace_back(local->size());
      for (std::size_t i = 0; i < local->size(); ++i) AddRank(of_list[i], (*local)[i], comm.rank());
      ++local;
    }
  }

  void See(int rank, std::size_t list, const Digests& digests) {
    std::vector<RanksByDigest>& seen = seen_[list];
    for (std::size_t i = 0; i < std::min(seen.size(), digests.size()); ++i) {
      AddRank(seen[i], digests[i], rank);
    }
  }

  DeclarationFaults Faults() const {
    DeclarationFaults faults;
    for (std::size_t list = 0; list < seen_.size(); ++list) {
      const SharedItems& content = *items_[list];
      for (std::size_t i = 0; i < seen_[list].size(); ++i) {
        if (seen_[list][i].size() > 1) AddFault(content, i, seen_[list][i], faults);
      }
    }
    return faults;
  }

 private:
  void AddFault(const SharedItems& content, std::size_t i, const RanksByDigest& ranks,
                DeclarationFaults& faults) const {
    Status fault = DescribeDifference(ranks);
    if (i < content.slots.size()) {
      const std::string name = declaration_.tensors()[content.slots[i]].tensor.name;
      faults.Add(name, std::move(fault).AtTensor(name));
    } else {
      const std::size_t object = content.objects[i - content.slots.size()];
      const std::string& name = declaration_.objects()[object].name;
      faults.Add(name, std::move(fault).AtObject(name));
    }
  }

  const Declaration& declaration_;
  std::vector<const SharedItems*> items_;
  std::vector<std::vector<RanksByDigest>> seen_;  // by list of holders, by tensor or object
};

}  // namespace

Status CompareReplicas(Communicator& comm, pipeline::EngineParts& engine, const Sources& sources,
                       const ItemsByHolders& shared_items) {
  const auto digests = DigestAll(engine, sources, shared_items);
  SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm, digests.status()));
  Exchange combined(comm, shared_items);
  Exchange single(comm, shared_items);
  auto local = digests->begin();
  for (const auto& [holders, content] : shared_items) {
    const Digest digest = CombineDigests(*local);
    combined.Send(holders, std::span(&digest, 1));
    single.Send(holders, *local++);
  }
  bool is_different = false;
  SEALPOINT_RETURN_IF_ERROR(combined.Run(comm, [&](int, std::size_t list, const Digests& received) {
    if (received != Digests{CombineDigests((*digests)[list])}) is_different = true;
  }));
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> any,
                             comm.AllReduceMax({is_different ? 1u : 0u}));
  if (any[0] == 0) return {};
  Comparison comparison(comm, sources.declaration(), shared_items, *digests);
  SEALPOINT_RETURN_IF_ERROR(single.Run(comm, [&](int rank, std::size_t list, const Digests& all) {
    comparison.See(rank, list, all);
  }));
  return comparison.Faults().Agree(comm);
}

}  // namespace sealpoint::internal::saver
