// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/promote.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/check_deadline.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/copy/blob_copy.h"
#include "lib/copy/leftovers.h"
#include "lib/copy/whole_file.h"
#include "lib/format/constants.h"
#include "lib/pipeline/byte_meter.h"
#include "lib/pipeline/thread_pool.h"
#include "lib/promote/promote_files.h"
#include "lib/storage/durable.h"
#include "lib/storage/place.h"
#include "sealpoint/bytes.h"

namespace sealpoint {
namespace internal::promote {
namespace {

using Clock = std::chrono::steady_clock;

// The file that a failed process leaves for the processes waiting for its blob (R-STG-10).
struct AbandonedBlob {
  BlobId blob{};
  std::string why{};
  friend bool operator==(const AbandonedBlob&, const AbandonedBlob&) = default;
};
constexpr std::size_t kIdDigits = 32;
constexpr std::size_t kAbandonedBlobSizeMax = 1024;

std::string AbandonedBlobName(const AttemptId& attempt) {
  return format::ProbeName(attempt) + ".given-up";
}

// Absent if the file is missing, unreadable or incomplete, because it is only a hint.
std::optional<AbandonedBlob> ReadAbandonedBlob(const Directory& directory,
                                               const AttemptId& attempt) {
  const auto file = directory.OpenForRead(AbandonedBlobName(attempt), IoMode::kBuffered);
  if (!file.ok()) return {};
  const std::uint64_t size = (*file)->size_bytes();
  if (size < kIdDigits + 2 || size > kAbandonedBlobSizeMax) return {};
  Bytes bytes(size);
  if (!(*file)->ReadAt(0, bytes).ok()) return {};
  const std::string_view text = AsText(bytes);
  const auto blob = BlobId::FromHex(text.substr(0, kIdDigits));
  if (!blob.ok() || text[kIdDigits] != '\n' || text.back() != '\n') return {};
  return AbandonedBlob{.blob = *blob,
                       .why = Printable(text.substr(kIdDigits + 1, size - kIdDigits - 2))};
}

// Replaces an existing file.
void WriteAbandonedBlob(Directory& directory, const AttemptId& attempt,
                        const AbandonedBlob& abandoned) {
  const std::string name = AbandonedBlobName(attempt);
  const std::string text = StrCat(
      abandoned.blob.ToHex(), "\n",
      std::string_view(abandoned.why).substr(0, kAbandonedBlobSizeMax - kIdDigits - 2), "\n");
  static_cast<void>(directory.Remove(name));
  const auto file = directory.CreateExclusive(name, {});
  if (file.ok() && (*file)->WriteAt(0, AsBytes(text)).ok()) static_cast<void>((*file)->Close());
}

// One promotion of one process.
class Promotion {
 public:
  // `base`: that of a delta, at its final place. `opened`: why `from` has no directory.
  Promotion(const PromoteOptions& options, container::CommittedFiles from,
            std::unique_ptr<container::CommittedFiles> base, Status opened,
            std::unique_ptr<Directory> to, pipeline::ByteMeter::Callback on_bytes)
      : options_(options),
        from_(std::move(from)),
        base_(std::move(base)),
        opened_(std::move(opened)),
        to_(std::move(to)),
        meter_(std::move(on_bytes)) {
    const metadata::Metadata& index = from_.index.metadata;
    for (std::size_t i = 0; i < index.blob_count(); ++i) pins_.push_back(index.blob(i));
  }

  Result<PromoteReport> Run();

 private:
  const AttemptId& attempt() const { return from_.marker.marker.attempt; }
  Result<bool> IsCommitted() const;
  Status ChooseOwn();
  void ClearOwnFailure();
  Status TakeSteps();
  Status CopyOwn();
  Status CopySideFiles();
  Status WaitForOthers();
  Result<std::size_t> FirstMissing(std::span<const metadata::BlobPin> pins,
                                   std::size_t begin) const;
  void GiveUp(const Status& why);
  Status CheckNotAbandoned(bool is_earlier_meant) const;
  Status Sleep(std::chrono::milliseconds duration);
  Status PlaceIndex();
  Status Publish();
  void RemoveLeftovers();

