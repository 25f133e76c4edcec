// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/comm/agree.h"
#include "lib/comm/same_call.h"
#include "lib/container/open_checkpoint.h"
#include "lib/format/constants.h"
#include "lib/promote/promote_files.h"
#include "lib/promote/staged_folder.h"
#include "lib/saver/promotion_queue.h"
#include "lib/series/series_scan.h"
#include "lib/storage/path.h"
#include "lib/storage/place.h"
#include "sealpoint/saver.h"
#include "sealpoint/series.h"

namespace sealpoint {
namespace internal::saver {
namespace {

// A checkpoint on the local storage of one rank at least.
struct Candidate {
  std::string name{};
  AttemptId attempt{};
  std::uint64_t sequence = 0;
  int rank = 0;  // the first that has its marker
};

// What a final series holds.
struct FinalSeries {
  std::uint64_t newest = 0;                   // sequence; 0 if there is none
  std::map<std::string, AttemptId> attempts;  // by name of the directory
};

// One call. All functions but those that say "local" are collective.
class Resumption {
 public:
  Resumption(Communicator& comm, const StagedPlaces& places, const ResumePromotionsOptions& options)
      : comm_(comm),
        place_(places.local),
        final_(places.final_series),
        options_(options),
        storage_(options.storage ? options.storage : DefaultStorage()) {}

  Result<ResumedPromotions> Run();

 private:
  Result<FinalSeries> LookAtFinal();
  Result<std::vector<Promotion>> ListLocal(const FinalSeries& series);  // local
  void LookForStrays(const std::string& folder, const FinalSeries& series,
                     std::vector<Promotion>& left) const;  // local
  Result<std::vector<Candidate>> FindCandidates(const FinalSeries& series,
                                                ResumedPromotions& resumed);
  Status PromoteOne(const Candidate& candidate);
  Result<container::GivenFiles> ReadFiles(const Candidate& candidate) const;  // local
  Result<std::vector<BlobId>> Divide(const Candidate& candidate, const metadata::Metadata& index);
  Result<Bytes> BlobsIn(const std::string& directory,
                        const metadata::Metadata& index) const;                 // local
  std::vector<const SeriesEntry*> FindCopies(const FinalSeries& series) const;  // local
  Status DropWhatIsFinal(const FinalSeries& series);

