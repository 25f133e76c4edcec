// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_MEGATRON_OPTIMIZER_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_MEGATRON_OPTIMIZER_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/interop/foreign/files.h"
#include "lib/interop/foreign/flat_optimizer.h"
#include "lib/interop/foreign/join.h"
#include "lib/interop/foreign/torch_archive.h"
#include "sealpoint/interop.h"

namespace sealpoint::internal::foreign {

// The optimizer's state in the files of Megatron's ranks. The files number the parameters, in the
// order in which the model has them. A parameter gets a name only if its fp32 copy, rounded, has
// the elements of the model's tensor; otherwise all of the state is left out. All functions throw
// Failure.
class MegatronOptimizer {
 public:
  // One rank's part of the model.
  struct Model {
    const TorchArchive& archive;
    const std::vector<std::string>& names;  // in stored order
    const std::map<std::string, ForeignTensor>& tensors;
  };

  MegatronOptimizer(SourceFiles& files, ForeignCheckpoint& state)
      : files_(files), state_(state), optimizer_(files, state) {}

  // Adds the next tensor-parallel rank of a stage.
  void AddRank(const Model& model);
  // Joins the state of a parameter of the stage, which has this name in the whole model.
  void Join(const std::string& name, const std::string& global, const Division& division);
  void EndStage() { ranks_.clear(); }

  // The node of the state; null if it is left out, and then the reason.
  ForeignNode TakeNode();
  const std::string& reason() const { return reason_; }

 private:
  struct Place {
    std::size_t group = 0;
    std::optional<FlatOptimizer::Step> step{};
    std::vector<std::string> kinds{};
  };
  struct Rank {
    std::string path;
    std::map<std::string, ForeignTensor> tensors{};  // by name in the tree
    std::map<std::string, Place> places{};           // by name of the parameter
  };
  struct Parameter {
    std::string name;
    Place place;
    std::vector<ForeignTensor> moments{};  // by kind
  };
  // A parameter group: fp32 copies and numbers of its parameters.
  struct Group {
    const PickledItems& mains;
    const PickledItems& numbers;
    const Pickled* step;
    std::optional<ForeignTensor> next{};  // the first copy without a name
    std::size_t used = 0;
  };

  template <typename Step>
  void Try(const std::string& path, const Step& step);
  void ReadGroups(const Model& model, const Pickled& optimizer, Rank& rank);
  void AddState(const TorchArchive& archive, const std::string& name, const ForeignTensor& weight,
                const Pickled& state, Place place, Rank& rank);
  void AddMoment(const std::string& name, const std::string& kind, const ForeignTensor& weight,
                 ForeignTensor moment, Place& place, Rank& rank);
  void CheckSame(const std::string& key, const Rank& rank);

  SourceFiles& files_;
  ForeignCheckpoint& state_;
  FlatOptimizer optimizer_;
  std::string reason_;
  std::string first_path_;
  std::optional<std::size_t> group_count_;
  std::vector<Rank> ranks_;  // of the stage
  std::vector<Parameter> parameters_;
};

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_MEGATRON_OPTIMIZER_H_
