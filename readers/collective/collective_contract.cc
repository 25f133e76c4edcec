// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/collective_contract.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/comm/agree.h"
#include "readers/collective/region_wire.h"
#include "readers/load/coverage.h"

namespace sealpoint::internal::collective {
namespace {

using Kind = LoadFinding::Kind;

// The requested regions of each tensor; none for an empty tensor.
using RegionsByTensor = std::map<std::uint64_t, std::vector<Region>>;

std::vector<Bytes> EncodeForOwners(const load::ResolvedRequest& request, int size) {
  std::vector<Bytes> outgoing(static_cast<std::size_t>(size));
  for (const load::ResolvedItem& item : request.items) {
    WireWriter out(outgoing[item.tensor % outgoing.size()]);
    out.Put(std::uint64_t{item.tensor});
    out.Put(std::uint64_t{item.destination ? 1u : 0u});
    if (!item.destination) continue;
    PutRegion(out, item.destination->region());
  }
  return outgoing;
}

Status DecodeFrom(ByteSpan bytes, const metadata::Metadata& index, RegionsByTensor& requested) {
  WireReader in(bytes);
  while (!in.at_end()) {
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t tensor, TakeTensor(in, index));
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t has_region, in.Number());
    std::vector<Region>& regions = requested[tensor];
    if (has_region == 0) continue;
    SEALPOINT_ASSIGN_OR_RETURN(Region region, TakeRegion(in, index.tensor(tensor).shape()));
    regions.push_back(std::move(region));
  }
  return {};
}

// The differences that the contract forbids: their number, and the one of the first tensor.
struct Forbidden {
  std::uint64_t count = 0;
  std::uint64_t tensor = 0;
  std::string detail;

  void Add(Forbidden other) {
    if (other.count == 0) return;
    if (count == 0 || other.tensor < tensor) {
      tensor = other.tensor;
      detail = std::move(other.detail);
    }
    count += other.count;
  }
};

Result<Forbidden> DecodeForbidden(WireReader& in) {
  Forbidden forbidden;
  SEALPOINT_ASSIGN_OR_RETURN(forbidden.count, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(forbidden.tensor, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(forbidden.detail, in.Text());
  return forbidden;
}

// Checks the tensors that belong to this rank.
class ContractChecker {
 public:
  ContractChecker(const metadata::Metadata& index, const LoadContract& contract)
      : index_(index), contract_(contract) {}

  void Run(RegionsByTensor requested, std::uint64_t rank, std::uint64_t size) {
    for (std::uint64_t tensor = rank; tensor < index_.tensor_count(); tensor += size) {
      const auto found = requested.find(tensor);
      if (found == requested.end()) {
        Differ(contract_.unexpected, Kind::kUnexpected, tensor,
               load::DescribeUnexpected(index_.tensor(tensor), "rank"));
      } else if (contract_.coverage != OnMismatch::kAllow) {
        CheckCoverage(tensor, std::move(found->second));
      }
    }
  }

  const Forbidden& forbidden() const { return forbidden_; }
  const std::vector<LoadFinding>& findings() const { return findings_; }

 private:
  void CheckCoverage(std::uint64_t tensor, std::vector<Region> regions) {
    // Replicas request the same region.
    std::sort(regions.begin(), regions.end());
    regions.erase(std::unique(regions.begin(), regions.end()), regions.end());
    const metadata::TensorView view = index_.tensor(tensor);
    const load::Uncovered uncovered = load::FindUncovered(view.shape(), regions);
    if (uncovered.count == 0) return;
    Differ(contract_.coverage, Kind::kCoverage, tensor,
           load::DescribeUncovered(view, uncovered, "rank"));
  }

  void Differ(OnMismatch policy, Kind kind, std::uint64_t tensor, std::string detail) {
    if (policy == OnMismatch::kReport) {
      findings_.push_back({kind, std::string(index_.tensor(tensor).name()), std::move(detail)});
    } else if (policy == OnMismatch::kError && forbidden_.count++ == 0) {
      forbidden_.tensor = tensor;
      forbidden_.detail = std::move(detail);
    }
  }

  const metadata::Metadata& index_;
  const LoadContract& contract_;
  Forbidden forbidden_;
  std::vector<LoadFinding> findings_;
};

Bytes Encode(const Forbidden& forbidden, const std::vector<LoadFinding>& findings) {
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(forbidden.count);
  out.Put(forbidden.tensor);
  out.Put(forbidden.detail);
  for (const LoadFinding& finding : findings) {
    out.Put(static_cast<std::uint64_t>(finding.kind));
    out.Put(finding.tensor);
    out.Put(finding.detail);
  }
  return bytes;
}

// The findings of all ranks, or one error for all. It names no rank, because no single rank is the
// cause.
Result<std::vector<LoadFinding>> MergeFindings(Communicator& comm, const metadata::Metadata& index,
                                               const Bytes& local_findings) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.AllGather(local_findings));
  Forbidden forbidden;
  std::vector<LoadFinding> merged;
  for (const Bytes& bytes : all) {
    WireReader in(bytes);
    SEALPOINT_ASSIGN_OR_RETURN(Forbidden entry, DecodeForbidden(in));
    forbidden.Add(std::move(entry));
    while (!in.at_end()) {
      LoadFinding finding{};
      SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t kind, in.Number());
      finding.kind = static_cast<Kind>(kind);
      SEALPOINT_ASSIGN_OR_RETURN(finding.tensor, in.Text());
      SEALPOINT_ASSIGN_OR_RETURN(finding.detail, in.Text());
      merged.push_back(std::move(finding));
    }
  }
  if (forbidden.count > 0) {
    if (forbidden.tensor >= index.tensor_count()) {
      return MakeError(Code::kComm, "another rank checks tensor ", forbidden.tensor, " of ",
                       index.tensor_count());
    }
    return load::ForbiddenDifference(index.tensor(forbidden.tensor).name(), forbidden.detail,
                                     forbidden.count);
  }
  const auto key = [](const LoadFinding& f) { return std::tie(f.tensor, f.kind, f.detail); };
  std::sort(merged.begin(), merged.end(),
            [&](const LoadFinding& a, const LoadFinding& b) { return key(a) < key(b); });
  merged.erase(std::unique(merged.begin(), merged.end()), merged.end());
  return merged;
}

}  // namespace

Result<std::vector<LoadFinding>> CheckContractTogether(Communicator& comm,
                                                       const metadata::Metadata& index,
                                                       const load::ResolvedRequest& local_request,
                                                       const LoadContract& contract) {
  std::vector<LoadFinding> findings = local_request.findings;
  ContractChecker checker(index, contract);
  const bool checks =
      contract.unexpected != OnMismatch::kAllow || contract.coverage != OnMismatch::kAllow;
  if (checks) {
    SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> incoming,
                               comm.AllToAll(EncodeForOwners(local_request, comm.size())));
    RegionsByTensor requested;
    Status status;
    for (std::size_t i = 0; i < incoming.size() && status.ok(); ++i) {
      status = DecodeFrom(incoming[i], index, requested);
    }
    SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm, status));
    checker.Run(std::move(requested), static_cast<std::uint64_t>(comm.rank()),
                static_cast<std::uint64_t>(comm.size()));
    findings.insert(findings.end(), checker.findings().begin(), checker.findings().end());
  }
  return MergeFindings(comm, index, Encode(checker.forbidden(), findings));
}

}  // namespace sealpoint::internal::collective