  Communicator& comm_;
  const std::string place_;       // may differ by rank
  promote::StagedFolder folder_;  // in it
  const std::string final_;
  const ResumePromotionsOptions& options_;
  const std::shared_ptr<Storage> storage_;
  SeriesListing listing_;  // of the local series
};

Result<Bytes> ListFinal(const Storage& storage, const std::string& path) {
  SEALPOINT_ASSIGN_OR_RETURN(const SeriesListing listing,
                             series::ScanSeries(storage, path, series::SeriesDetail::kMarkers));
  if (const SeriesEntry* const unread = listing.unread())
    return series::NeverNotFound(unread->problem);
  Bytes bytes;
  WireWriter out(bytes);
  const SeriesEntry* const newest = listing.newest();
  out.Put(newest == nullptr ? std::uint64_t{0} : newest->sequence);
  for (const SeriesEntry& entry : listing.entries) {
    if (entry.verdict != Verdict::kCommitted) continue;
    out.Put(entry.name);
    out.Put(entry.attempt);
  }
  return bytes;
}

Result<FinalSeries> Resumption::LookAtFinal() {
  Result<Bytes> at_root = Bytes();
  if (comm_.rank() == 0) at_root = ListFinal(*storage_, final_);
  SEALPOINT_ASSIGN_OR_RETURN(const Bytes bytes,
                             comm::BroadcastResult(comm_, 0, std::move(at_root)));
  WireReader in(bytes);
  FinalSeries series;
  SEALPOINT_ASSIGN_OR_RETURN(series.newest, in.Number());
  while (!in.at_end()) {
    SEALPOINT_ASSIGN_OR_RETURN(const std::string name, in.Text());
    SEALPOINT_ASSIGN_OR_RETURN(series.attempts[name], in.Id<AttemptId>());
  }
  return series;
}

// The copies of this series that this rank sees, and what else lies in its local place: copies
// without a record, and those of another place whose lineage this series has. Errors: Io, those of
// a marker that cannot be read.
Result<std::vector<Promotion>> Resumption::ListLocal(const FinalSeries& series) {
  SEALPOINT_RETURN_IF_ERROR(storage::CheckApart(*storage_, place_, *storage_, final_));
  SEALPOINT_ASSIGN_OR_RETURN(folder_, promote::StagedFolderOf(*storage_, place_, final_));
  SEALPOINT_ASSIGN_OR_RETURN(const auto recorded, promote::RecordedSeries(*storage_, folder_.path));
  if (recorded == folder_.series) {
    SEALPOINT_ASSIGN_OR_RETURN(
        listing_, series::ScanSeries(*storage_, folder_.path, series::SeriesDetail::kMarkers));
    if (listing_.unread() != nullptr) return series::NeverNotFound(listing_.unread()->problem);
  }
  std::vector<Promotion> left;
  const auto opened = storage_->OpenDirectory(place_);
  if (opened.error().code() == Code::kNotFound) return left;
  SEALPOINT_RETURN_IF_ERROR(opened.status());
  LookForStrays(place_, series, left);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<EntryInfo> entries, (*opened)->List());
  for (const EntryInfo& entry : entries) {
    const std::string path = JoinPath(place_, entry.name);
    if (entry.kind == EntryKind::kDirectory && path != folder_.path) {
      LookForStrays(path, series, left);
    }
  }
  return left;
}

// R-STG-13: what is no copy of this series, or may be one and says otherwise, is named and left
// alone. That it cannot be looked at is no error: it is not of this series.
void Resumption::LookForStrays(const std::string& folder, const FinalSeries& series,
                               std::vector<Promotion>& left) const {
  const auto recorded = promote::RecordedSeries(*storage_, folder);
  const auto listing = series::ScanSeries(*storage_, folder, series::SeriesDetail::kMarkers);
  if (!recorded.ok() || !listing.ok()) return;
  const SeriesEntry* const newest = listing->newest();
  if (newest == nullptr || newest->sequence <= series.newest) return;
  const auto is_known = [&](const AttemptId& attempt) {
    return std::ranges::any_of(series.attempts,
                               [&](const auto& one) { return one.second == attempt; });
  };
  // Those of another training, which has its own place, are its own affair.
  if (*recorded && !std::ranges::any_of(listing->entries, [&](const SeriesEntry& entry) {
        return is_known(entry.attempt) || is_known(entry.parent);
      })) {
    return;
  }
  left.push_back(
      {.directory = folder,
       .status = RuleError(
           Code::kInvalidArgument, "R-STG-13", "checkpoints here ",
           *recorded ? StrCat("are copies for ", **recorded) : "have no record of their series",
           ", and are not promoted to ", final_,
           "; if they belong to this training, run: ckpt promote --adopt ", folder, " ", final_)});
}

// Newest first; the same on all ranks. A marker that could not be read may be the newest
// (R-SER-23); one that is damaged, or of another version, is passed over, and all are told.
Result<std::vector<Candidate>> Resumption::FindCandidates(const FinalSeries& series,
                                                          ResumedPromotions& resumed) {
  Result<std::vector<Promotion>> left = ListLocal(series);
  SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm_, left.status()));
  Bytes message;
  WireWriter out(message);
  std::vector<Promotion> bad = *std::move(left);
  for (const SeriesEntry& entry : listing_.entries) {
    const bool is_bad =
        entry.verdict == Verdict::kCorrupt || entry.verdict == Verdict::kUnsupported;
    if (is_bad && !series.attempts.contains(entry.name)) {
      bad.push_back({.directory = entry.path, .status = entry.problem});
    }
  }
  out.Put(std::uint64_t{bad.size()});
  for (const Promotion& promotion : bad) {
    out.Put(promotion.directory);
    out.Put(static_cast<std::uint64_t>(promotion.status.code()));
    out.Put(promotion.status.message());
  }
  for (const SeriesEntry& entry : listing_.entries) {
    if (entry.verdict != Verdict::kCommitted || entry.sequence <= series.newest) continue;
    out.Put(entry.name);
    out.Put(entry.attempt);
    out.Put(entry.sequence);
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm_.AllGather(message));
  std::map<AttemptId, Candidate> found;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    WireReader in(all[rank]);
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t bad_count, in.Number());
    for (std::uint64_t i = 0; i < bad_count; ++i) {
      SEALPOINT_ASSIGN_OR_RETURN(const std::string path, in.Text());
      SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t code, in.Number());
      SEALPOINT_ASSIGN_OR_RETURN(const std::string text, in.Text());
      Status problem =
          Status(static_cast<Code>(code), text).AtPath(path).AtRank(static_cast<int>(rank), "");
      resumed.skipped.push_back({.directory = path, .status = std::move(problem)});
    }
    while (!in.at_end()) {
      Candidate one{.rank = static_cast<int>(rank)};
      SEALPOINT_ASSIGN_OR_RETURN(one.name, in.Text());
      SEALPOINT_ASSIGN_OR_RETURN(one.attempt, in.Id<AttemptId>());
      SEALPOINT_ASSIGN_OR_RETURN(one.sequence, in.Number());
      found.try_emplace(one.attempt, one);
    }
  }
  std::vector<Candidate> candidates;
  for (auto& [attempt, one] : found) candidates.push_back(std::move(one));
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(a.sequence, a.attempt) > std::pair(b.sequence, b.attempt);
  });
  return candidates;
}

