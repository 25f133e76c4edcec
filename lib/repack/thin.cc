// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/series/series_removal.h"
#include "lib/storage/path.h"
#include "sealpoint/repack.h"
#include "sealpoint/series.h"

namespace sealpoint {
namespace internal::repack {
namespace {

// What Series::Delete would refuse, and that a later checkpoint is whole: what was thinned, which
// has the same sequence and may have the greater attempt, does not count as a newer one.
Status CheckIsRemovable(const Storage& storage, const Series& series, const std::string& name,
                        const Limits& limits) {
  SEALPOINT_ASSIGN_OR_RETURN(const SeriesListing listing, series.List());
  const auto& entries = listing.entries;
  const auto found = std::ranges::find(entries, name, &SeriesEntry::name);
  if (found == entries.end()) {
    return MakeError(Code::kNotFound, "no such checkpoint").AtPath(JoinPath(series.path(), name));
  }
  const auto later_end = std::ranges::find_if(
      entries, [&](const SeriesEntry& entry) { return entry.sequence <= found->sequence; });
  const bool is_newest = later_end == entries.begin();
  if (is_newest || found->is_kept) {
    return InvalidArgument("not thinned, since the source could not be deleted: ",
                           is_newest ? "it is the newest of its series" : "a KEEP file pins it")
        .AtRule("R-SER-05")
        .AtPath(found->path);
  }
  series::DeltaIndexes indexes(storage, limits);
  SEALPOINT_ASSIGN_OR_RETURN(const auto deltas, indexes.Find(entries));
  SEALPOINT_RETURN_IF_ERROR(series::CheckIsNotNeeded(entries, deltas, *found));
  return series::MakeSureOfANewerOne(storage, entries.begin(), later_end, found->attempt, limits);
}

}  // namespace
}  // namespace internal::repack

Result<ThinReport> ThinCheckpoint(const CopyPaths& paths, const ThinOptions& options) {
  if (options.drop.empty()) {
    return internal::InvalidArgument("there is nothing to drop, expected at least one pattern");
  }
  const std::string name(internal::storage::LastComponent(paths.from));
  // What lies beside it, and what it is called in its series, is not known.
  if ((name == "." || name == "..") && (paths.to.empty() || options.remove_source)) {
    return internal::InvalidArgument("expected a path that ends with the checkpoint's name")
        .AtPath(paths.from);
  }
  const std::string folder = internal::storage::ParentPath(paths.from);
  const auto storage = options.repack.from_storage ? options.repack.from_storage : DefaultStorage();
  const Series series(folder, storage);
  if (options.remove_source) {
    SEALPOINT_RETURN_IF_ERROR(
        internal::repack::CheckIsRemovable(*storage, series, name, options.repack.limits));
  }
  ThinReport report{.path = paths.to.empty() ? JoinPath(folder, name + "-thin") : paths.to};
  SEALPOINT_ASSIGN_OR_RETURN(report.made,
                             CopyCheckpoint({.from = paths.from, .to = report.path},
                                            {.drop = options.drop, .repack = options.repack}));
  if (!options.remove_source || options.repack.dry_run) return report;
  // Copying may have taken hours.
  SEALPOINT_RETURN_IF_ERROR(
      internal::repack::CheckIsRemovable(*storage, series, name, options.repack.limits));
  // The copy is durable: a crash from here on leaves it, and of the source all or nothing.
  SEALPOINT_RETURN_IF_ERROR(series.Delete(name));
  report.is_source_removed = true;
  return report;
}

}  // namespace sealpoint
