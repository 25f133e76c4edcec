// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/box_list_sizes.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/layout/tiling.h"
#include "lib/writer/declaration_summary.h"

namespace sealpoint::internal::saver {
namespace {

BoxListSize SizeOf(const writer::DeclaredView& held, const writer::SlotSummary& slot,
                   const Run& run) {
  Region region = held.region();
  region.run = run;
  BoxListSize size{.shard_count = 1, .corner_count = writer::CornerCountOf(region)};
  // One rank writes the first element: so the tensor's own corners are counted once.
  if (slot.has_first_element && run.begin == 0) {
    size.corner_count += std::uint64_t{1} << held.shape.size();
  }
  return size;
}

// Name, shards and corners of each tensor that this rank writes, one after the other.
std::vector<Bytes> EncodeSizes(const Declaration& declaration, const SavePlan& plan, int size) {
  std::vector<Bytes> outgoing(static_cast<std::size_t>(size));
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(declaration);
  const std::vector<writer::SlotSummary>& slots = summary.slots();
  for (std::size_t i = 0; i < plan.shards.size();) {
    const writer::SlotSummary::Hash& name = slots[plan.shards[i].slot].name;
    BoxListSize sum;
    for (; i < plan.shards.size(); ++i) {
      const std::size_t slot = plan.shards[i].slot;
      if (slots[slot].name != name) break;
      const BoxListSize added = SizeOf(summary.held(slot), slots[slot], plan.shards[i].run);
      sum.shard_count += added.shard_count;
      sum.corner_count += added.corner_count;
    }
    WireWriter out(outgoing[name[0] % outgoing.size()]);
    out.PutAll(std::array{name[1], sum.shard_count, sum.corner_count});
  }
  return outgoing;
}

Result<bool> AllFit(const std::vector<Bytes>& incoming, const Limits& limits) {
  std::map<std::uint64_t, BoxListSize> sizes;  // by name
  for (const Bytes& bytes : incoming) {
    WireReader in(bytes);
    while (!in.at_end()) {
      SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t name, in.Number());
      SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t shard_count, in.Number());
      SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t corner_count, in.Number());
      sizes[name].shard_count += shard_count;
      sizes[name].corner_count += corner_count;
    }
  }
  return std::all_of(sizes.begin(), sizes.end(),
                     [&](const auto& entry) { return FitsLimits(entry.second, limits); });
}

}  // namespace

bool FitsLimits(const BoxListSize& size, const Limits& limits) {
  return size.shard_count <= limits.box_list_shard_count_max &&
         size.corner_count <= layout::TilingCornerCountMax(limits, size.shard_count);
}

BoxListSize LargestShareOf(const Declaration& declaration) {
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(declaration);
  const std::uint64_t slots = summary.slots_of_a_tensor_max();
  std::uint64_t corners = 0;
  for (const auto& [replicas, group] : summary.replica_groups()) {
    corners = std::max(corners, group.corner_count_max);
  }
  // Those of a tensor are not more than those of a region of it.
  return {.shard_count = slots, .corner_count = (slots + 1) * corners};
}

Result<bool> AllFitBoxLists(Communicator& comm, const Declaration& declaration,
                            const SavePlan& plan, const Limits& limits) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> incoming,
                             comm.AllToAll(EncodeSizes(declaration, plan, comm.size())));
  const bool fit = AllFit(incoming, limits).value_or(false);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> doubts,
                             comm.AllReduceMax({fit ? 0u : 1u}));
  return doubts[0] == 0;
}

}  // namespace sealpoint::internal::saver
