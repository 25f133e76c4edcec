// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_FILES_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/interop/foreign/budget.h"
#include "sealpoint/interop.h"
#include "sealpoint/storage.h"

// Files of other formats, read as they are asked for. Everything throws Failure.

namespace sealpoint::internal::foreign {

class SourceFile {
 public:
  SourceFile(std::string path, std::size_t number, std::unique_ptr<ReadableFile> file,
             std::shared_ptr<Budget> budget)
      : path_(std::move(path)),
        number_(number),
        file_(std::move(file)),
        budget_(std::move(budget)) {}

  const std::string& path() const { return path_; }
  std::size_t number() const { return number_; }  // of ForeignCheckpoint::paths
  std::uint64_t size() const { return file_->size_bytes(); }
  // All files of the source share it.
  Budget& budget() const { return *budget_; }
  // Incomplete if the file ends before.
  std::string Read(std::uint64_t offset, std::uint64_t size) const;

 private:
  const std::string path_;
  const std::size_t number_;
  const std::unique_ptr<ReadableFile> file_;
  const std::shared_ptr<Budget> budget_;
};

struct SourceEntry {
  std::string name;
  std::uint64_t size = 0;  // of a regular file, or of one that a link leads to
  bool is_file = false;
  EntryKind kind = EntryKind::kFile;
};

// Files and directories of a storage. The file that was used last stays open.
class SourceFiles {
 public:
  explicit SourceFiles(ForeignOptions options)
      : options_(std::move(options)),
        storage_(options_.storage != nullptr ? options_.storage : DefaultStorage()) {}

  const ForeignOptions& options() const { return options_; }
  Budget& budget() { return *budget_; }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  std::shared_ptr<const SourceFile> Open(const std::string& path);
  // The number of a file, which may not have been opened.
  std::size_t NumberOf(const std::string& path);
  std::vector<std::string> TakePaths() { return std::move(paths_); }
  // Sorted by name.
  std::vector<SourceEntry> List(const std::string& directory) const;

 private:
  const ForeignOptions options_;
  const std::shared_ptr<Storage> storage_;
  const std::shared_ptr<Budget> budget_ = std::make_shared<Budget>();
  std::shared_ptr<const SourceFile> last_;
  std::vector<std::string> paths_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

// Corrupt if a file of a directory names another by a path out of it.
void CheckInside(const std::string& name, const std::string& where);
// No payload is that of another directory: Unsupported if a symbolic link leads out of this one.
void CheckLinks(const std::string& directory, const std::string& name);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_FILES_H_
