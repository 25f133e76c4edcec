// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt-inspect/plan.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "tools/ckpt-inspect/placements.h"

namespace sealpoint::tools {
namespace {

class Planner {
 public:
  Planner(const Checkpoint& checkpoint, ChosenPlacements chosen)
      : checkpoint_(checkpoint), chosen_(std::move(chosen)), wanted_(chosen_.tensors.size()) {}

  Result<PlanView> Run();

 private:
  Status AddRank(int rank);
  Result<PlanSummary> Summarize(const ReadRequest& request) const;
  Result<PlanSummary> SummarizeTogether() const;

  const Checkpoint& checkpoint_;
  ChosenPlacements chosen_;
  std::vector<std::set<Region>> wanted_;  // of each tensor, by any rank
  PlanView view_;
};

Result<PlanSummary> Planner::Summarize(const ReadRequest& request) const {
  const Result<ReadPlan> plan = checkpoint_.Plan(request, LoadContract::Partial());
  if (!plan) return plan.error();
  return plan->Summary();
}

double Ratio(std::uint64_t read, std::uint64_t wanted) {
  return wanted == 0 ? 0 : static_cast<double>(read) / static_cast<double>(wanted);
}

void AddTo(PlanSummary& sum, const PlanSummary& one) {
  sum.items += one.items;
  sum.bytes_wanted += one.bytes_wanted;
  sum.bytes_read += one.bytes_read;
  sum.table_bytes_read += one.table_bytes_read;
  sum.files += one.files;
  sum.requests += one.requests;
  sum.chunks += one.chunks;
  sum.amplification = Ratio(sum.bytes_read, sum.bytes_wanted);
}

Status Planner::AddRank(int rank) {
  ReadRequest request;
  for (std::size_t i = 0; i < chosen_.tensors.size(); ++i) {
    const TensorInfo& tensor = chosen_.tensors[i];
    const auto layout = PlaceTensor(chosen_.mesh, rank, tensor.shape, chosen_.placements[i]);
    if (!layout) return Status(layout.error()).AtTensor(tensor.name);
    request.Add(tensor.name, *layout, MutableMemoryView::PlanOnly());
    for (const LocalPart& part : layout->parts) wanted_[i].insert(part.region);
  }
  Result<PlanSummary> summary = Summarize(request);
  if (!summary) return std::move(summary).error();
  AddTo(view_.alone, *summary);
  view_.ranks.push_back(
      {.coordinates = chosen_.mesh.CoordinatesOf(rank).value(), .summary = *std::move(summary)});
  return {};
}

Result<PlanSummary> Planner::SummarizeTogether() const {
  ReadRequest request;
  for (std::size_t i = 0; i < chosen_.tensors.size(); ++i) {
    for (const Region& region : wanted_[i]) {
      request.Add(chosen_.tensors[i].name, region, MutableMemoryView::PlanOnly());
    }
  }
  return Summarize(request);
}

Result<PlanView> Planner::Run() {
  for (int rank = 0; rank < chosen_.mesh.size(); ++rank) {
    if (Status status = AddRank(rank); !status.ok()) return status;
  }
  Result<PlanSummary> together = SummarizeTogether();
  if (!together) return std::move(together).error();
  view_.together = *std::move(together);
  view_.mesh = chosen_.mesh;
  view_.stored_count = chosen_.stored_count;
  view_.given_count = chosen_.given_count;
  view_.whole_count = chosen_.whole_count;
  view_.notes = std::move(chosen_.notes);
  return std::move(view_);
}

}  // namespace

Result<PlanView> ViewPlan(const Checkpoint& checkpoint, const PlanOptions& options) {
  const Result<Mesh> mesh = Mesh::Parse(options.mesh);
  if (!mesh) return Status(Code::kInvalidArgument, "--plan: " + mesh.error().message());
  if (mesh->size() > kPlanRanksMax) {
    return Status(Code::kInvalidArgument, fmt::format("--plan: more than {} ranks", kPlanRanksMax));
  }
  std::vector<PlaceOption> places;
  for (const std::string& text : options.places) {
    Result<PlaceOption> place = ParsePlaceOption(text);
    if (!place) return std::move(place).error();
    places.push_back(*std::move(place));
  }
  Result<ChosenPlacements> chosen = ChoosePlacements(checkpoint, *mesh, places);
  if (!chosen) return std::move(chosen).error();
  return Planner(checkpoint, *std::move(chosen)).Run();
}

}  // namespace sealpoint::tools
