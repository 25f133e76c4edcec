// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/arrival_check.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/comm/agree.h"
#include "lib/pipeline/thread_pool.h"
#include "lib/transfer/compute_fingerprint.h"
#include "readers/collective/region_wire.h"
#include "readers/load/coverage.h"

namespace sealpoint::internal::collective {
namespace {

// A region of a tensor that a rank holds.
struct Held {
  Region region{};
  Fingerprint value{};
  std::size_t rank = 0;
};
using HeldByTensor = std::map<std::uint64_t, std::vector<Held>>;

MemoryView ViewOf(const load::Destination& destination) {
  const Region& region = destination.region();
  const std::uint64_t element_size = destination.element_size;
  MemoryView view = MemoryView::Host(destination.data, region.element_count() * element_size);
  view.device = destination.device;
  view.stream = destination.stream;
  if (region != Region::Of(region.box)) return view;  // runs are dense
  view.strides_bytes = destination.strides_bytes();
  view.origin_bytes = static_cast<std::size_t>(destination.shift_bytes);
  std::int64_t end = destination.shift_bytes + static_cast<std::int64_t>(element_size);
  for (std::size_t d = 0; d < region.box.extent.size(); ++d) {
    const auto reach = static_cast<std::int64_t>(region.box.extent[d] - 1) * view.strides_bytes[d];
    end += std::max<std::int64_t>(reach, 0);
  }
  view.size_bytes = static_cast<std::size_t>(end);
  return view;
}

// "2 against 0, 1", the smallest set of ranks first.
std::string RanksByValue(const std::vector<Held>& replicas) {
  std::map<Fingerprint, std::vector<std::size_t>> ranks;
  for (const Held& replica : replicas) ranks[replica.value].push_back(replica.rank);
  std::vector<std::vector<std::size_t>> sets;
  for (auto& [value, set] : ranks) sets.push_back(std::move(set));
  std::ranges::stable_sort(sets, {}, [](const auto& set) { return set.size(); });
  std::string text;
  for (const std::vector<std::size_t>& set : sets) {
    if (!text.empty()) text += " against ";
    for (std::size_t i = 0; i < set.size(); ++i) text += StrCat(i == 0 ? "" : ", ", set[i]);
  }
  return text;
}

Result<HeldByTensor> Decode(const std::vector<Bytes>& incoming, const metadata::Metadata& index,
                            bool has_values) {
  HeldByTensor held;
  for (std::size_t rank = 0; rank < incoming.size(); ++rank) {
    WireReader in(incoming[rank]);
    while (!in.at_end()) {
      Held row{.rank = rank};
      SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t tensor, TakeTensor(in, index));
      SEALPOINT_ASSIGN_OR_RETURN(row.region, TakeRegion(in, index.tensor(tensor).shape()));
      std::array<std::uint64_t, 2> values{};
      for (std::uint64_t& value : values) {
        if (!has_values) continue;
        SEALPOINT_ASSIGN_OR_RETURN(value, in.Number());
        if (value >= Fingerprint::kModulus)
          return MakeError(Code::kComm, "another rank sent a wrong fingerprint");
      }
      row.value = Fingerprint(values);
      held[tensor].push_back(std::move(row));
    }
  }
  return held;
}

// The regions of one tensor.
Status Examine(const metadata::TensorView& tensor, std::vector<Held> held, bool has_values) {
  std::ranges::stable_sort(held, {}, &Held::region);
  std::vector<Region> regions;
  Fingerprint sum;
  std::uint64_t count = 0;
  for (std::size_t begin = 0, end = 0; begin < held.size(); begin = end) {
    while (end < held.size() && held[end].region == held[begin].region) ++end;
    const std::vector<Held> replicas(held.begin() + static_cast<std::ptrdiff_t>(begin),
                                     held.begin() + static_cast<std::ptrdiff_t>(end));
    const auto differs = [&](const Held& replica) { return replica.value != held[begin].value; };
    if (std::ranges::any_of(replicas, differs)) {
      return MakeError(Code::kCorrupt, "the ranks hold different elements of ",
                       held[begin].region.ToString(), " after the load: ", RanksByValue(replicas),
                       " (fewest first)");
    }
    regions.push_back(held[begin].region);
    sum += held[begin].value;
    count += held[begin].region.element_count();
  }
  if (has_values) {
    if (sum == tensor.fingerprint()) return {};
    return MakeError(Code::kCorrupt, "its elements on the ranks are not those stored: fingerprint ",
                     sum.ToString(), ", stored ", tensor.fingerprint()->ToString());
  }
  const std::uint64_t all = Region::Whole(tensor.shape()).element_count();
  if (count == all && load::FindUncovered(tensor.shape(), regions).count == 0) return {};
  return MakeError(Code::kUnsupported, "verify_arrival needs ranks that request each of the ", all,
                   " elements once, or equal regions; they request ", count,
                   " elements in different regions");
}

}  // namespace

