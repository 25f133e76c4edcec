// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_FILES_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/storage.h"
#include "tools/ckpt-inspect/foreign/budget.h"

// Files of other formats, read as they are asked for. Everything throws Failure.

namespace sealpoint::tools {

class SourceFile {
 public:
  SourceFile(std::string path, std::unique_ptr<ReadableFile> file, std::shared_ptr<Budget> budget)
      : path_(std::move(path)), file_(std::move(file)), budget_(std::move(budget)) {}

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return file_->size_bytes(); }
  // Of all files of the source.
  Budget& budget() const { return *budget_; }
  // Incomplete if the file ends before.
  std::string Read(std::uint64_t offset, std::uint64_t size) const;

 private:
  const std::string path_;
  const std::unique_ptr<ReadableFile> file_;
  const std::shared_ptr<Budget> budget_;
};

struct SourceEntry {
  std::string name;
  std::uint64_t size = 0;  // of a regular file, or of one that a link leads to
  bool is_file = false;
};

// Files and directories of a storage. The file that was used last stays open.
class SourceFiles {
 public:
  explicit SourceFiles(std::shared_ptr<Storage> storage) : storage_(std::move(storage)) {}

  Budget& budget() { return *budget_; }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  std::shared_ptr<const SourceFile> Open(const std::string& path);
  // Sorted by name.
  std::vector<SourceEntry> List(const std::string& directory) const;

 private:
  const std::shared_ptr<Storage> storage_;
  const std::shared_ptr<Budget> budget_ = std::make_shared<Budget>();
  std::shared_ptr<const SourceFile> last_;
};

// Corrupt if a file of a directory names another by a path out of it.
void CheckInside(const std::string& name, const std::string& where);
// No payload is that of another directory: Unsupported if a symbolic link leads out of this one.
void CheckLinks(const std::string& directory, const std::string& name);
// The path of a file that a file of this directory names. Corrupt if it leads out of it.
std::string JoinInside(const std::string& directory, const std::string& name,
                       const std::string& where);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_FILES_H_
