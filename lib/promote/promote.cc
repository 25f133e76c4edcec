// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/promote.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/pipeline/thread_pool.h"
#include "lib/promote/blob_copy.h"
#include "lib/promote/promote_files.h"
#include "lib/promote/whole_file.h"
#include "lib/storage/durable.h"

namespace sealpoint {
namespace internal {
namespace {

using Clock = std::chrono::steady_clock;

// Tells the caller how far it is, who may end it.
class Meter {
 public:
  explicit Meter(const PromoteOptions& options) : options_(options) {}

  Status Add(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes;
    if (!options_.on_progress || is_ended_) return ended();
    try {
      is_ended_ = !options_.on_progress(bytes_);
    } catch (...) {
      is_ended_ = true;
    }
    return ended();
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  Status ended() const {
    return is_ended_ ? MakeError(Code::kCancelled, "the promotion was given up by its caller")
                     : Status();
  }

  const PromoteOptions& options_;
  std::mutex mutex_;
  std::uint64_t bytes_ = 0;
  bool is_ended_ = false;
};

// One promotion of one process.
class Promotion {
 public:
  Promotion(const PromoteOptions& options, std::string from_path, CommittedFiles from,
            std::unique_ptr<Directory> to)
      : options_(options),
        from_path_(std::move(from_path)),
        from_(std::move(from)),
        to_(std::move(to)),
        meter_(options) {}

  Result<PromoteReport> Run();

 private:
  const Metadata& index() const { return from_.index.metadata; }
  Result<bool> IsCommitted() const;
  Status ChooseOwn();
  Status CopyOwn();
  Status WaitForOthers();
  Result<std::size_t> FirstMissing(std::size_t begin) const;
  Status Sleep(std::chrono::milliseconds duration);
  Status PlaceIndex();
  Status Publish();
  void RemoveLeftovers();

