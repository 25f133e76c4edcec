// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/durable.h"

#include <algorithm>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::storage {
namespace {

Status UnknownOutcome(const Directory& directory, std::string_view name, const Status& cause) {
  return WithUnknownOutcome(
      MakeError(Code::kIo, "outcome of the publication is unknown: ", cause.message())
          .AtPath(JoinPath(directory.path(), name)));
}

// The error of a put that is settled: what its client could not say of one request is known now.
Status KnownToHaveFailed(const Directory& directory, std::string_view name, const Status& put) {
  return MakeError(put.code(), put.message()).AtPath(JoinPath(directory.path(), name));
}

// Success if the file has exactly this content; AlreadyExists if it has another; NotFound if it is
// not there. This tells our publication from that of another attempt, since attempt ids are random
// and so no two markers are equal.
Status ReadBack(const Directory& directory, std::string_view name, ByteSpan content) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto file, directory.OpenForRead(name, IoMode::kBuffered));
  if (file->size_bytes() == content.size()) {
    Bytes found(content.size());
    SEALPOINT_RETURN_IF_ERROR(file->ReadAt(0, found));
    if (std::equal(found.begin(), found.end(), content.begin())) return {};
  }
  return RuleError(Code::kAlreadyExists, "R-CMT-01", "another marker was published first")
      .AtPath(JoinPath(directory.path(), name));
}

}  // namespace

Status WithUnknownOutcome(Status error) {
  return std::move(error).AtRule("R-CMT-07").WithUnknownOutcome();
}

Status CheckCapabilities(const Directory& directory, const Capabilities& capabilities) {
  if (capabilities.publish == PublishMethod::kNone) {
    return RuleError(Code::kUnsupported, "R-CMT-04",
                     "file system offers no exclusive publication (link or renameat2); of a bucket "
                     "that is mounted as one (FUSE), give the s3:// path instead")
        .AtPath(directory.path());
  }
  if (!capabilities.directory_sync) {
    return RuleError(Code::kUnsupported, "R-CMT-05", "file system cannot sync a directory")
        .AtPath(directory.path());
  }
  return {};
}

// A crash before the sync may leave the name with any content, zeros and garbage included; a crash
// after it may still leave no name at all, until the caller syncs the directory. So nothing may
// refer to the file before both syncs: the marker is written after the index and published after
// both.
Status WriteFileDurably(Directory& directory, std::string_view name, ByteSpan content) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto file,
                             directory.CreateExclusive(name, {.is_name_random = true}));
  SEALPOINT_RETURN_IF_ERROR(file->WriteAt(0, content));
  SEALPOINT_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

// Precondition, which only the caller can keep: everything that the marker pins is durable, and so
// is the name `from` (a directory sync is between its creation and this call). Else a crash may
// leave `to` without the files that it pins.
//
// What a crash leaves: before PublishExclusive takes effect, `from` alone: uncommitted. After it
// and before the directory sync, `from` alone or also `to`: both are correct, since success has
// not been reported yet. After the sync, `to` for good. A crash before Remove leaves `from` as
// well, which readers ignore and clean-up removes.
//
// An error of the publication does not say that it failed. On NFS the request may have taken effect
// although the answer was lost, and may even take effect later. So the marker is read back; if it
// is not there, `from` is removed, so that a request still under way finds nothing to publish, and
// only then is the second look conclusive. Removing `from` before the first look would be wrong as
// well: after a success it would take nothing back.
Status PublishDurably(Directory& directory, PublishMethod method, std::string_view from,
                      std::string_view to, ByteSpan content) {
  const Status published = directory.PublishExclusive(from, to, method);
  if (!published.ok()) {
    Status found = ReadBack(directory, to, content);
    if (found.code() == Code::kNotFound) {
      const Status removed = directory.Remove(from);
      if (!removed.ok() && removed.code() != Code::kNotFound) {
        return UnknownOutcome(directory, to, published);
      }
      found = ReadBack(directory, to, content);
    }
    if (found.code() == Code::kNotFound) return published;
    if (found.code() == Code::kAlreadyExists) return found;
    if (!found.ok()) return UnknownOutcome(directory, to, published);
  }
  // The marker is visible but may not survive a crash, and cannot be taken back: another process
  // may have seen it. Hence an unknown outcome, after which nothing may be deleted.
  const Status synced = directory.Sync();
  if (!synced.ok()) return UnknownOutcome(directory, to, synced);
  // From here on the second name has no use, and readers ignore it: failing to remove it is no
  // error of a save that is committed.
  static_cast<void>(directory.Remove(from));
  return {};
}

// The marker is there whole or not at all, and durable as soon as it is there: nothing has to be
// synced, and there is no second name. What is left is that an answer says too little: it may be
// lost behind the effect, and the request itself may be under way still, to take effect after the
// marker was found missing. A request cannot be taken back, but the name can be taken: whoever's
// put is first has it for good, so that after `void_content` was put, or was found beaten, nothing
// can change any more.
Status PublishByPut(Directory& directory, std::string_view name, ByteSpan content,
                    ByteSpan void_content) {
  // The same bytes again are the same publication, whichever of the puts the store takes: an answer
  // that was lost, or a moment's trouble, does not cost a checkpoint.
  constexpr int kPutsMax = 3;
  Status put;
  Status found(Code::kNotFound, "");
  for (int i = 0; i < kPutsMax && found.code() == Code::kNotFound; ++i) {
    put = directory.PutIfAbsent(name, content);
    if (put.ok()) return {};
    found = ReadBack(directory, name, content);
  }
  if (found.code() == Code::kNotFound) {
    const bool is_void_wanted =
        std::equal(content.begin(), content.end(), void_content.begin(), void_content.end());
    if (directory.PutIfAbsent(name, void_content).ok()) {
      return is_void_wanted ? Status() : KnownToHaveFailed(directory, name, put);
    }
    found = ReadBack(directory, name, content);
    // What is there now may be the void marker of this very call, whose answer was lost.
    if (found.code() == Code::kAlreadyExists && ReadBack(directory, name, void_content).ok()) {
      return KnownToHaveFailed(directory, name, put);
    }
  }
  if (found.ok() || found.code() == Code::kAlreadyExists) return found;
  return UnknownOutcome(directory, name, put);
}

Status WriteAndPublish(Directory& directory, PublishMethod method, std::string_view unpublished,
                       std::string_view to, ByteSpan content) {
  if (method == PublishMethod::kPutIfAbsent) return PublishByPut(directory, to, content, content);
  Status status = WriteFileDurably(directory, unpublished, content);
  if (status.code() == Code::kAlreadyExists) return status;
  if (status.ok()) status = directory.Sync();
  if (status.ok()) status = PublishDurably(directory, method, unpublished, to, content);
  if (!status.ok() && !status.has_unknown_outcome()) {
    static_cast<void>(directory.Remove(unpublished));
  }
  return status;
}

}  // namespace sealpoint::internal::storage
