// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/repack/average.h"
#include "lib/repack/rewrite.h"
#include "lib/repack/tasks.h"
#include "sealpoint/repack.h"

namespace sealpoint {
namespace internal::repack {
namespace {

using Mode = MergeOptions::Mode;
// By name, the sources that have it, ascending.
using Holders = std::map<std::string, std::vector<std::size_t>>;

Status CheckWeights(const MergeOptions& options, std::size_t source_count) {
  if (source_count == 0) return InvalidArgument("there are no sources, expected at least one");
  if (options.weights.empty()) return {};
  if (options.mode == Mode::kUnion) return InvalidArgument("a union has no weights");
  if (options.weights.size() != source_count) {
    return InvalidArgument("there are ", options.weights.size(), " weights, expected ",
                           source_count, ", one per source");
  }
  for (const double weight : options.weights) {
    if (!std::isfinite(weight)) return InvalidArgument("a weight is not finite");
  }
  return {};
}

class Merging {
 public:
  Merging(const MergeOptions& options, RewriteJob& job) : options_(options), job_(job) {}

  Status ChooseTensors() {
    Holders holders;
    for (std::size_t source = 0; source < job_.sources.size(); ++source) {
      const Checkpoint& checkpoint = *job_.sources[source];
      for (std::size_t i = 0; i < checkpoint.tensor_count(); ++i) {
        holders[std::string(checkpoint.tensor_name(i))].push_back(source);
      }
    }
    for (const auto& [name, sources] : holders) {
      SEALPOINT_RETURN_IF_ERROR(CheckInAll(name, sources).AtTensor(name));
      SEALPOINT_RETURN_IF_ERROR(AddTensor(name, sources));
    }
    return {};
  }

  Status ChooseObjects() {
    Holders holders;
    for (std::size_t source = 0; source < job_.sources.size(); ++source) {
      for (ObjectInfo& object : job_.sources[source]->objects()) {
        holders[std::move(object.name)].push_back(source);
      }
    }
    for (const auto& [name, sources] : holders) {
      const bool must_be_equal = options_.objects == MergeOptions::Objects::kEqual;
      if (must_be_equal) {
        SEALPOINT_RETURN_IF_ERROR(CheckInAll(name, sources).AtObject(name));
        SEALPOINT_RETURN_IF_ERROR(CheckSameObject(name, sources));
      }
      const bool is_taken = options_.mode == Mode::kUnion || sources.front() == 0;
      if (is_taken) job_.objects.push_back({name, sources.front()});
    }
    return {};
  }

 private:
  const std::string& PathOf(std::size_t source) const { return job_.sources[source]->path(); }

  Status CheckInAll(const std::string& name, const std::vector<std::size_t>& sources) const {
    if (options_.mode == Mode::kUnion || sources.size() == job_.sources.size()) return {};
    std::size_t missing = 0;
    while (missing < sources.size() && sources[missing] == missing) ++missing;
    return MakeError(Code::kMismatch, "'", name, "' is missing, expected as in ",
                     PathOf(sources.front()))
        .AtPath(PathOf(missing));
  }

  Status AddTensor(const std::string& name, const std::vector<std::size_t>& sources) {
    const Checkpoint& first = *job_.sources[sources.front()];
    const TensorInfo expected = *first.FindTensor(name);
    for (const std::size_t source : sources) {
      const TensorInfo found = *job_.sources[source]->FindTensor(name);
      const bool is_same = found.dtype == expected.dtype && found.shape == expected.shape &&
                           found.element_size == expected.element_size;
      if (is_same) continue;
      return MakeError(Code::kMismatch, "it is ", DTypeName(found.dtype), " of shape ",
                       ShapeToString(found.shape), ", expected ", DTypeName(expected.dtype),
                       " of shape ", ShapeToString(expected.shape), " as in ", first.path())
          .AtTensor(name)
          .AtPath(PathOf(source));
    }
    TensorTask task{.sources = sources};
    SEALPOINT_ASSIGN_OR_RETURN(task.spec, SpecOf(first, expected, options_.repack));
    if (options_.mode == Mode::kAverage) {
      task.accumulator = AccumulatorOf(expected.dtype, options_.accumulate);
    }
    job_.tensors.push_back(std::move(task));
    return {};
  }

  Status CheckSameObject(const std::string& name, const std::vector<std::size_t>& sources) const {
    if (sources.size() == 1) return {};
    const Checkpoint& first = *job_.sources[sources.front()];
    SEALPOINT_ASSIGN_OR_RETURN(const Bytes expected, first.ReadObject(name));
    for (std::size_t i = 1; i < sources.size(); ++i) {
      const Checkpoint& other = *job_.sources[sources[i]];
      SEALPOINT_ASSIGN_OR_RETURN(const Bytes found, other.ReadObject(name));
      const bool is_same = found == expected &&
                           other.FindObject(name)->media_type == first.FindObject(name)->media_type;
      if (is_same) continue;
      return MakeError(Code::kMismatch, "its ", found.size(), " bytes differ from the ",
                       expected.size(), " in ", first.path(),
                       ", expected equal ones; MergeOptions::objects can select the first")
          .AtObject(name)
          .AtPath(other.path());
    }
    return {};
  }

  const MergeOptions& options_;
  RewriteJob& job_;
};

// That gives the same number when it is read.
std::string ShortestText(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return std::string(text.data(), end);
}

std::string DescribeMerge(const MergeOptions& options) {
  const std::string first =
      options.objects == MergeOptions::Objects::kFirst ? " objects=first" : "";
  if (options.mode == Mode::kUnion) return StrCat("union", first, DescribeChoices(options.repack));
  const bool is_double = options.accumulate == MergeOptions::Accumulate::kF64;
  std::string weights;
  for (const double weight : options.weights) {
    weights += StrCat(weights.empty() ? " weights=" : ",", ShortestText(weight));
  }
  return StrCat("average", weights, " accumulate=", is_double ? "f64" : "f32", first,
                DescribeChoices(options.repack));
}

}  // namespace
}  // namespace internal::repack

Result<RepackReport> MergeCheckpoints(const std::vector<std::string>& sources,
                                      const std::string& to, const MergeOptions& options) {
  SEALPOINT_RETURN_IF_ERROR(internal::repack::CheckWeights(options, sources.size()));
  internal::repack::RewriteJob job{.weights = options.weights, .commit = options.commit};
  if (job.weights.empty()) {
    job.weights.assign(sources.size(), 1.0 / static_cast<double>(sources.size()));
  }
  SEALPOINT_ASSIGN_OR_RETURN(job.sources, internal::repack::OpenSources(sources, options.repack));
  internal::repack::Merging merging(options, job);
  SEALPOINT_RETURN_IF_ERROR(merging.ChooseTensors());
  SEALPOINT_RETURN_IF_ERROR(merging.ChooseObjects());
  if (job.commit.step == kNoStep) job.commit.step = job.sources.front()->step();
  if (job.commit.attributes.empty()) job.commit.attributes = job.sources.front()->attributes();
  job.commit.provenance = internal::repack::WithOrigin(options.commit.provenance, job.sources,
                                                       internal::repack::DescribeMerge(options));
  return internal::repack::Rewrite(std::move(job), to, options.repack);
}

}  // namespace sealpoint