Result<container::GivenFiles> Resumption::ReadFiles(const Candidate& candidate) const {
  SEALPOINT_ASSIGN_OR_RETURN(
      container::CommittedFiles files,
      container::OpenCommitted(*storage_, JoinPath(folder_.path, candidate.name), options_.limits,
                               false));
  return container::GivenFiles{.marker = std::move(files.marker.bytes),
                               .index = *files.index.bytes};
}

// One byte per blob of the index: whether it is there with its length.
Result<Bytes> Resumption::BlobsIn(const std::string& directory,
                                  const metadata::Metadata& index) const {
  Bytes has(index.blob_count());
  const auto opened = storage_->OpenDirectory(directory);
  if (!opened.ok() && opened.error().code() == Code::kNotFound) return has;
  SEALPOINT_RETURN_IF_ERROR(opened.status());
  SEALPOINT_ASSIGN_OR_RETURN(const auto entries, (*opened)->List());
  std::map<std::string, std::uint64_t> sizes;
  for (const EntryInfo& entry : entries) sizes[entry.name] = entry.size_bytes;
  for (std::size_t i = 0; i < has.size(); ++i) {
    const metadata::BlobPin pin = index.blob(i);
    const auto found = sizes.find(format::BlobName(pin.id));
    if (found != sizes.end() && found->second == pin.file_size) has[i] = std::byte{1};
  }
  return has;
}

