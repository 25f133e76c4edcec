// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/name_pattern.h"
#include "lib/repack/rewrite.h"
#include "lib/repack/tasks.h"
#include "sealpoint/promote.h"
#include "sealpoint/repack.h"

namespace sealpoint {
namespace internal::repack {
namespace {

bool ChoosesNothing(const CopyOptions& options, const Checkpoint& source) {
  const RepackOptions& repack = options.repack;
  const bool is_flattened = options.flatten && source.base();
  return !is_flattened && options.match.empty() && options.drop.empty() && !repack.codec &&
         repack.chunk_size_bytes == 0 && repack.blob_count == 0 && repack.blob_size_max_bytes == 0;
}

// Names of tensors, and of objects, that at least one of the patterns matches.
struct NamesFound {
  std::set<std::string, std::less<>> tensors{};
  std::set<std::string, std::less<>> objects{};
};

Result<NamesFound> FindNames(const Checkpoint& source, const std::vector<std::string>& patterns) {
  NamesFound found;
  for (const std::string& text : patterns) {
    SEALPOINT_ASSIGN_OR_RETURN(const NamePattern pattern, NamePattern::Parse(text));
    bool matches = false;
    for (std::size_t i = 0; i < source.tensor_count(); ++i) {
      if (!pattern.Matches(source.tensor_name(i))) continue;
      found.tensors.emplace(source.tensor_name(i));
      matches = true;
    }
    for (std::size_t i = 0; i < source.object_count(); ++i) {
      const std::string name = source.object(i).name;
      if (!pattern.Matches(name)) continue;
      found.objects.insert(name);
      matches = true;
    }
    if (!matches) {
      return MakeError(Code::kNotFound, "no tensor or object matches '", text, "'")
          .AtPath(source.path());
    }
  }
  return found;
}

Status ChooseTasks(const CopyOptions& options, RewriteJob& job) {
  const Checkpoint& source = *job.sources.front();
  SEALPOINT_ASSIGN_OR_RETURN(const NamesFound matched, FindNames(source, options.match));
  SEALPOINT_ASSIGN_OR_RETURN(const NamesFound dropped, FindNames(source, options.drop));
  const auto is_chosen = [&](std::string_view name, const auto& in, const auto& out) {
    return (options.match.empty() || in.contains(name)) && !out.contains(name);
  };
  for (std::size_t i = 0; i < source.tensor_count(); ++i) {
    if (!is_chosen(source.tensor_name(i), matched.tensors, dropped.tensors)) continue;
    SEALPOINT_ASSIGN_OR_RETURN(TensorSpec spec, SpecOf(source, source.tensor(i), options.repack));
    job.tensors.push_back({.spec = std::move(spec), .sources = {0}});
  }
  for (std::size_t i = 0; i < source.object_count(); ++i) {
    const std::string name = source.object(i).name;
    if (is_chosen(name, matched.objects, dropped.objects)) job.objects.push_back({.name = name});
  }
  const bool has_any = source.tensor_count() + source.object_count() > 0;
  if (has_any && job.tensors.empty() && job.objects.empty()) {
    return InvalidArgument("nothing to write: no tensor or object is selected")
        .AtPath(source.path());
  }
  return {};
}

std::string DescribeCopy(const CopyOptions& options, const Checkpoint& source) {
  std::string how = "copy" + DescribeChoices(options.repack);
  if (options.flatten && source.base()) how += " flatten";
  for (const std::string& pattern : options.match) how += " match=" + pattern;
  for (const std::string& pattern : options.drop) how += " drop=" + pattern;
  return how;
}

// The place of the source in a series, and all that its index says of it.
CommitOptions CommitOf(const Sources& sources, const CopyOptions& options) {
  const Checkpoint& source = *sources.front();
  CommitOptions commit{
      .step = source.step(),
      .mesh = source.mesh(),
      .attributes = source.attributes(),
      .provenance = WithOrigin(source.provenance(), sources, DescribeCopy(options, source)),
      .allow_empty = source.tensor_count() + source.object_count() == 0,
      .limits = options.repack.limits};
  if (!source.parent().is_zero()) {
    commit.parent = ParentRef{source.parent(), source.sequence() - 1};
  }
  return commit;
}

Result<RepackReport> CopyUnchanged(const Checkpoint& source, const std::string& to,
                                   const RepackOptions& options) {
  RepackReport result{.attempt = source.attempt(),
                      .sequence = source.sequence(),
                      .step = source.step(),
                      .tensor_count = source.tensor_count(),
                      .object_count = source.object_count(),
                      .raw_bytes = source.raw_bytes(),
                      .is_identical = true};
  // All, named one by one: a promotion would wait for what was deleted since.
  std::vector<BlobId> blobs;
  for (const BlobInfo& blob : source.blobs()) {
    blobs.push_back(blob.id);
    result.total_bytes += blob.file_size_bytes;
  }
  result.blob_count = blobs.size();
  if (options.dry_run) return result;
  PhaseCallback on_progress;
  if (options.on_progress) {
    on_progress = [&](PhaseEvent event) {
      event.bytes_total = result.total_bytes;
      options.on_progress(event);
    };
  }
  SEALPOINT_ASSIGN_OR_RETURN(
      const PromoteReport report,
      Promote({.from = source.path(), .to = to},
              {.from_storage = options.from_storage,
               .to_storage = options.to_storage,
               .blobs = std::move(blobs),
               .threads = options.threads,
               .memory_budget_bytes = std::min(options.memory_budget_bytes, 64 * kMiB),
               .limits = options.limits,
               .on_progress = std::move(on_progress)}));
  result.was_committed = report.was_committed;
  return result;
}

}  // namespace
}  // namespace internal::repack

Result<RepackReport> CopyCheckpoint(const CopyPaths& paths, const CopyOptions& options) {
  // With all its blobs.
  SEALPOINT_ASSIGN_OR_RETURN(internal::repack::CopySource source,
                             internal::repack::OpenCopySource(paths.from, options.repack));
  if (!source.is_draft && internal::repack::ChoosesNothing(options, *source.checkpoint)) {
    return internal::repack::CopyUnchanged(*source.checkpoint, paths.to, options.repack);
  }
  internal::repack::RewriteJob job;
  job.sources.push_back(std::move(source.checkpoint));
  SEALPOINT_RETURN_IF_ERROR(internal::repack::ChooseTasks(options, job));
  job.commit = internal::repack::CommitOf(job.sources, options);
  return internal::repack::Rewrite(std::move(job), paths.to, options.repack);
}

}  // namespace sealpoint
