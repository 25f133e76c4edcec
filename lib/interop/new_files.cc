// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/new_files.h"

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/durable.h"
#include "sealpoint/id.h"

namespace sealpoint::internal {

Result<std::unique_ptr<NewFiles>> NewFiles::Create(Directory& directory) {
  SEALPOINT_ASSIGN_OR_RETURN(const Id128 id, Id128::Random());
  const std::string suffix = ".partial-" + id.ToHex().substr(0, 8);
  SEALPOINT_ASSIGN_OR_RETURN(const Capabilities capabilities, directory.Probe("probe" + suffix));
  SEALPOINT_RETURN_IF_ERROR(CheckCapabilities(directory, capabilities));
  if (capabilities.publish == PublishMethod::kPutIfAbsent) {
    return MakeError(Code::kUnsupported,
                     "files of other formats cannot be exported to an object "
                     "store, expected a directory of a file system, from which to copy them")
        .AtPath(directory.path());
  }
  return std::unique_ptr<NewFiles>(new NewFiles(directory, capabilities.publish, suffix));
}

Result<std::unique_ptr<WritableFile>> NewFiles::Begin(std::string_view name) {
  SEALPOINT_ASSIGN_OR_RETURN(auto file,
                             directory_.CreateExclusive(StrCat(name, suffix_), IoMode::kBuffered));
  names_.emplace_back(name);
  return file;
}

// A crash in between leaves some of the names: the files that have them are whole, and the last of
// a model, its index, is not there.
Status NewFiles::Publish() {
  SEALPOINT_RETURN_IF_ERROR(directory_.Sync());
  for (const std::string& name : names_) {
    SEALPOINT_RETURN_IF_ERROR(directory_.PublishExclusive(name + suffix_, name, method_));
    ++published_count_;
  }
  SEALPOINT_RETURN_IF_ERROR(directory_.Sync());
  is_done_ = true;
  return {};
}

// Removing is all that can be tried, and a name that is left does no harm.
NewFiles::~NewFiles() {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (!is_done_ && i < published_count_) static_cast<void>(directory_.Remove(names_[i]));
    static_cast<void>(directory_.Remove(names_[i] + suffix_));
  }
}

}  // namespace sealpoint::internal
