// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/save_call.h"

#include <optional>
#include <string>
#include <utility>

#include "lib/base/errors.h"

namespace sealpoint {

SaveTarget SaveTarget::InSeries(std::string series_directory) {
  return {.path = std::move(series_directory), .is_series = true, .parent = {}};
}

SaveTarget SaveTarget::Directory(std::string directory, std::optional<ParentRef> parent) {
  return {.path = std::move(directory), .is_series = false, .parent = parent};
}

SaveTarget SaveTarget::Staged(std::string local, SaveTarget final) {
  final.local = std::move(local);
  return final;
}

namespace internal {
namespace {

std::string TextOf(const MeshAxes& mesh) {
  std::string text;
  for (const auto& [name, size] : mesh) {
    text += StrCat(text.empty() ? "" : ",", name, "=", size);
  }
  return text.empty() ? "none" : text;
}

std::string TextOf(const std::vector<int>& writer_ranks) {
  std::string text;
  for (const int rank : writer_ranks) text += StrCat(text.empty() ? "" : ",", rank);
  return text.empty() ? "all" : text;
}

std::string TextOf(bool option) { return option ? "on" : "off"; }

}  // namespace

CollectiveCall CallOf(std::string_view kind, const SaverOptions& options, const SaveTarget& target,
                      const SaveOptions& save) {
  return {.kind = kind,
          .arguments = {{"target", StrCat(target.is_series ? "series " : "", target.path)},
                        {"staged", TextOf(!target.local.empty())},
                        {"step", save.step == kNoStep ? "none" : StrCat(save.step)},
                        {"mesh", TextOf(save.mesh)},
                        {"allow_empty", TextOf(save.allow_empty)},
                        {"writer_ranks", TextOf(options.writer_ranks)},
                        {"find_replicas", TextOf(options.find_replicas)},
                        {"compare_replicas", TextOf(options.compare_replicas)}},
          .rule = "R-CMT-17",
          .named_arguments_max = 2};
}

}  // namespace internal
}  // namespace sealpoint