Status ArrivalCheck::CheckItems() const {
  for (const load::ResolvedItem& item : local_request_.items) {
    if (!item.destination) continue;
    const metadata::TensorView tensor = index_.tensor(item.tensor);
    std::string_view problem;
    if (!tensor.fingerprint()) {
      problem = "it has no stored fingerprint; save with fingerprints";
    } else if (!item.destination->steps().empty()) {
      problem = "the request has steps";
    } else if (item.destination->converter) {
      problem = "the request converts its elements";
    }
    if (!problem.empty()) {
      return MakeError(Code::kUnsupported, "verify_arrival: ", problem).AtTensor(tensor.name());
    }
  }
  return {};
}

Status ArrivalCheck::CheckRegions() const { return Exchange(Stage::kRegions, {}); }

Status ArrivalCheck::CheckMemory(int threads,
                                 const std::shared_ptr<device::DeviceRuntime>& devices) const {
  std::vector<const load::ResolvedItem*> items;
  for (const load::ResolvedItem& item : local_request_.items) {
    if (item.destination) items.push_back(&item);
  }
  std::vector<Fingerprint> fingerprints(items.size());
  device::QueuePool queues;
  const auto compute = [&](int /*worker*/, std::size_t i) -> Status {
    const metadata::TensorView tensor = index_.tensor(items[i]->tensor);
    const load::Destination& destination = *items[i]->destination;
    const auto value =
        transfer::ComputeFingerprint(tensor.shape(), destination.element_size, destination.region(),
                                     ViewOf(destination), devices, &queues);
    if (!value) return Status(value.error()).AtTensor(tensor.name());
    fingerprints[i] = *value;
    return {};
  };
  const Status status = pipeline::ParallelFor(threads, items.size(), compute);
  SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm_, status));
  return Exchange(Stage::kMemory, fingerprints);
}

Status ArrivalCheck::Exchange(Stage stage, const std::vector<Fingerprint>& fingerprints) const {
  const bool has_values = stage == Stage::kMemory;
  std::vector<Bytes> outgoing(static_cast<std::size_t>(comm_.size()));
  auto fingerprint = fingerprints.begin();
  for (const load::ResolvedItem& item : local_request_.items) {
    if (!item.destination) continue;
    WireWriter out(outgoing[item.tensor % outgoing.size()]);
    out.Put(std::uint64_t{item.tensor});
    PutRegion(out, item.destination->region());
    if (has_values) out.PutAll((fingerprint++)->values());
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> incoming,
                             comm_.AllToAll(std::move(outgoing)));
  const auto held = Decode(incoming, index_, has_values);
  // The first problem of this rank's tensors. It is no error of this rank.
  std::optional<std::pair<std::uint64_t, Status>> problem;
  if (held) {
    for (const auto& [tensor, regions] : *held) {
      Status status = Examine(index_.tensor(tensor), regions, has_values);
      if (!status.ok() && !problem) problem.emplace(tensor, std::move(status));
    }
  }
  Bytes message;
  if (problem) {
    WireWriter out(message);
    out.Put(problem->first);
    out.Put(static_cast<std::uint64_t>(problem->second.code()));
    out.Put(problem->second.message());
  }
  const comm::Gathered gathered = comm::AgreeAndGather(comm_, held.status(), message);
  SEALPOINT_RETURN_IF_ERROR(gathered.agreement.broken);
  SEALPOINT_RETURN_IF_ERROR(gathered.agreement.status);
  Status first;
  std::uint64_t first_tensor = index_.tensor_count();
  for (const Bytes& bytes : gathered.all) {
    if (bytes.empty()) continue;
    WireReader in(bytes);
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t tensor, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t code, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(const std::string text, in.Text());
    if (tensor >= first_tensor) continue;
    first_tensor = tensor;
    first = Status(static_cast<Code>(code), text).AtTensor(index_.tensor(tensor).name());
  }
  return first;
}

}  // namespace sealpoint::internal::collective
