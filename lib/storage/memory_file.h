// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_MEMORY_FILE_H_
#define SEALPOINT_LIB_STORAGE_MEMORY_FILE_H_

#include <atomic>
#include <memory>
#include <string>

#include "lib/storage/first_error.h"
#include "lib/storage/memory_tree.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::storage {

// Direct I/O is always refused here, so these files are never direct.
class MemoryWritableFile final : public WritableFile {
 public:
  MemoryWritableFile(std::shared_ptr<MemoryNode> node, std::string path)
      : node_(std::move(node)), path_(std::move(path)) {}

  Status WriteAt(std::uint64_t offset, ByteSpan data) override;
  Status Preallocate(std::uint64_t size_bytes) override;
  Status Sync() override { return CheckUsable(); }
  Status Close() override;
  bool is_direct() const override { return false; }

 private:
  Status CheckUsable() const;
  Status WriteAll(std::uint64_t offset, ByteSpan data);

  const std::shared_ptr<MemoryNode> node_;
  const std::string path_;
  std::atomic<bool> is_closed_ = false;
  FirstError first_error_;
};

class MemoryReadableFile final : public ReadableFile {
 public:
  MemoryReadableFile(std::shared_ptr<const MemoryNode> node, std::string path, IoMode mode);

  std::uint64_t size_bytes() const override { return size_bytes_; }
  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override;
  bool is_direct() const override { return false; }

 private:
  const std::shared_ptr<const MemoryNode> node_;
  const std::string path_;
  const IoMode mode_;
  std::uint64_t size_bytes_ = 0;
};

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_MEMORY_FILE_H_
