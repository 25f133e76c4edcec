// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/load_plan.h"

#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "readers/load/plan_text.h"
#include "sealpoint/text.h"

namespace sealpoint {
namespace internal {
namespace {

double Ratio(std::uint64_t bytes_read, std::uint64_t bytes_requested) {
  if (bytes_requested == 0) return 0;
  return static_cast<double>(bytes_read) / static_cast<double>(bytes_requested);
}

// In the order in which they are sent; the ratio follows from them.
template <typename Load, typename Visit>
Status VisitNumbers(Load& load, const Visit& visit) {
  auto& alone = load.alone;
  for (auto* number : {&alone.items, &alone.bytes_requested, &alone.bytes_read,
                       &alone.table_bytes_read, &alone.files, &alone.requests, &alone.chunks,
                       &load.bytes_read, &load.requests, &load.files, &load.bytes_received}) {
    SEALPOINT_RETURN_IF_ERROR(visit(*number));
  }
  return {};
}

Result<RankLoad> DecodeLoad(ByteSpan bytes) {
  WireReader in(bytes);
  RankLoad load;
  SEALPOINT_ASSIGN_OR_RETURN(load.host, in.Text());
  SEALPOINT_RETURN_IF_ERROR(VisitNumbers(load, [&](std::uint64_t& number) -> Status {
    SEALPOINT_ASSIGN_OR_RETURN(number, in.Number());
    return {};
  }));
  load.alone.amplification = Ratio(load.alone.bytes_read, load.alone.bytes_requested);
  return load;
}

// "12.0 MiB (x 1.200) in 3 ranges of 2 files".
std::string CostText(std::uint64_t bytes_read, std::uint64_t bytes_requested,
                     std::uint64_t requests, std::uint64_t files) {
  return StrCat(BytesText(bytes_read), " (", RatioText(Ratio(bytes_read, bytes_requested)), ") in ",
                CountText(requests, "range"), " of ", CountText(files, "file"));
}

}  // namespace

Result<CollectiveLoadPlan> GatherLoads(Communicator& comm, const RankLoad& local_load) {
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(local_load.host);
  SEALPOINT_RETURN_IF_ERROR(VisitNumbers(local_load, [&](std::uint64_t number) {
    out.Put(number);
    return Status();
  }));
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.AllGather(bytes));
  CollectiveLoadPlan plan;
  for (const Bytes& one : all) {
    SEALPOINT_ASSIGN_OR_RETURN(RankLoad load, DecodeLoad(one));
    plan.bytes_requested += load.alone.bytes_requested;
    plan.bytes_read_alone += load.alone.bytes_read;
    plan.bytes_read += load.bytes_read;
    plan.bytes_received += load.bytes_received;
    plan.ranks.push_back(std::move(load));
  }
  plan.amplification = Ratio(plan.bytes_read, plan.bytes_requested);
  return plan;
}

}  // namespace internal

std::string CollectiveLoadPlan::ToString() const {
  using internal::CountText;
  using internal::StrCat;
  std::uint64_t requests_alone = 0;
  std::uint64_t requests = 0;
  for (const RankLoad& load : ranks) {
    requests_alone += load.alone.requests;
    requests += load.requests;
  }
  std::string text =
      StrCat(CountText(ranks.size(), "rank"), ": ", BytesText(bytes_requested),
             " requested; alone ", BytesText(bytes_read_alone), " (",
             internal::RatioText(internal::Ratio(bytes_read_alone, bytes_requested)), ") in ",
             CountText(requests_alone, "range"), "; together ", BytesText(bytes_read), " (",
             internal::RatioText(amplification), ") in ", CountText(requests, "range"), "; ",
             BytesText(bytes_received), " sent\n");
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankLoad& load = ranks[rank];
    const PlanSummary& alone = load.alone;
    text += StrCat(
        "  rank ", rank, " on ", Printable(load.host), ": ", BytesText(alone.bytes_requested),
        " requested; alone ",
        internal::CostText(alone.bytes_read, alone.bytes_requested, alone.requests, alone.files),
        "; together ",
        internal::CostText(load.bytes_read, alone.bytes_requested, load.requests, load.files),
        "\n");
  }
  return text;
}

}  // namespace sealpoint
