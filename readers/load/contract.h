// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_CONTRACT_H_
#define SEALPOINT_READERS_LOAD_CONTRACT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/metadata/metadata.h"
#include "readers/load/coverage.h"
#include "readers/load/plan_builder.h"
#include "sealpoint/read_plan.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::load {

// An item that is stored and passed the contract.
struct ResolvedItem {
  std::size_t tensor = 0;                  // in the index
  std::optional<Destination> destination;  // empty if nothing is read
};

struct ResolvedRequest {
  std::deque<ResolvedItem> items;  // a deque, because it frees the memory of removed items
  std::vector<LoadFinding> findings;
};

// Texts that the reports and errors of one process and of many ranks share.
std::string DescribeUnexpected(const metadata::TensorView& tensor, std::string_view by_whom);
std::string DescribeUncovered(const metadata::TensorView& tensor, const Uncovered& uncovered,
                              std::string_view by_whom);
// Error for `count` differences that the contract forbids. It names the first; `which` describes
// the others.
Status ForbiddenDifference(std::string_view tensor, std::string_view detail, std::uint64_t count,
                           std::string_view which = {});

// Errors: InvalidArgument (items with steps under a contract that checks coverage).
Status CheckCoverageOfSteps(const ReadRequest& request, const LoadContract& contract);

// Compares the request with the checkpoint. Errors: Mismatch (differences that the contract
// forbids; the message names the first few and counts all by kind), InvalidArgument (region,
// destination).
Result<ResolvedRequest> ResolveRequest(const metadata::Metadata& index, const ReadRequest& request,
                                       const LoadContract& contract);

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_CONTRACT_H_
