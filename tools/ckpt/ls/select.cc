// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/ls/select.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace sealpoint::tools::ls {
namespace {

// The number of the tensor that has this name.
std::optional<std::size_t> FindNumber(const Checkpoint& checkpoint, std::string_view name) {
  std::size_t begin = 0;
  std::size_t end = checkpoint.tensor_count();
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    if (checkpoint.tensor_name(middle) < name) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  const bool is_found = begin < checkpoint.tensor_count() && checkpoint.tensor_name(begin) == name;
  return is_found ? std::optional(begin) : std::nullopt;
}

// Puts the one that has the name `pattern`, or all that match, after the others.
template <typename Item>
Status Append(std::optional<Item> one, const auto& match, std::vector<Item>& found) {
  if (one) {
    found.push_back(*std::move(one));
    return {};
  }
  Result<std::vector<Item>> some = match();
  if (!some) return std::move(some).error();
  std::move(some->begin(), some->end(), std::back_inserter(found));
  return {};
}

}  // namespace

Result<std::vector<std::size_t>> SelectTensors(const Checkpoint& checkpoint,
                                               const std::vector<std::string>& patterns) {
  std::vector<std::size_t> found;
  for (const std::string& pattern : patterns) {
    Status status = Append(
        FindNumber(checkpoint, pattern), [&] { return checkpoint.MatchTensorNumbers({pattern}); },
        found);
    if (status.code() == Code::kNotFound && checkpoint.FindObject(pattern)) {
      return Status(Code::kNotFound, "this is the name of an object, not of a tensor: use --object")
          .AtTensor(pattern);
    }
    if (!status.ok()) return status;
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Result<std::vector<ObjectInfo>> SelectObjects(const Checkpoint& checkpoint,
                                              const std::vector<std::string>& patterns) {
  std::vector<ObjectInfo> found;
  for (const std::string& pattern : patterns) {
    Status status = Append(
        checkpoint.FindObject(pattern), [&] { return checkpoint.MatchObjects({pattern}); }, found);
    if (status.code() == Code::kNotFound && checkpoint.FindTensor(pattern)) {
      return Status(Code::kNotFound,
                    "this is the name of a tensor, not of an object: use --tensor or --values")
          .AtTensor(pattern);
    }
    if (!status.ok()) return status;
  }
  std::sort(found.begin(), found.end(),
            [](const ObjectInfo& a, const ObjectInfo& b) { return a.name < b.name; });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace sealpoint::tools::ls
