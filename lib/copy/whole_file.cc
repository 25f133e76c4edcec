// SPDX-License-Identifier: Apache-2.0
#include "lib/copy/whole_file.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/storage/durable.h"
#include "sealpoint/id.h"

namespace sealpoint::internal::copy {

Result<PublishMethod> ProbePublishMethod(Directory& directory) {
  SEALPOINT_ASSIGN_OR_RETURN(const Id128 probe, Id128::Random());
  SEALPOINT_ASSIGN_OR_RETURN(const Capabilities capabilities,
                             directory.Probe(format::ProbeName(probe)));
  SEALPOINT_RETURN_IF_ERROR(storage::CheckCapabilities(directory, capabilities));
  return capabilities.publish;
}

Result<std::unique_ptr<WholeFile>> WholeFile::Create(Directory& directory, PublishMethod method,
                                                     std::string name, std::string_view suffix,
                                                     IoMode mode) {
  std::unique_ptr<WholeFile> made(new WholeFile(directory, method, std::move(name)));
  const bool needs_other_name =
      method == PublishMethod::kLink || method == PublishMethod::kRenameNoReplace;
  std::string written_as = made->name_;
  if (needs_other_name) {
    SEALPOINT_ASSIGN_OR_RETURN(const Id128 id, Id128::Random());
    written_as = StrCat(id.ToHex(), suffix);
  }
  SEALPOINT_ASSIGN_OR_RETURN(
      made->file_, directory.CreateExclusive(written_as, {.mode = mode, .is_name_random = true}));
  made->written_as_ = std::move(written_as);
  return made;
}

// A file that was created under its own name may have it by now, for others to see.
WholeFile::~WholeFile() {
  file_.reset();
  const bool has_other_name = !written_as_.empty() && written_as_ != name_;
  if (has_other_name) static_cast<void>(directory_.Remove(written_as_));
}

Status WholeFile::Finish() {
  SEALPOINT_RETURN_IF_ERROR(file_->Sync());
  SEALPOINT_RETURN_IF_ERROR(file_->Close());
  if (written_as_ == name_) return {};
  return directory_.PublishExclusive(written_as_, name_, method_);
}

Status CopyFile(const Directory& from, Directory& to, const std::string& name,
                std::size_t stem_size, PublishMethod method) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto source, from.OpenForRead(name, IoMode::kBuffered));
  const std::string_view suffix = std::string_view(name).substr(stem_size);
  SEALPOINT_ASSIGN_OR_RETURN(const auto copy,
                             WholeFile::Create(to, method, name, suffix, IoMode::kBuffered));
  Bytes piece(kDirectIoAlignmentBytes);
  for (std::uint64_t at = 0; at < source->size_bytes(); at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(piece.size(), source->size_bytes() - at));
    SEALPOINT_RETURN_IF_ERROR(source->ReadAt(at, piece));
    SEALPOINT_RETURN_IF_ERROR(copy->file().WriteAt(at, piece));
  }
  return copy->Finish();
}

}  // namespace sealpoint::internal::copy
