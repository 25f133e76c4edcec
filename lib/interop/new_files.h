// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_NEW_FILES_H_
#define SEALPOINT_LIB_INTEROP_NEW_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal {

// New files of one directory that get their names when all of them are durable. The destructor
// removes those that it made, unless Publish succeeded.
class NewFiles {
 public:
  // Borrows the directory. Errors: Unsupported (no exclusive publication here), Io.
  static Result<std::unique_ptr<NewFiles>> Create(Directory& directory);
  ~NewFiles();
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  // Begins a file, under another name; the one before has to be closed.
  Result<std::unique_ptr<WritableFile>> Begin(std::string_view name);
  // Gives all their names, in the order in which they were begun, and makes these durable.
  // Precondition: all are synced and closed. Errors: AlreadyExists (one of the names), Io.
  Status Publish();

 private:
  NewFiles(Directory& directory, PublishMethod method, std::string suffix)
      : directory_(directory), method_(method), suffix_(std::move(suffix)) {}

  Directory& directory_;
  const PublishMethod method_;
  const std::string suffix_;  // of the other names
  std::vector<std::string> names_;
  std::size_t published_count_ = 0;
  bool is_done_ = false;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_INTEROP_NEW_FILES_H_
