// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PROMOTE_WHOLE_FILE_H_
#define SEALPOINT_LIB_PROMOTE_WHOLE_FILE_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::promote {

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

}  // namespace sealpoint::internal::promote

#endif  // SEALPOINT_LIB_PROMOTE_WHOLE_FILE_H_
