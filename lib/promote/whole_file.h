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

// A file that appears under its name when it is whole and durable (R-STG-03), so that its length
// says all to other processes. In a file system it is written under another name of the same form,
// with a random id, which clean-up takes for what a dead writer left; in an object store nothing
// appears before it is whole anyway. The destructor removes what got no name.
class WholeFile {
 public:
  // `suffix`: kBlobSuffix and the like, those of the name. Borrows the directory.
  static Result<std::unique_ptr<WholeFile>> Create(Directory& directory, PublishMethod method,
                                                   std::string name, std::string_view suffix,
                                                   IoMode mode);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  WritableFile& file() { return *file_; }
  // Syncs, closes and gives it its name; durable after the next sync of the directory. Errors:
  // AlreadyExists (nothing was replaced); after Io it may have its name all the same.
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
