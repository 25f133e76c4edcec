// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt-inspect/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tools/ckpt-inspect/placements.h"

namespace sealpoint::tools {
namespace {

// Tensors of one shape and one placement are cut alike on every rank.
struct Group {
  const TensorInfo* example = nullptr;
  const Placement* placement = nullptr;
};

class Planner {
 public:
  Planner(const Checkpoint& checkpoint, ChosenPlacements chosen)
      : checkpoint_(checkpoint), chosen_(std::move(chosen)) {}

  Result<PlanView> Run();

 private:
  // For each group the number of a list of regions. What is requested follows from it, so ranks of
  // which it is the same, as where tensors are replicated, read the same.
  using Request = std::vector<std::size_t>;
  using Regions = std::vector<Region>;  // ascending

  void MakeGroups();
  std::size_t NumberOf(Regions regions);
  Result<Request> RequestOf(int rank);
  Request RequestOfAll();
  Status AddRank(int rank);
  Result<PlanSummary> Summarize(const Request& request);

  const Checkpoint& checkpoint_;
  ChosenPlacements chosen_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;  // of each tensor
  std::map<Regions, std::size_t> numbers_;
  std::vector<const Regions*> regions_;      // by number
  std::vector<std::set<Region>> requested_;  // of each group, by any rank
  std::map<Request, PlanSummary> planned_;
  PlanView view_;
};

void Planner::MakeGroups() {
  std::map<std::pair<std::size_t, Shape>, std::size_t> numbers;
  for (std::size_t i = 0; i < chosen_.tensors.size(); ++i) {
    const TensorInfo& tensor = chosen_.tensors[i];
    const std::size_t placement = chosen_.placement_of[i];
    const auto [group, is_new] = numbers.try_emplace({placement, tensor.shape}, groups_.size());
    if (is_new) groups_.push_back({&tensor, &chosen_.placements[placement]});
    group_of_.push_back(group->second);
  }
  requested_.resize(groups_.size());
}

std::size_t Planner::NumberOf(Regions regions) {
  const auto [known, is_new] = numbers_.try_emplace(std::move(regions), regions_.size());
  if (is_new) regions_.push_back(&known->first);
  return known->second;
}

Result<Planner::Request> Planner::RequestOf(int rank) {
  Request request;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto layout =
        PlaceTensor(chosen_.mesh, rank, groups_[i].example->shape, *groups_[i].placement);
    if (!layout) return Status(layout.error()).AtTensor(groups_[i].example->name);
    Regions regions;
    for (const LocalPart& part : layout->parts) regions.push_back(part.region);
    std::sort(regions.begin(), regions.end());
    requested_[i].insert(regions.begin(), regions.end());
    request.push_back(NumberOf(std::move(regions)));
  }
  return request;
}

// Each of these requests is planned once.
Result<PlanSummary> Planner::Summarize(const Request& request) {
  const auto known = planned_.find(request);
  if (known != planned_.end()) return known->second;
  ReadRequest items;
  for (std::size_t i = 0; i < chosen_.tensors.size(); ++i) {
    for (const Region& region : *regions_[request[group_of_[i]]]) {
      items.Add(chosen_.tensors[i].name, region, MutableMemoryView::PlanOnly());
    }
  }
  const Result<ReadPlan> plan = checkpoint_.Plan(items, LoadContract::Partial());
  if (!plan) return plan.error();
  return planned_.emplace(request, plan->Summary()).first->second;
}

double Ratio(std::uint64_t read, std::uint64_t requested) {
  return requested == 0 ? 0 : static_cast<double>(read) / static_cast<double>(requested);
}

void AddTo(PlanSummary& sum, const PlanSummary& one) {
  sum.items += one.items;
  sum.bytes_requested += one.bytes_requested;
  sum.bytes_read += one.bytes_read;
  sum.table_bytes_read += one.table_bytes_read;
  sum.files += one.files;
  sum.requests += one.requests;
  sum.chunks += one.chunks;
  sum.amplification = Ratio(sum.bytes_read, sum.bytes_requested);
}

Status Planner::AddRank(int rank) {
  const Result<Request> request = RequestOf(rank);
  if (!request) return request.error();
  Result<PlanSummary> summary = Summarize(*request);
  if (!summary) return std::move(summary).error();
  AddTo(view_.alone, *summary);
  view_.ranks.push_back(
      {.coordinates = chosen_.mesh.CoordinatesOf(rank).value(), .summary = *std::move(summary)});
  return {};
}

Planner::Request Planner::RequestOfAll() {
  Request request;
  for (const std::set<Region>& requested : requested_) {
    request.push_back(NumberOf(Regions(requested.begin(), requested.end())));
  }
  return request;
}

Result<PlanView> Planner::Run() {
  MakeGroups();
  for (int rank = 0; rank < chosen_.mesh.size(); ++rank) {
    if (Status status = AddRank(rank); !status.ok()) return status;
  }
  Result<PlanSummary> together = Summarize(RequestOfAll());
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