  const PromoteOptions& options_;
  const container::CommittedFiles
      from_;  // without a directory if all is given and it cannot be opened
  const std::unique_ptr<container::CommittedFiles> base_;
  const Status opened_;
  const std::unique_ptr<Directory> to_;
  std::vector<metadata::BlobPin> pins_;  // of all blobs of the index
  PublishMethod publish_ = PublishMethod::kNone;
  std::vector<metadata::BlobPin> own_;
  std::optional<AbandonedBlob> earlier_;  // found when this promotion began
  pipeline::ByteMeter meter_;
  PromoteReport report_;
};

// The marker that is there, if it is this one. Errors: AlreadyExists (R-CMT-01: another), Io.
Result<bool> Promotion::IsCommitted() const {
  const auto info = to_->Stat(format::kMarkerName);
  if (!info.ok() && info.error().code() == Code::kNotFound) return false;
  SEALPOINT_RETURN_IF_ERROR(info.status());
  const auto found = container::ReadMarker(*to_);
  if (found.ok() && found->bytes == from_.marker.bytes) return true;
  if (found.error().code() == Code::kIo) return found.error();
  return RuleError(Code::kAlreadyExists, "R-CMT-01", "the directory holds another marker",
                   found.ok() ? StrCat(", of attempt ", found->marker.attempt.ToHex()) : "",
                   ", expected that of attempt ", attempt().ToHex())
      .AtPath(JoinPath(to_->path(), format::kMarkerName));
}

// Stat of each of these blobs.
Result<std::vector<Result<EntryInfo>>> StatBlobs(const Directory& directory,
                                                 std::span<const metadata::BlobPin> pins) {
  std::vector<std::string> names;
  for (const metadata::BlobPin& pin : pins) names.push_back(format::BlobName(pin.id));
  return directory.StatEach(names);
}

Status Promotion::ChooseOwn() {
  if (!options_.blobs) {
    SEALPOINT_ASSIGN_OR_RETURN(const auto infos, StatBlobs(*from_.directory, pins_));
    for (std::size_t i = 0; i < pins_.size(); ++i) {
      if (infos[i].ok()) {
        own_.push_back(pins_[i]);
      } else if (infos[i].error().code() != Code::kNotFound) {
        return infos[i].error();
      }
    }
    return {};
  }
  std::set<BlobId> chosen(options_.blobs->begin(), options_.blobs->end());
  for (const metadata::BlobPin& pin : pins_) {
    if (chosen.erase(pin.id) > 0) own_.push_back(pin);
  }
  if (chosen.empty()) return {};
  return InvalidArgument("blob ", chosen.begin()->ToHex(), " is not of attempt ",
                         attempt().ToHex());
}

// R-STG-10: a failure recorded by an earlier try must not end this one.
void Promotion::ClearOwnFailure() {
  earlier_ = ReadAbandonedBlob(*to_, attempt());
  if (!earlier_) return;
  const bool is_own = std::any_of(own_.begin(), own_.end(), [&](const metadata::BlobPin& pin) {
    return pin.id == earlier_->blob;
  });
  if (is_own) static_cast<void>(to_->Remove(AbandonedBlobName(attempt())));
}

// R-STG-03. The names of what was copied, or found, are durable afterwards.
Status Promotion::CopyOwn() {
  const int threads = std::max(
      1, std::min(pipeline::ChosenThreads(options_.threads, kPromoteThreadsAuto),
                  static_cast<int>(std::min<std::size_t>(own_.size(), std::size_t{kThreadsMax}))));
  const copy::BlobCopyOptions copy{
      .publish = publish_,
      .piece_size_bytes = copy::PieceSize(options_.memory_budget_bytes, threads),
      .limits = options_.limits,
      .meter = meter_};
  std::atomic<std::uint64_t> copied_count = 0;
  SEALPOINT_ASSIGN_OR_RETURN(const auto infos, StatBlobs(*to_, own_));
  SEALPOINT_RETURN_IF_ERROR(pipeline::ParallelFor(threads, own_.size(), [&](int, std::size_t i) {
    SEALPOINT_ASSIGN_OR_RETURN(const bool is_there, copy::HasBlob(*to_, own_[i], infos[i]));
    if (is_there) return Status();
    if (!from_.directory) return opened_;
    SEALPOINT_ASSIGN_OR_RETURN(const bool is_copied,
                               copy::CopyBlob(*from_.directory, *to_, own_[i], copy));
    copied_count += is_copied ? 1 : 0;
    return Status();
  }));
  report_.blobs_copied = copied_count;
  report_.blobs_found = own_.size() - copied_count;
  report_.bytes_copied = meter_.bytes_done();
  return own_.empty() ? Status() : to_->Sync();
}

// R-DIR-03: a later version knows what they are for. Nothing pins them, so that one that is there
// is left, whatever it holds.
Status Promotion::CopySideFiles() {
  if (!from_.directory) return {};
  SEALPOINT_ASSIGN_OR_RETURN(const auto entries, from_.directory->List());
  for (const EntryInfo& entry : entries) {
    const bool is_side_file = format::ParseName(entry.name).kind == format::NameKind::kReserved;
    if (!is_side_file || entry.kind != EntryKind::kFile || to_->Stat(entry.name).ok()) continue;
    const Status copied = copy::CopyFile(*from_.directory, *to_, entry.name, kIdDigits, publish_);
    if (!copied.ok() && copied.code() != Code::kAlreadyExists) return copied;
  }
  return {};
}

// Until every blob is there, whoever copies it, or the marker is. Other machines may see a new name
// late, so one look is not enough. The process that has the first blob looks at all of them; the
// others wait for its marker, and do the same only if that takes too long: a thousand processes
// that look at a thousand blobs each are a load of its own.
Status Promotion::WaitForOthers() {
  constexpr std::chrono::milliseconds kPatience(10000);
  // By then whoever is to try again what was given up before has begun to.
  constexpr std::chrono::milliseconds kTakeUpTime(3000);
  constexpr std::chrono::milliseconds kFirstWait(20);
  constexpr std::chrono::milliseconds kLongestWait(5000);
  const bool is_first = !own_.empty() && own_.front().id == pins_.front().id;
  const auto begin = Clock::now();
  const auto looks_from = is_first ? begin : begin + kPatience;
  auto wait = kFirstWait;
  for (std::size_t next = 0; next < pins_.size();) {
    const auto now = Clock::now();
    const bool is_late =
        std::chrono::duration_cast<std::chrono::milliseconds>(now - begin) >= options_.deadline;
    if (is_late || now >= looks_from || own_.size() == pins_.size()) {
      SEALPOINT_ASSIGN_OR_RETURN(next, FirstMissing(pins_, next));
      if (next == pins_.size()) return {};
    }
    SEALPOINT_ASSIGN_OR_RETURN(const bool is_committed, IsCommitted());
    if (is_committed) return {};
    SEALPOINT_RETURN_IF_ERROR(CheckNotAbandoned(is_late || now >= begin + kTakeUpTime));
    if (is_late) {
      return RuleError(Code::kTimeout, "R-STG-06", "after ", options_.deadline.count(), " ms blob ",
                       pins_[next].id.ToHex(), " (", next + 1, " of ", pins_.size(),
                       ") was not copied by its process")
          .AtPath(to_->path());
    }
    SEALPOINT_RETURN_IF_ERROR(Sleep(wait));
    wait = std::min(2 * wait, kLongestWait);
  }
  return {};
}

// The number of the first blob from `begin` on that is not there with its length (R-CMT-02). In
// pages: most looks end early.
Result<std::size_t> Promotion::FirstMissing(std::span<const metadata::BlobPin> pins,
                                            std::size_t begin) const {
  constexpr std::size_t kPage = 1000;
  while (begin < pins.size()) {
    const auto page = pins.subspan(begin, std::min(kPage, pins.size() - begin));
    SEALPOINT_ASSIGN_OR_RETURN(const auto infos, StatBlobs(*to_, page));
    for (std::size_t i = 0; i < page.size(); ++i) {
      if (!infos[i].ok() && infos[i].error().code() == Code::kNotFound) return begin + i;
      SEALPOINT_RETURN_IF_ERROR(infos[i].status());
      SEALPOINT_RETURN_IF_ERROR(
          container::CheckBlobSize(to_->path(), page[i], infos[i]->size_bytes));
    }
    begin += page.size();
  }
  return pins.size();
}

// R-STG-10. A failed write is ignored: the other processes then wait until their deadline.
void Promotion::GiveUp(const Status& why) {
  if (why.code() == Code::kCancelled) return;  // the process ends, and the next one continues
  const auto missing = FirstMissing(own_, 0);
  if (!missing.ok() || *missing == own_.size()) return;
  WriteAbandonedBlob(*to_, attempt(), {.blob = own_[*missing].id, .why = why.ToString()});
}

Status Promotion::CheckNotAbandoned(bool is_earlier_meant) const {
  const auto found = ReadAbandonedBlob(*to_, attempt());
  if (!found || (found == earlier_ && !is_earlier_meant)) return {};
  const bool is_of_index =
      std::any_of(pins_.begin(), pins_.end(),
                  [&](const metadata::BlobPin& pin) { return pin.id == found->blob; });
  if (!is_of_index) return {};
  // Another process has copied it since.
  if (to_->Stat(format::BlobName(found->blob)).status().code() != Code::kNotFound) return {};
  return RuleError(Code::kIncomplete, "R-STG-10", "blob ", found->blob.ToHex(),
                   " was abandoned by its process: ", found->why)
      .AtPath(to_->path());
}

// The caller can end it meanwhile.
Status Promotion::Sleep(std::chrono::milliseconds duration) {
  constexpr std::chrono::milliseconds kSlice(50);
  for (const auto end = Clock::now() + duration; Clock::now() < end;) {
    SEALPOINT_RETURN_IF_ERROR(meter_.Add(0));
    std::this_thread::sleep_for(std::min(kSlice, duration));
  }
  return {};
}

// Its content is pinned by the marker: a whole one that is there is this one.
Status Promotion::PlaceIndex() {
  const Bytes& bytes = *from_.index.bytes;
  const std::string name = format::IndexName(attempt());
  const auto info = to_->Stat(name);
  if (info.ok()) return container::ReadIndex(*to_, from_.marker.marker, options_.limits).status();
  if (info.error().code() != Code::kNotFound) return info.error();
  SEALPOINT_ASSIGN_OR_RETURN(
      const auto file,
      copy::WholeFile::Create(*to_, publish_, name, format::kIndexSuffix, IoMode::kBuffered));
  SEALPOINT_RETURN_IF_ERROR(file->file().WriteAt(0, bytes));
  const Status placed = file->Finish();
  if (placed.ok()) return placed;
  const auto there = container::ReadIndex(*to_, from_.marker.marker, options_.limits);
  return there.ok() ? Status() : placed;
}

// R-STG-04. The directory is synced after all blobs were seen: their names, whoever made them, and
// that of the index are durable before the marker has its own.
Status Promotion::Publish() {
  SEALPOINT_RETURN_IF_ERROR(PlaceIndex());
  SEALPOINT_ASSIGN_OR_RETURN(const Id128 id, Id128::Random());
  if (base_) SEALPOINT_RETURN_IF_ERROR(container::PinBase(*base_->directory, to_->path()));
  // Never a void marker: a later promotion publishes these same bytes.
  SEALPOINT_RETURN_IF_ERROR(storage::WriteAndPublish(
      *to_, publish_, format::UnpublishedMarkerName(id), format::kMarkerName, from_.marker.bytes));
  const Status stays = base_ ? container::CheckBaseStays(*base_->directory) : Status();
  return stays.ok() ? stays : storage::WithUnknownOutcome(stays);
}

void Promotion::RemoveLeftovers() {
  copy::RemoveLeftovers(*to_, attempt(), from_.index.metadata, AbandonedBlobName(attempt()));
}

Result<PromoteReport> Promotion::Run() {
  const format::Marker& marker = from_.marker.marker;
  report_.attempt = marker.attempt;
  report_.sequence = marker.sequence;
  report_.step = marker.step;
  SEALPOINT_ASSIGN_OR_RETURN(report_.was_committed, IsCommitted());
  if (report_.was_committed) {
    // Who published may not have synced yet, or may have died.
    SEALPOINT_RETURN_IF_ERROR(container::CheckFiles(*to_, from_.index.metadata));
    SEALPOINT_RETURN_IF_ERROR(to_->Sync());
    RemoveLeftovers();
    return report_;
  }
  SEALPOINT_ASSIGN_OR_RETURN(publish_, copy::ProbePublishMethod(*to_));
  SEALPOINT_RETURN_IF_ERROR(ChooseOwn());
  ClearOwnFailure();
  if (Status status = TakeSteps(); !status.ok()) {
    GiveUp(status);
    return status;
  }
  RemoveLeftovers();
  return report_;
}

Status Promotion::TakeSteps() {
  SEALPOINT_RETURN_IF_ERROR(CopyOwn());
  SEALPOINT_RETURN_IF_ERROR(CopySideFiles());
  SEALPOINT_RETURN_IF_ERROR(WaitForOthers());
  return Publish();
}

Status CheckOptions(const PromoteOptions& options) {
  SEALPOINT_RETURN_IF_ERROR(pipeline::CheckThreads("threads", options.threads));
  const int threads = pipeline::ChosenThreads(options.threads, kPromoteThreadsAuto);
  const std::uint64_t least = static_cast<std::uint64_t>(threads) * kDirectIoAlignmentBytes;
  if (options.memory_budget_bytes < least) {
    return InvalidArgument("memory_budget_bytes is ", options.memory_budget_bytes,
                           ", expected at least ", least, " with ", threads, " threads");
  }
  return CheckDeadline("deadline", options.deadline);
}

// The checkpoint as somebody else read it, whose directory the caller opens.
Result<container::CommittedFiles> FilesOf(const std::string& path, const Limits& limits,
                                          container::GivenFiles given) {
  SEALPOINT_ASSIGN_OR_RETURN(container::MarkerFile marker,
                             container::DecodeMarkerFile(path, std::move(given.marker)));
  SEALPOINT_RETURN_IF_ERROR(container::CheckCommitted(path, marker.marker));
  SEALPOINT_ASSIGN_OR_RETURN(
      container::IndexFile index,
      container::DecodeIndexFile(path, marker.marker, std::move(given.index), limits));
  return container::CommittedFiles{.marker = std::move(marker), .index = std::move(index)};
}

}  // namespace

Result<PromoteReport> PromoteGiven(const CopyPaths& paths, const PromoteOptions& options,
                                   std::optional<container::GivenFiles> given,
                                   pipeline::ByteMeter::Callback on_bytes) {
  const auto& [from, to] = paths;
  SEALPOINT_RETURN_IF_ERROR(CheckOptions(options));
  const auto from_storage = options.from_storage ? options.from_storage : DefaultStorage();
  const auto to_storage = options.to_storage ? options.to_storage : DefaultStorage();
  SEALPOINT_ASSIGN_OR_RETURN(
      container::CommittedFiles files,
      given ? FilesOf(from, options.limits, *std::move(given))
            : container::OpenCommitted(*from_storage, from, options.limits, false));
  // Another process may have dropped what was given already, once all was promoted. Whoever waits
  // for a blob that cannot be had is to hear why (R-STG-10), so that this is no error yet.
  Status not_opened;
  if (files.directory == nullptr) {
    auto directory = from_storage->OpenDirectory(from);
    not_opened = directory.status();
    if (directory.ok()) files.directory = std::move(directory).value();
  }
  auto base = container::OpenBase(*to_storage, to, files.index.metadata, options.limits, true);
  if (!base.ok()) {
    return std::move(base).error().Prefixed(
        "a copy of a delta needs its base beside it: copy the base there first, or store all data "
        "in the copy (CopyOptions::flatten, ckpt flatten)");
  }
  SEALPOINT_RETURN_IF_ERROR(to_storage->CreateDirectories(to));
  SEALPOINT_ASSIGN_OR_RETURN(auto opened, to_storage->OpenDirectory(to));
  return Promotion(options, std::move(files), *std::move(base), std::move(not_opened),
                   std::move(opened), std::move(on_bytes))
      .Run();
}

}  // namespace internal::promote

Result<PromoteReport> Promote(const CopyPaths& paths, const PromoteOptions& options) {
  const auto from_storage = options.from_storage ? options.from_storage : DefaultStorage();
  const auto to_storage = options.to_storage ? options.to_storage : DefaultStorage();
  SEALPOINT_RETURN_IF_ERROR(
      internal::storage::CheckApart(*from_storage, paths.from, *to_storage, paths.to));
  return internal::promote::PromoteGiven(
      paths, options, {}, internal::pipeline::ReportTo(options.on_progress, Phase::kCopy));
}

}  // namespace sealpoint