// The blobs that this rank promotes: of the ranks that see one, that with the fewest bytes so far
// takes it. What no rank sees must be in the final directory.
Result<std::vector<BlobId>> Resumption::Divide(const Candidate& candidate,
                                               const metadata::Metadata& index) {
  auto present = BlobsIn(JoinPath(folder_.path, candidate.name), index);
  Result<Bytes> in_final = Bytes();
  if (comm_.rank() == 0) in_final = BlobsIn(JoinPath(final_, candidate.name), index);
  SEALPOINT_RETURN_IF_ERROR(
      AgreeOnStatus(comm_, present.ok() ? in_final.status() : present.status()));
  if (comm_.rank() == 0) present->insert(present->end(), in_final->begin(), in_final->end());
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm_.AllGather(*present));
  std::vector<std::uint64_t> load(all.size());
  std::vector<BlobId> own;
  for (std::size_t i = 0; i < index.blob_count(); ++i) {
    const metadata::BlobPin pin = index.blob(i);
    if (all[0][index.blob_count() + i] == std::byte{1}) continue;
    std::size_t taker = all.size();
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const bool has = all[rank][i] == std::byte{1};
      if (has && (taker == all.size() || load[rank] < load[taker])) taker = rank;
    }
    if (taker == all.size()) {
      return RuleError(Code::kIncomplete, "R-STG-07", "blob ", pin.id.ToHex(), " (", i + 1, " of ",
                       index.blob_count(),
                       ") is neither on the local storage of a participating rank nor in the final "
                       "directory")
          .AtPath(JoinPath(final_, candidate.name));
    }
    load[taker] += pin.file_size;
    if (taker == static_cast<std::size_t>(comm_.rank())) own.push_back(pin.id);
  }
  return own;
}

Status Resumption::PromoteOne(const Candidate& candidate) {
  Result<Bytes> at_reader = Bytes();
  if (comm_.rank() == candidate.rank) {
    const auto files = ReadFiles(candidate);
    if (files.ok()) {
      WireWriter out(*at_reader);
      out.Put(AsText(files->marker));
      out.Put(AsText(files->index));
    } else {
      at_reader = files.error();
    }
  }
  SEALPOINT_ASSIGN_OR_RETURN(const Bytes sent,
                             comm::BroadcastResult(comm_, candidate.rank, std::move(at_reader)));
  WireReader in(sent);
  container::GivenFiles given;
  SEALPOINT_ASSIGN_OR_RETURN(const ByteSpan marker, in.Span());
  SEALPOINT_ASSIGN_OR_RETURN(const ByteSpan index, in.Span());
  given.marker.assign(marker.begin(), marker.end());
  given.index.assign(index.begin(), index.end());
  const std::string from = JoinPath(folder_.path, candidate.name);
  SEALPOINT_ASSIGN_OR_RETURN(const container::MarkerFile decoded,
                             container::DecodeMarkerFile(from, given.marker));
  SEALPOINT_ASSIGN_OR_RETURN(
      const container::IndexFile file,
      container::DecodeIndexFile(from, decoded.marker, given.index, options_.limits));
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<BlobId> own, Divide(candidate, file.metadata));
  const auto promoted =
      promote::PromoteGiven({.from = from, .to = JoinPath(final_, candidate.name)},
                            {.from_storage = storage_,
                             .to_storage = storage_,
                             .blobs = own,
                             .threads = options_.threads,
                             .memory_budget_bytes = options_.memory_budget_bytes,
                             .deadline = options_.deadline,
                             .limits = options_.limits},
                            std::move(given));
  return AgreeOnStatus(comm_, promoted.status());
}

// The local copies of what the final series has, newest first.
std::vector<const SeriesEntry*> Resumption::FindCopies(const FinalSeries& series) const {
  std::vector<const SeriesEntry*> copies;
  std::vector<const SeriesEntry*>
      without_marker;  // of a node that died before it published its own
  for (const SeriesEntry& entry : listing_.entries) {
    const auto in_final = series.attempts.find(entry.name);
    if (in_final == series.attempts.end()) continue;
    if (entry.verdict == Verdict::kUncommitted) without_marker.push_back(&entry);
    const bool is_same = entry.verdict == Verdict::kCommitted && entry.attempt == in_final->second;
    if (is_same) copies.push_back(&entry);
  }
  // They are listed by name, the oldest first.
  copies.insert(copies.end(), without_marker.rbegin(), without_marker.rend());
  return copies;
}