  const PromoteOptions& options_;
  const std::string from_path_;
  const CommittedFiles from_;  // without a directory if all is given and there is none any more
  const std::unique_ptr<Directory> to_;
  PublishMethod publish_ = PublishMethod::kNone;
  std::vector<BlobPin> own_;
  Meter meter_;
  PromoteReport report_;
};

// The marker that is there, if it is this one. Errors: AlreadyExists (R-CMT-01: another).
Result<bool> Promotion::IsCommitted() const {
  const auto info = to_->Stat(kMarkerName);
  if (!info.ok() && info.error().code() == Code::kNotFound) return false;
  SEALPOINT_RETURN_IF_ERROR(info.status());
  const auto found = ReadMarker(*to_);
  if (found.ok() && found->bytes == from_.marker.bytes) return true;
  return RuleError(Code::kAlreadyExists, "R-CMT-01", "the directory holds another marker",
                   found.ok() ? StrCat(", of attempt ", found->marker.attempt.ToHex()) : "",
                   ", expected that of attempt ", from_.marker.marker.attempt.ToHex())
      .AtPath(JoinPath(to_->path(), kMarkerName));
}

Status Promotion::ChooseOwn() {
  std::set<BlobId> chosen;
  if (options_.blobs) chosen.insert(options_.blobs->begin(), options_.blobs->end());
  for (std::size_t i = 0; i < index().blob_count(); ++i) {
    const BlobPin pin = index().blob(i);
    if (options_.blobs) {
      if (chosen.erase(pin.id) > 0) own_.push_back(pin);
      continue;
    }
    const auto info = from_.directory->Stat(BlobName(pin.id));
    if (info.ok()) {
      own_.push_back(pin);
    } else if (info.error().code() != Code::kNotFound) {
      return info.error();
    }
  }
  if (chosen.empty()) return {};
  return InvalidArgument("blob ", chosen.begin()->ToHex(), " is not of attempt ",
                         from_.marker.marker.attempt.ToHex());
}

// R-STG-03. The names of what was copied, or found, are durable afterwards.
Status Promotion::CopyOwn() {
  const int threads = std::max(
      1, std::min(options_.threads,
                  static_cast<int>(std::min<std::size_t>(own_.size(), std::size_t{kThreadsMax}))));
  const std::uint64_t share = options_.memory_budget_bytes / static_cast<std::uint64_t>(threads);
  const BlobCopyOptions copy{
      .publish = publish_,
      .piece_size_bytes = share - share % kDirectIoAlignmentBytes,
      .limits = options_.limits,
      .on_copied = [this](std::uint64_t bytes) { return meter_.Add(bytes); }};
  std::atomic<std::uint64_t> copied_count = 0;
  SEALPOINT_RETURN_IF_ERROR(ParallelFor(threads, own_.size(), [&](int, std::size_t i) {
    SEALPOINT_ASSIGN_OR_RETURN(const bool is_there, HasBlob(*to_, own_[i]));
    if (is_there) return Status();
    if (!from_.directory) {
      return MakeError(Code::kNotFound, "there is no such directory, expected one with blob ",
                       own_[i].id.ToHex())
          .AtPath(from_path_);
    }
    SEALPOINT_ASSIGN_OR_RETURN(const bool is_copied,
                               CopyBlob(*from_.directory, *to_, own_[i], copy));
    copied_count += is_copied ? 1 : 0;
    return Status();
  }));
  report_.blobs_copied = copied_count;
  report_.blobs_found = own_.size() - copied_count;
  report_.bytes_copied = meter_.bytes();
  return own_.empty() ? Status() : to_->Sync();
}

// Until every blob is there, whoever copies it, or the marker is. Other machines may see a new name
// late, so one look is not enough. The process that has the first blob looks at all of them; the
// others wait for its marker, and do the same only if that takes too long: a thousand processes
// that look at a thousand blobs each are a load of its own.
Status Promotion::WaitForOthers() {
  constexpr std::chrono::milliseconds kPatience(10000);
  constexpr std::chrono::milliseconds kFirstWait(20);
  constexpr std::chrono::milliseconds kLongestWait(5000);
  const bool is_first = !own_.empty() && own_.front().id == index().blob(0).id;
  const auto begin = Clock::now();
  const auto looks_from = is_first ? begin : begin + kPatience;
  auto wait = kFirstWait;
  for (std::size_t next = 0; next < index().blob_count();) {
    const auto now = Clock::now();
    const bool is_late = options_.deadline > kForever && now >= begin + options_.deadline;
    if (is_late || now >= looks_from || own_.size() == index().blob_count()) {
      SEALPOINT_ASSIGN_OR_RETURN(next, FirstMissing(next));
      if (next == index().blob_count()) return {};
    }
    if (is_late) {
      return RuleError(Code::kTimeout, "R-STG-06", "after ", options_.deadline.count(), " ms blob ",
                       index().blob(next).id.ToHex(), " (", next + 1, " of ", index().blob_count(),
                       ") was not copied by the process that has it")
          .AtPath(to_->path());
    }
    SEALPOINT_ASSIGN_OR_RETURN(const bool is_committed, IsCommitted());
    if (is_committed) return {};
    SEALPOINT_RETURN_IF_ERROR(Sleep(wait));
    wait = std::min(2 * wait, kLongestWait);
  }
  return {};
}

// The number of the first blob from `begin` on that is not there with its length (R-CMT-02).
Result<std::size_t> Promotion::FirstMissing(std::size_t begin) const {
  for (std::size_t i = begin; i < index().blob_count(); ++i) {
    const BlobPin pin = index().blob(i);
    const auto info = to_->Stat(BlobName(pin.id));
    if (!info.ok() && info.error().code() == Code::kNotFound) return i;
    SEALPOINT_RETURN_IF_ERROR(info.status());
    SEALPOINT_RETURN_IF_ERROR(CheckBlobSize(to_->path(), pin, info->size_bytes));
  }
  return index().blob_count();
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
  const std::string name = IndexName(from_.marker.marker.attempt);
  const auto info = to_->Stat(name);
  if (info.ok()) return ReadIndex(*to_, from_.marker.marker, options_.limits).status();
  if (info.error().code() != Code::kNotFound) return info.error();
  SEALPOINT_ASSIGN_OR_RETURN(
      const auto file, WholeFile::Create(*to_, publish_, name, kIndexSuffix, IoMode::kBuffered));
  SEALPOINT_RETURN_IF_ERROR(file->file().WriteAt(0, bytes));
  const Status placed = file->Finish();
  if (placed.ok()) return placed;
  const auto there = ReadIndex(*to_, from_.marker.marker, options_.limits);
  return there.ok() ? Status() : placed;
}

// R-STG-04. The directory is synced after all blobs were seen: their names, whoever made them, and
// that of the index are durable before the marker has its own.
Status Promotion::Publish() {
  SEALPOINT_RETURN_IF_ERROR(PlaceIndex());
  SEALPOINT_ASSIGN_OR_RETURN(const Id128 id, Id128::Random());
  // Never a void marker: a later promotion publishes these same bytes.
  return WriteAndPublish(*to_, publish_, UnpublishedMarkerName(id), kMarkerName,
                         from_.marker.bytes);
}

// What died before it got its name. Nothing can be committed here any more but what is, so that
// none of it will be missed; failing to remove it is no error.
void Promotion::RemoveLeftovers() {
  std::set<std::string> pinned{IndexName(from_.marker.marker.attempt)};
  for (std::size_t i = 0; i < index().blob_count(); ++i) {
    pinned.insert(BlobName(index().blob(i).id));
  }
  const auto entries = to_->List();
  if (!entries.ok()) return;
  for (const EntryInfo& entry : *entries) {
    const NameKind kind = ParseName(entry.name).kind;
    const bool is_leftover =
        kind == NameKind::kBlob || kind == NameKind::kIndex || kind == NameKind::kUnpublishedMarker;
    if (is_leftover && entry.kind == EntryKind::kFile && !pinned.contains(entry.name)) {
      static_cast<void>(to_->Remove(entry.name));
    }
  }
}

Result<PromoteReport> Promotion::Run() {
  const Marker& marker = from_.marker.marker;
  report_.attempt = marker.attempt;
  report_.sequence = marker.sequence;
  report_.step = marker.step;
  SEALPOINT_ASSIGN_OR_RETURN(report_.was_committed, IsCommitted());
  if (report_.was_committed) {
    // Who published may not have synced yet, or may have died.
    SEALPOINT_RETURN_IF_ERROR(CheckFiles(*to_, index()));
    SEALPOINT_RETURN_IF_ERROR(to_->Sync());
    RemoveLeftovers();
    return report_;
  }
  SEALPOINT_ASSIGN_OR_RETURN(const Id128 probe, Id128::Random());
  SEALPOINT_ASSIGN_OR_RETURN(const Capabilities capabilities, to_->Probe(ProbeName(probe)));
  SEALPOINT_RETURN_IF_ERROR(CheckCapabilities(*to_, capabilities));
  publish_ = capabilities.publish;
  SEALPOINT_RETURN_IF_ERROR(ChooseOwn());
  SEALPOINT_RETURN_IF_ERROR(CopyOwn());
  SEALPOINT_RETURN_IF_ERROR(WaitForOthers());
  SEALPOINT_RETURN_IF_ERROR(Publish());
  RemoveLeftovers();
  return report_;
}

Status CheckOptions(const PromoteOptions& options) {
  SEALPOINT_RETURN_IF_ERROR(CheckThreads("threads", options.threads));
  const std::uint64_t least = static_cast<std::uint64_t>(options.threads) * kDirectIoAlignmentBytes;
  if (options.memory_budget_bytes < least) {
    return InvalidArgument("memory_budget_bytes is ", options.memory_budget_bytes,
                           ", expected at least ", least, " with ", options.threads, " threads");
  }
  if (options.deadline.count() >= 0) return {};
  return InvalidArgument("deadline is ", options.deadline.count(), " ms, expected at least 0");
}

// The checkpoint as somebody else read it. Another process may have dropped the directory already,
// once all was promoted.
Result<CommittedFiles> FilesOf(const Storage& storage, const std::string& path,
                               const Limits& limits, GivenFiles given) {
  SEALPOINT_ASSIGN_OR_RETURN(MarkerFile marker, DecodeMarkerFile(path, std::move(given.marker)));
  SEALPOINT_RETURN_IF_ERROR(CheckCommitted(path, marker.marker));
  SEALPOINT_ASSIGN_OR_RETURN(IndexFile index,
                             DecodeIndexFile(path, marker.marker, std::move(given.index), limits));
  auto opened = storage.OpenDirectory(path);
  if (!opened.ok() && opened.error().code() != Code::kNotFound) return std::move(opened).error();
  return CommittedFiles{.directory = opened.ok() ? std::move(opened).value() : nullptr,
                        .marker = std::move(marker),
                        .index = std::move(index)};
}

}  // namespace

Result<PromoteReport> PromoteGiven(const std::string& from, const std::string& to,
                                   const PromoteOptions& options, std::optional<GivenFiles> given) {
  SEALPOINT_RETURN_IF_ERROR(CheckOptions(options));
  const auto from_storage = options.from_storage ? options.from_storage : DefaultStorage();
  const auto to_storage = options.to_storage ? options.to_storage : DefaultStorage();
  SEALPOINT_ASSIGN_OR_RETURN(CommittedFiles files,
                             given ? FilesOf(*from_storage, from, options.limits, *std::move(given))
                                   : OpenCommitted(*from_storage, from, options.limits, false));
  SEALPOINT_RETURN_IF_ERROR(to_storage->CreateDirectories(to));
  SEALPOINT_ASSIGN_OR_RETURN(auto opened, to_storage->OpenDirectory(to));
  return Promotion(options, from, std::move(files), std::move(opened)).Run();
}

}  // namespace internal

Result<PromoteReport> Promote(const std::string& from, const std::string& to,
                              const PromoteOptions& options) {
  return internal::PromoteGiven(from, to, options, {});
}

}  // namespace sealpoint
