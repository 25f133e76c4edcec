// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_FILES_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_FILES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/storage.h"

// Files of other formats, read as they are asked for. Everything throws Failure.

namespace sealpoint::tools {

class SourceFile {
 public:
  SourceFile(std::string path, std::unique_ptr<ReadableFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return file_->size_bytes(); }
  // Incomplete if the file ends before.
  std::string Read(std::uint64_t offset, std::uint64_t size) const;

 private:
  const std::string path_;
  const std::unique_ptr<ReadableFile> file_;
};

// Each file is opened once; the one that was used last stays open.
class SourceFiles {
 public:
  std::shared_ptr<const SourceFile> Open(const std::string& path);

 private:
  std::shared_ptr<const SourceFile> last_;
};

struct SourceEntry {
  std::string name;
  std::uint64_t size = 0;  // of a regular file, or of one that a link leads to
  bool is_file = false;
};

// Sorted by name.
std::vector<SourceEntry> ListEntries(const std::string& directory);

// The path of a file that a file of this directory names. Corrupt if it leads out of it.
std::string JoinInside(const std::string& directory, const std::string& name,
                       const std::string& where);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_FILES_H_
