// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_FLAT_OPTIMIZER_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_FLAT_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/interop/foreign/files.h"
#include "lib/interop/foreign/flat.h"
#include "lib/interop/foreign/torch_archive.h"
#include "sealpoint/interop.h"

namespace sealpoint::internal::foreign {

inline constexpr const char* kGroups = "param_groups";  // in a state dict

// State of an optimizer whose parameters are flattened groups of a model's parameters. Each rank
// has a partition of each group. All functions throw std::invalid_argument or Failure.
class FlatOptimizer {
 public:
  using Names = std::vector<std::vector<std::string>>;  // of the model's parameters, by group
  struct Step {
    std::string bytes{};  // to compare
    std::optional<ForeignTensor> tensor{};
    std::int64_t number = 0;
  };

  // False for state that belongs to a whole partition, or is not known to have a part for each
  // parameter.
  static bool IsMoment(std::string_view kind);
  // In the tree.
  static std::string NameOfState(std::string_view parameter, std::string_view kind);
  // Empty unless it is a number or a tensor of one element.
  static std::optional<Step> StepOf(const TorchArchive& archive, const Pickled* step);

  // `state` gets tensors, and names of what is left out.
  FlatOptimizer(SourceFiles& files, ForeignCheckpoint& state) : files_(files), state_(state) {}

  // Adds the state dict of the next rank's optimizer. `by_rank`: moments() has all groups of a rank
  // in one Flat; otherwise all ranks of a group. Corrupt if the rank made another number of steps
  // than the first.
  void AddRank(const TorchArchive& archive, const Pickled& optimizer, std::size_t groups,
               bool by_rank);
  // State with an element for each element of a parameter, by its kind.
  const std::map<std::string, std::vector<Flat>>& moments() const { return moments_; }

  // For a parameter of the model.
  void Add(const std::string& parameter, const std::string& kind, ForeignTensor tensor);
  void AddStep(const std::string& parameter, const std::optional<Step>& step);
  // For all parameters, the steps of the first rank.
  void AddSteps(const Names& names);
  void AddGroups(const TorchArchive& archive, const Pickled& groups);
  // The state of a loss scaler is left out.
  void NoteScaler(const Pickled& optimizer);
  void LeaveOut(const std::string& kind) { left_out_.insert(kind); }

  // The node of all that was added, in the form of get_state_dict() of torch; null if nothing was.
  ForeignNode TakeNode(const Names& names);

 private:
  using States = std::map<std::uint64_t, const Pickled*>;  // by number of the group

  void CheckSteps(const TorchArchive& archive, const Pickled& optimizer, const States& states,
                  std::size_t groups);
  void FindKinds(const States& states, std::size_t groups);
  void Put(const std::string& parameter, const std::string& kind, ForeignNode node);

  SourceFiles& files_;
  ForeignCheckpoint& state_;
  std::string first_name_;
  std::map<std::string, std::vector<Flat>> moments_;
  std::vector<std::optional<Step>> steps_;  // by group; the last is stored with the groups
  std::set<std::string> left_out_;
  std::map<std::string, ForeignNode::Members> parameters_;
  std::vector<ForeignNode> groups_;
  std::vector<std::vector<std::uint64_t>> numbers_;  // of flattened groups, by group
};

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_FLAT_OPTIMIZER_H_
