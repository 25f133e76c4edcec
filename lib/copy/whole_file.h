// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COPY_WHOLE_FILE_H_
#define SEALPOINT_LIB_COPY_WHOLE_FILE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::copy {

// How a file of the directory gets its name. Probes with a file of a random name, which is removed.
// Errors: Unsupported (no checkpoint can be committed there), those of Directory::Probe.
Result<PublishMethod> ProbePublishMethod(Directory& directory);

// A file that appears under its name only when it is complete and durable (R-STG-03), so that other
// processes need to check only its length. A file system stores it under a temporary name of the
// same form with a random id; clean-up treats such files as leftovers of a dead writer. An object
// store shows no incomplete objects anyway. The destructor removes the file unless it got its name.
class WholeFile {
 public:
  // `suffix`: the name's suffix, such as kBlobSuffix. Borrows the directory.
  static Result<std::unique_ptr<WholeFile>> Create(Directory& directory, PublishMethod method,
                                                   std::string name, std::string_view suffix,
                                                   IoMode mode);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  WritableFile& file() { return *file_; }
  // Syncs and closes the file and gives it its name; durable after the next sync of the directory.
  // Errors: AlreadyExists (nothing was replaced); after Io the file may have its name.
  Status Finish();

 private:
  WholeFile(Directory& directory, PublishMethod method, std::string name)
      : directory_(directory), method_(method), name_(std::move(name)) {}

  Directory& directory_;
  const PublishMethod method_;
  const std::string name_;
  std::string written_as_;
  std::unique_ptr<WritableFile> file_;
};

// Copies a file of any content as a whole file of the same name. Its suffix is what follows the
// first `stem_size` characters. Not durable before the next sync of `to`. Errors: those of both
// storages, among them AlreadyExists (nothing was replaced).
Status CopyFile(const Directory& from, Directory& to, const std::string& name,
                std::size_t stem_size, PublishMethod method);

}  // namespace sealpoint::internal::copy

#endif  // SEALPOINT_LIB_COPY_WHOLE_FILE_H_
