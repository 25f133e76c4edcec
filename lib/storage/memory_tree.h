// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_MEMORY_TREE_H_
#define SEALPOINT_LIB_STORAGE_MEMORY_TREE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::storage {

// The content of a file, shared by its names and by everything that has it open, like an inode.
struct MemoryNode {
  mutable std::shared_mutex mutex;
  Bytes content;
  std::uint64_t name_count = 1;  // guarded by MemoryTree::mutex
};

// A directory. Guarded by MemoryTree::mutex.
struct MemoryFolder {
  std::map<std::string, std::shared_ptr<MemoryNode>, std::less<>> files;
  std::map<std::string, std::shared_ptr<MemoryFolder>, std::less<>> folders;
  bool is_removed = false;

  bool Has(std::string_view name) const {
    return files.find(name) != files.end() || folders.find(name) != folders.end();
  }
};

// The state of one MemoryStorage. Lives as long as the storage or one of its directories. One mutex
// guards all names: there are few, and it makes operations on two names atomic.
struct MemoryTree {
  mutable std::mutex mutex;
  std::shared_ptr<MemoryFolder> root = std::make_shared<MemoryFolder>();
};

// As CheckName; also Io for a name that is longer than file systems allow.
Status CheckMemoryName(std::string_view directory, std::string_view name);

// The folder at `path`, resolved from the root. Errors: InvalidArgument, NotFound, Io (a file is
// there). The tree's mutex must be held.
Result<std::shared_ptr<MemoryFolder>> FindFolder(const MemoryTree& tree, std::string_view path);

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_MEMORY_TREE_H_
