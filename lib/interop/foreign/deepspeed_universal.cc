// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "lib/interop/foreign/deepspeed.h"
#include "lib/interop/foreign/formats.h"
#include "lib/storage/path.h"

// Universal checkpoints of DeepSpeed: a directory of each parameter has its weight, its moments and
// its step. Stages 1 and 2 were converted to whole tensors, stage 3 to flat ones.

namespace sealpoint::internal::foreign {
namespace {

using Kind = Pickled::Kind;

constexpr const char* kWeightKind = "fp32";
constexpr const char* kStepKind = "step";
constexpr std::string_view kOfTorch = ".pt";
constexpr const char* kOptimizerState = "optimizer_state.pt";

class Universal {
 public:
  Universal(const std::string& directory, SourceFiles& files, FlatOptimizer& optimizer)
      : zero_(JoinPath(directory, std::string(kUniversal))), files_(files), optimizer_(optimizer) {
    for (const SourceEntry& entry : files.List(zero_)) stored_.insert(entry.name);
    if (!stored_.contains(kOptimizerState)) return;
    const std::string path = JoinPath(zero_, kOptimizerState);
    common_ = OpenTorchShard(path, files);
    Checked(path, [&] {
      optimizer.AddGroups(*common_, Get(common_->root(), "param_groups"));
      optimizer.NoteScaler(common_->root());
      const Pickled* const first_rank = Find(common_->root(), "optimizer_state_dict");
      if (first_rank == nullptr) return;
      const PickledPairs& states = EntriesOf(*first_rank, "state");
      if (!states.empty()) step_ = Find(*states.front().second, kStepKind);
    });
  }

  ForeignTensor Read(const Parameter& parameter) {
    const std::string path = JoinPath(zero_, parameter.name);
    const std::string weight = JoinPath(path, StrCat(kWeightKind, kOfTorch));
    if (!stored_.contains(parameter.name)) Fail(Code::kIncomplete, weight, "the file is missing");
    if (common_ != nullptr) ReadState(parameter, path);
    return TensorAt(weight, parameter);
  }

 private:
  void ReadState(const Parameter& parameter, const std::string& path) {
    std::set<std::string> moments = {"exp_avg", "exp_avg_sq"};
    optimizer_.AddStep(parameter.name, FlatOptimizer::StepOf(*common_, step_));
    for (const SourceEntry& entry : files_.List(path)) {
      const bool is_kind = entry.name.ends_with(kOfTorch);
      const std::string kind =
          entry.name.substr(0, entry.name.size() - (is_kind ? kOfTorch.size() : 0));
      const std::string file = JoinPath(path, entry.name);
      if (is_kind && moments.erase(kind) > 0) {
        optimizer_.Add(parameter.name, kind, TensorAt(file, parameter));
      } else if (is_kind && kind == kStepKind && step_ == nullptr) {
        const std::unique_ptr<TorchArchive> archive = OpenTorchShard(file, files_);
        Checked(file, [&] {
          optimizer_.AddStep(parameter.name, FlatOptimizer::StepOf(*archive, &archive->root()));
        });
      } else if (!is_kind || kind != kWeightKind) {
        optimizer_.LeaveOut(kind);
      }
    }
    if (moments.empty()) return;
    Fail(Code::kIncomplete, JoinPath(path, StrCat(*moments.begin(), kOfTorch)),
         "the file is missing");
  }

  ForeignTensor TensorAt(const std::string& path, const Parameter& parameter) {
    std::optional<ForeignTensor> tensor;
    Checked(path, [&] {
      const std::unique_ptr<TorchArchive> archive = OpenTorchShard(path, files_);
      const Pickled& root = archive->root();
      tensor = TensorIn(*archive, root.is(Kind::kMapping) ? Get(root, "param") : root);
      if (!tensor) InvalidValue("a value is not a tensor");
      if (tensor->shape == parameter.shape) return;
      Flat flat;
      flat.Append(*std::move(tensor));
      CheckEnd(parameter.count, flat, flat, 1);
      tensor = TensorOf(parameter, flat, 0, files_, path);
    });
    return *std::move(tensor);
  }

  const std::string zero_;
  SourceFiles& files_;
  FlatOptimizer& optimizer_;
  std::set<std::string> stored_;
  std::unique_ptr<TorchArchive> common_;
  const Pickled* step_ = nullptr;  // of all parameters, in stage 3
};

}  // namespace

void ReadUniversal(const std::string& directory, const Parameters& parameters, SourceFiles& files,
                   FlatOptimizer& optimizer,
                   const std::function<void(const Parameter&, ForeignTensor)>& add) {
  Universal universal(directory, files, optimizer);
  for (const std::vector<Parameter>& group : parameters) {
    for (const Parameter& parameter : group) add(parameter, universal.Read(parameter));
  }
}

}  // namespace sealpoint::internal::foreign
