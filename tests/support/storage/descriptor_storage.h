// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_STORAGE_DESCRIPTOR_STORAGE_H_
#define SEALPOINT_TESTS_SUPPORT_STORAGE_DESCRIPTOR_STORAGE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/base/macros.h"
#include "tests/support/storage/forwarding_storage.h"

namespace sealpoint::testing {

struct DescriptorOptions {
  bool is_direct = true;
  bool has_descriptors = true;
  bool for_buffered = false;  // also if no direct I/O is requested
};

// Presents a file of any storage as one of a file system with direct I/O: its descriptor is that of
// a copy in memory.
class FileWithDescriptor final : public ForwardingReader {
 public:
  FileWithDescriptor(std::unique_ptr<ReadableFile> inner, DescriptorOptions options)
      : ForwardingReader(std::move(inner)),
        options_(options),
        descriptor_(memfd_create("file", MFD_CLOEXEC)) {
    Bytes content(size_bytes());
    SEALPOINT_CHECK(ReadAt(0, content).ok());
    SEALPOINT_CHECK(write(descriptor_, content.data(), content.size()) ==
                    static_cast<ssize_t>(content.size()));
  }
  ~FileWithDescriptor() override { close(descriptor_); }

  bool is_direct() const override { return options_.is_direct; }
  std::optional<int> descriptor() const override {
    return options_.has_descriptors ? std::optional(descriptor_) : std::nullopt;
  }

 private:
  const DescriptorOptions options_;
  const int descriptor_;
};

// A storage that opens its files that way if direct I/O is requested, or always.
class DescriptorStorage final : public ForwardingStorage {
 public:
  explicit DescriptorStorage(std::shared_ptr<Storage> inner, DescriptorOptions options = {})
      : ForwardingStorage(std::move(inner)), options_(options) {}

  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override {
    SEALPOINT_ASSIGN_OR_RETURN(auto inner, ForwardingStorage::OpenDirectory(path));
    return std::unique_ptr<Directory>(
        std::make_unique<DirectDirectory>(std::move(inner), options_));
  }

 private:
  class DirectDirectory final : public ForwardingDirectory {
   public:
    DirectDirectory(std::unique_ptr<Directory> inner, DescriptorOptions options)
        : ForwardingDirectory(std::move(inner)), options_(options) {}

    Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name,
                                                      IoMode mode) const override {
      SEALPOINT_ASSIGN_OR_RETURN(auto file, ForwardingDirectory::OpenForRead(name, mode));
      if (mode != IoMode::kDirect && !options_.for_buffered) return file;
      return std::unique_ptr<ReadableFile>(
          std::make_unique<FileWithDescriptor>(std::move(file), options_));
    }

   private:
    const DescriptorOptions options_;
  };

  const DescriptorOptions options_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_STORAGE_DESCRIPTOR_STORAGE_H_