// Local copies, but for the newest few, of what rank 0 finds whole and durable in the final series.
// That one stays is no error: the next job tries again. Errors: Comm, Timeout.
Status Resumption::DropWhatIsFinal(const FinalSeries& series) {
  std::vector<const SeriesEntry*> copies = FindCopies(series);
  const auto kept =
      std::min<std::size_t>(copies.size(), static_cast<std::size_t>(options_.keep_local));
  copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(kept));
  Bytes wanted;
  for (const SeriesEntry* const copy : copies) WireWriter(wanted).Put(copy->name);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm_.Gather(wanted, 0));
  std::set<std::string> names;
  for (const Bytes& message : all) {
    for (WireReader in(message); !in.at_end();) {
      const auto name = in.Text();
      if (!name.ok()) break;  // the others wait for the broadcast
      names.insert(*name);
    }
  }
  Bytes durable;
  for (const std::string& name : names) {
    // R-STG-08: who published may have died before the sync, and a blob may be lost.
    if (promote::CheckIsDurable(*storage_, JoinPath(final_, name), options_.limits).ok()) {
      WireWriter(durable).Put(name);
    }
  }
  SEALPOINT_RETURN_IF_ERROR(comm_.Broadcast(durable, 0));
  for (WireReader in(durable); !in.at_end();) {
    SEALPOINT_ASSIGN_OR_RETURN(const std::string name, in.Text());
    for (const SeriesEntry* const copy : copies) {
      if (copy->name != name) continue;
      static_cast<void>(DropLocal(*storage_, copy->path, JoinPath(final_, name)));
    }
  }
  return {};
}

Result<ResumedPromotions> Resumption::Run() {
  SEALPOINT_RETURN_IF_ERROR(comm::CheckSameCall(
      comm_, {.kind = "resumption of promotions", .arguments = {{"series", final_}}},
      options_.failure));
  SEALPOINT_ASSIGN_OR_RETURN(FinalSeries series, LookAtFinal());
  ResumedPromotions resumed;
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Candidate> candidates,
                             FindCandidates(series, resumed));
  for (const Candidate& candidate : candidates) {
    const Status status = PromoteOne(candidate);
    if (comm::IsCommFailure(status) && status.place().rule.empty()) return status;
    if (status.ok()) {
      resumed.promoted.push_back(candidate.name);
      series.attempts[candidate.name] = candidate.attempt;
    } else {
      resumed.skipped.push_back({.directory = JoinPath(final_, candidate.name), .status = status});
    }
  }
  SEALPOINT_RETURN_IF_ERROR(DropWhatIsFinal(series));
  return resumed;
}

}  // namespace
}  // namespace internal::saver

Result<StagedCopies> FindStagedCopies(const StagedPlaces& places,
                                      std::shared_ptr<Storage> storage) {
  if (storage == nullptr) storage = DefaultStorage();
  SEALPOINT_RETURN_IF_ERROR(
      internal::storage::CheckApart(*storage, places.local, *storage, places.final_series));
  SEALPOINT_ASSIGN_OR_RETURN(
      internal::promote::StagedFolder folder,
      internal::promote::StagedFolderOf(*storage, places.local, places.final_series));
  SEALPOINT_ASSIGN_OR_RETURN(auto record, internal::promote::RecordedSeries(*storage, folder.path));
  return StagedCopies{.folder = std::move(folder.path),
                      .series = std::move(folder.series),
                      .record = std::move(record)};
}

Result<ResumedPromotions> ResumePromotions(Communicator& comm, const StagedPlaces& places,
                                           const ResumePromotionsOptions& options) {
  auto resumed = internal::saver::Resumption(comm, places, options).Run();
  if (resumed.ok()) return resumed;
  const std::string during =
      internal::StrCat("collective resumption of promotions to ", places.final_series);
  return internal::comm::DescribeCommFailure(comm, resumed.error(), during);
}

}  // namespace sealpoint
