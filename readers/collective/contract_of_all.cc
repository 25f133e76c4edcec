// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/contract_of_all.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/comm/agree.h"
#include "readers/load/coverage.h"

namespace sealpoint::internal {
namespace {

using Kind = LoadFinding::Kind;

// What some rank wants of a tensor; no region of an empty one.
using RegionsByTensor = std::map<std::uint64_t, std::vector<Region>>;

std::vector<Bytes> EncodeForJudges(const ResolvedRequest& request, int size) {
  std::vector<Bytes> outgoing(static_cast<std::size_t>(size));
  for (const ResolvedItem& item : request.items) {
    WireWriter out(outgoing[item.tensor % outgoing.size()]);
    out.Put(std::uint64_t{item.tensor});
    out.Put(std::uint64_t{item.destination ? 1u : 0u});
    if (!item.destination) continue;
    const Region& region = item.destination->region;
    out.Put(region.box.offset);
    out.Put(region.box.extent);
    out.Put(region.run.begin);
    out.Put(region.run.end);
  }
  return outgoing;
}

Status DecodeFrom(ByteSpan bytes, const Contents& index, RegionsByTensor& wanted) {
  WireReader in(bytes);
  while (!in.at_end()) {
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t tensor, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t has_region, in.Number());
    if (tensor >= index.tensor_count()) {
      return MakeError(Code::kComm, "another rank wants tensor ", tensor, " of ",
                       index.tensor_count());
    }
    std::vector<Region>& regions = wanted[tensor];
    if (has_region == 0) continue;
    Region region;
    SEALPOINT_ASSIGN_OR_RETURN(region.box.offset, in.Numbers());
    SEALPOINT_ASSIGN_OR_RETURN(region.box.extent, in.Numbers());
    SEALPOINT_ASSIGN_OR_RETURN(region.run.begin, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(region.run.end, in.Number());
    const Shape shape = index.tensor(tensor).shape();
    if (!CheckRegion(shape, region).ok()) {
      return MakeError(Code::kComm, "another rank wants a region outside of its tensor");
    }
    regions.push_back(std::move(region));
  }
  return Status();
}

// Finds what is wrong with the tensors that this rank judges.
class Judge {
 public:
  Judge(const Contents& index, const LoadContract& contract) : index_(index), contract_(contract) {}

  Status Run(RegionsByTensor wanted, std::uint64_t rank, std::uint64_t size) {
    for (std::uint64_t tensor = rank; tensor < index_.tensor_count(); tensor += size) {
      const auto found = wanted.find(tensor);
      if (found == wanted.end()) {
        SEALPOINT_RETURN_IF_ERROR(Differ(contract_.unexpected, Kind::kUnexpected, tensor,
                                         "the stored tensor is wanted by no rank"));
      } else if (contract_.coverage != OnMismatch::kAllow) {
        SEALPOINT_RETURN_IF_ERROR(CheckCoverage(tensor, std::move(found->second)));
      }
    }
    return Status();
  }

  std::vector<LoadFinding> Take() && { return std::move(findings_); }

 private:
  Status CheckCoverage(std::uint64_t tensor, std::vector<Region> regions) {
    // Replicas want the same.
    std::sort(regions.begin(), regions.end());
    regions.erase(std::unique(regions.begin(), regions.end()), regions.end());
    const Shape shape = index_.tensor(tensor).shape();
    const std::uint64_t uncovered = CountUncovered(shape, regions);
    if (uncovered == 0) return Status();
    return Differ(
        contract_.coverage, Kind::kCoverage, tensor,
        StrCat(uncovered, " elements of shape ", ShapeToString(shape), " are wanted by no rank"));
  }

  Status Differ(OnMismatch policy, Kind kind, std::uint64_t tensor, std::string detail) {
    const std::string name(index_.tensor(tensor).name());
    if (policy == OnMismatch::kError) return MakeError(Code::kMismatch, detail).AtTensor(name);
    if (policy == OnMismatch::kReport) findings_.push_back({kind, name, std::move(detail)});
    return Status();
  }

  const Contents& index_;
  const LoadContract& contract_;
  std::vector<LoadFinding> findings_;
};

Bytes Encode(const std::vector<LoadFinding>& findings) {
  Bytes bytes;
  WireWriter out(bytes);
  for (const LoadFinding& finding : findings) {
    out.Put(static_cast<std::uint64_t>(finding.kind));
    out.Put(finding.tensor);
    out.Put(finding.detail);
  }
  return bytes;
}

Result<std::vector<LoadFinding>> MergeOfAll(Communicator& comm,
                                            const std::vector<LoadFinding>& mine) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.AllGather(Encode(mine)));
  std::vector<LoadFinding> merged;
  for (const Bytes& bytes : all) {
    WireReader in(bytes);
    while (!in.at_end()) {
      LoadFinding finding{};
      SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t kind, in.Number());
      finding.kind = static_cast<Kind>(kind);
      SEALPOINT_ASSIGN_OR_RETURN(finding.tensor, in.Text());
      SEALPOINT_ASSIGN_OR_RETURN(finding.detail, in.Text());
      merged.push_back(std::move(finding));
    }
  }
  const auto key = [](const LoadFinding& f) { return std::tie(f.tensor, f.kind, f.detail); };
  std::sort(merged.begin(), merged.end(),
            [&](const LoadFinding& a, const LoadFinding& b) { return key(a) < key(b); });
  merged.erase(std::unique(merged.begin(), merged.end()), merged.end());
  return merged;
}

}  // namespace

Result<std::vector<LoadFinding>> JudgeTogether(Communicator& comm, const Contents& index,
                                               const ResolvedRequest& mine,
                                               const LoadContract& contract) {
  std::vector<LoadFinding> findings = mine.findings;
  const bool judges =
      contract.unexpected != OnMismatch::kAllow || contract.coverage != OnMismatch::kAllow;
  if (judges) {
    SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> incoming,
                               comm.AllToAll(EncodeForJudges(mine, comm.size())));
    RegionsByTensor wanted;
    Status status;
    for (std::size_t i = 0; i < incoming.size() && status.ok(); ++i) {
      status = DecodeFrom(incoming[i], index, wanted);
    }
    Judge judge(index, contract);
    if (status.ok()) {
      status = judge.Run(std::move(wanted), static_cast<std::uint64_t>(comm.rank()),
                         static_cast<std::uint64_t>(comm.size()));
    }
    SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm, status));
    for (LoadFinding& finding : std::move(judge).Take()) findings.push_back(std::move(finding));
  }
  return MergeOfAll(comm, findings);
}

}  // namespace sealpoint::internal
