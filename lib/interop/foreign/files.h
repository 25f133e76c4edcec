// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_FILES_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_FILES_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/interop/foreign/budget.h"
#include "sealpoint/interop.h"
#include "sealpoint/object_store.h"
#include "sealpoint/storage.h"

// Files of other formats, read on demand. All functions throw Failure.

namespace sealpoint {

// Thread safety: all functions.
class ForeignDirectories {
 public:
  // A few recently opened ones remain open.
  Result<std::shared_ptr<const Directory>> Open(const std::string& path, const Storage& storage);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Directory>> open_;
};

namespace internal::foreign {

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
  void ReadInto(std::uint64_t offset, MutableByteSpan out) const;
  // Reads the same size at each of the offsets and concatenates the results. Uses several threads
  // for remote files.
  std::string ReadEach(const std::vector<std::uint64_t>& offsets, std::uint64_t size) const;

 private:
  void CheckRange(std::uint64_t offset, std::uint64_t size) const;

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

// Kind of a path.
enum class PathKind : std::uint8_t { kNothing, kFile, kDirectory };
// kNothing also for other kinds of entries. Errors: those of an object store that cannot be read.
Result<PathKind> KindAt(const std::string& path, const Storage& storage);

// Files and directories of a storage. A few recently used ones remain open.
class SourceFiles {
 public:
  explicit SourceFiles(ForeignOptions options, std::shared_ptr<ForeignDirectories> directories = {})
      : options_(std::move(options)),
        storage_(options_.storage != nullptr ? options_.storage : DefaultStorage()),
        directories_(directories != nullptr ? std::move(directories)
                                            : std::make_shared<ForeignDirectories>()),
        blocks_(BlockCache::Create(kBlockBytes, kBlocksMax)) {}

  const ForeignOptions& options() const { return options_; }
  Budget& budget() { return *budget_; }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  const std::shared_ptr<ForeignDirectories>& directories() const { return directories_; }
  // Each file that is opened from now on is of another checkpoint.
  void StartBudget() { budget_ = NewBudget(); }
  std::shared_ptr<const SourceFile> Open(const std::string& path);
  // The number of a file, which may not have been opened.
  std::size_t NumberOf(const std::string& path);
  const std::string& PathOf(std::size_t number) const { return paths_.at(number); }
  std::vector<std::string> TakePaths() { return std::move(paths_); }
  // Sorted by name; the result of the first call is kept.
  std::vector<SourceEntry> List(const std::string& directory);

 private:
  // Reads are concentrated in few places of a file: the ends of archives, and adjacent data.
  static constexpr std::uint64_t kBlockBytes = std::uint64_t{64} << 10;
  static constexpr std::size_t kBlocksMax = 64;
  std::shared_ptr<Budget> NewBudget() const {
    return std::make_shared<Budget>(options_.metadata_memory_bytes);
  }

  const ForeignOptions options_;
  const std::shared_ptr<Storage> storage_;
  const std::shared_ptr<ForeignDirectories> directories_;
  std::shared_ptr<Budget> budget_ = NewBudget();
  const std::shared_ptr<BlockCache> blocks_;
  std::unordered_map<std::string, std::shared_ptr<const SourceFile>> open_;
  std::unordered_map<std::string, std::vector<SourceEntry>> listed_;
  std::vector<std::string> paths_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

// Corrupt if a file of a directory names another by a path out of it.
void CheckInside(const std::string& name, const std::string& where);
// No payload is that of another directory: Unsupported if a symbolic link leads out of this one.
void CheckLinks(const std::string& directory, const std::string& name);

// Why a symbolic link, which only file systems have, leads to no file.
std::string WhatLinkIs(const std::string& directory, const std::string& name);

}  // namespace internal::foreign
}  // namespace sealpoint

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_FILES_H_
