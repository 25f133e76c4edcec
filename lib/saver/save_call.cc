// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/save_call.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/check_deadline.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/name_pattern.h"
#include "lib/pipeline/thread_pool.h"
#include "lib/promote/promote_files.h"
#include "sealpoint/region.h"
#include "sealpoint/storage.h"

namespace sealpoint {

SaveTarget SaveTarget::InSeries(std::string series_directory) {
  return {std::move(series_directory), /*is_series=*/true};
}

SaveTarget SaveTarget::Directory(std::string directory, std::optional<ParentRef> parent) {
  SaveTarget target(std::move(directory), /*is_series=*/false);
  target.parent_ = parent;
  return target;
}

SaveTarget SaveTarget::Directory(std::string directory, ParentRef parent,
                                 std::string parent_directory) {
  SaveTarget target = Directory(std::move(directory), parent);
  target.parent_directory_ = std::move(parent_directory);
  return target;
}

SaveTarget SaveTarget::Staged(std::string local, SaveTarget final) {
  final.local_ = std::move(local);
  return final;
}

namespace internal::saver {
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

std::string TextOf(const std::vector<std::string>& groups) {
  std::string text;
  for (const std::string& group : groups) text += StrCat(text.empty() ? "" : ",", group);
  return text.empty() ? "none" : text;
}

std::string TextOf(const std::vector<std::pair<std::string, Shape>>& stored_cuts) {
  std::string text;
  for (const auto& [pattern, cuts] : stored_cuts) {
    text += StrCat(text.empty() ? "" : ",", pattern, "=", ShapeToString(cuts));
  }
  return text.empty() ? "none" : text;
}

std::string TextOf(bool option) { return option ? "on" : "off"; }

// Ascending, without repetition, of ranks that are there.
Status CheckWriterRanks(const std::vector<int>& ranks, int size) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || ranks[i] >= size) {
      return InvalidArgument("writer_ranks has rank ", ranks[i], ", expected 0 to ", size - 1);
    }
    if (i > 0 && ranks[i] <= ranks[i - 1]) {
      return InvalidArgument("writer_ranks has rank ", ranks[i], " after rank ", ranks[i - 1],
                             ", expected ascending ranks");
    }
  }
  return {};
}

}  // namespace

Status CheckOptions(const SaverOptions& options, int size) {
  if (options.blob_size_max_bytes < kMiB) {
    return InvalidArgument("blob_size_max_bytes is ", options.blob_size_max_bytes,
                           ", expected at least ", kMiB);
  }
  SEALPOINT_RETURN_IF_ERROR(pipeline::CheckThreads("promote_threads", options.promote_threads));
  if (options.frozen_full_every < 1) {
    return InvalidArgument("frozen_full_every is ", options.frozen_full_every,
                           ", expected at least 1");
  }
  if (options.keep_local < 0) {
    return InvalidArgument("keep_local is ", options.keep_local, ", expected at least 0");
  }
  if (options.unpromoted_max < 1) {
    return InvalidArgument("unpromoted_max is ", options.unpromoted_max, ", expected at least 1");
  }
  const int threads =
      pipeline::ChosenThreads(options.promote_threads, promote::kPromoteThreadsAuto);
  const std::uint64_t least = static_cast<std::uint64_t>(threads) * kDirectIoAlignmentBytes;
  if (options.promote_memory_bytes < least) {
    return InvalidArgument("promote_memory_bytes is ", options.promote_memory_bytes,
                           ", expected at least ", least, " with ", threads, " threads");
  }
  for (const auto& [name, deadline] : {std::pair("deadline", options.deadline),
                                       {"background_deadline", options.background_deadline},
                                       {"promote_deadline", options.promote_deadline}}) {
    SEALPOINT_RETURN_IF_ERROR(CheckDeadline(name, deadline));
  }
  for (const auto& [pattern, cuts] : options.stored_cuts) {
    SEALPOINT_RETURN_IF_ERROR(NamePattern::Parse(pattern).status().Prefixed("stored_cuts"));
  }
  if (options.unpromoted_wait.count() < 0) {
    return InvalidArgument("unpromoted_wait is ", options.unpromoted_wait.count(),
                           " ms, expected at least 0");
  }
  return CheckWriterRanks(options.writer_ranks, size);
}

comm::CollectiveCall CallOf(std::string_view kind, const SaverOptions& options,
                            const SaveTarget& target, const SaveOptions& save) {
  return {.kind = kind,
          .arguments = {{"target", StrCat(target.is_series() ? "series " : "", target.path())},
                        {"staged", TextOf(target.is_staged())},
                        {"step", save.step == kNoStep ? "none" : StrCat(save.step)},
                        {"base", save.base ? save.base->directory : "none"},
                        {"mesh", TextOf(save.mesh)},
                        {"allow_empty", TextOf(save.allow_empty)},
                        {"writer_ranks", TextOf(options.writer_ranks)},
                        {"frozen_groups", TextOf(options.frozen_groups)},
                        {"learn_frozen", TextOf(options.learn_frozen)},
                        {"stored_cuts", TextOf(options.stored_cuts)},
                        {"find_replicas", TextOf(options.find_replicas)},
                        {"compare_replicas", TextOf(options.compare_replicas)},
                        {"fingerprints", TextOf(options.fingerprints)}},
          .rule = "R-CMT-17",
          .named_arguments_max = 2};
}

}  // namespace internal::saver
}  // namespace sealpoint
