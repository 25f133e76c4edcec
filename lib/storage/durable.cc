// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/durable.h"

#include <algorithm>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

Status UnknownOutcome(const Directory& directory, std::string_view name, const Status& cause) {
  return WithUnknownOutcome(
      MakeError(Code::kIo, "it is not known whether the publication took effect: ", cause.message())
          .AtPath(JoinPath(directory.path(), name)));
}

// Success where the file has exactly this content; AlreadyExists for any other; NotFound.
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
                     "the file system offers no exclusive publication (link, renameat2)")
        .AtPath(directory.path());
  }
  if (!capabilities.directory_sync) {
    return RuleError(Code::kUnsupported, "R-CMT-05", "the file system cannot sync a directory")
        .AtPath(directory.path());
  }
  return {};
}

Status WriteFileDurably(Directory& directory, std::string_view name, ByteSpan content) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto file, directory.CreateExclusive(name, IoMode::kBuffered));
  SEALPOINT_RETURN_IF_ERROR(file->WriteAt(0, content));
  SEALPOINT_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

Status PublishDurably(Directory& directory, PublishMethod method, std::string_view from,
                      std::string_view to, ByteSpan content) {
  const Status published = directory.PublishExclusive(from, to, method);
  if (!published.ok()) {
    Status found = ReadBack(directory, to, content);
    if (found.code() == Code::kNotFound) {
      // A request that is still under way in the network must find nothing to publish.
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
  const Status synced = directory.Sync();
  if (!synced.ok()) return UnknownOutcome(directory, to, synced);
  // The second name is litter from here on; a reader ignores it.
  static_cast<void>(directory.Remove(from));
  return {};
}

}  // namespace sealpoint::internal
