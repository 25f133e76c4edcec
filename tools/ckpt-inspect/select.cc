// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt-inspect/select.h"

#include <algorithm>
#include <utility>

namespace sealpoint::tools {
namespace {

// Puts one item of this name, or all that match, behind the others. `find` yields an optional,
// `match` a Result of many.
template <typename Info, typename Find, typename Match>
Status Append(const std::string& pattern, const Find& find, const Match& match,
              std::vector<Info>& found) {
  if (auto one = find(pattern)) {
    found.push_back(*std::move(one));
    return {};
  }
  Result<std::vector<Info>> some = match(std::vector<std::string>{pattern});
  if (!some) return std::move(some).error();
  std::move(some->begin(), some->end(), std::back_inserter(found));
  return {};
}

// By name, each once.
template <typename Info>
void SortUnique(std::vector<Info>& found) {
  std::sort(found.begin(), found.end(),
            [](const Info& a, const Info& b) { return a.name < b.name; });
  found.erase(std::unique(found.begin(), found.end(),
                          [](const Info& a, const Info& b) { return a.name == b.name; }),
              found.end());
}

}  // namespace

Result<std::vector<TensorInfo>> SelectTensors(const Checkpoint& checkpoint,
                                              const std::vector<std::string>& patterns) {
  std::vector<TensorInfo> found;
  for (const std::string& pattern : patterns) {
    Status status = Append(
        pattern, [&](const std::string& name) { return checkpoint.FindTensor(name); },
        [&](const std::vector<std::string>& one) { return checkpoint.MatchTensors(one); }, found);
    if (status.code() == Code::kNotFound && checkpoint.FindObject(pattern)) {
      return Status(Code::kNotFound, "an object has this name, no tensor: use --object")
          .AtTensor(pattern);
    }
    if (!status.ok()) return status;
  }
  SortUnique(found);
  return found;
}

Result<std::vector<ObjectInfo>> SelectObjects(const Checkpoint& checkpoint,
                                              const std::vector<std::string>& patterns) {
  std::vector<ObjectInfo> found;
  for (const std::string& pattern : patterns) {
    Status status = Append(
        pattern, [&](const std::string& name) { return checkpoint.FindObject(name); },
        [&](const std::vector<std::string>& one) { return checkpoint.MatchObjects(one); }, found);
    if (status.code() == Code::kNotFound && checkpoint.FindTensor(pattern)) {
      return Status(Code::kNotFound, "a tensor has this name, no object: use --tensor or --values")
          .AtTensor(pattern);
    }
    if (!status.ok()) return status;
  }
  SortUnique(found);
  return found;
}

}  // namespace sealpoint::tools
