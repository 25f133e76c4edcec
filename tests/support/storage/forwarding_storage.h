// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_STORAGE_FORWARDING_STORAGE_H_
#define SEALPOINT_TESTS_SUPPORT_STORAGE_FORWARDING_STORAGE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/storage.h"

// Files, directories and storages that forward every call to another one. A test derives from them
// and overrides the calls that it changes.

namespace sealpoint::testing {

class ForwardingReader : public ReadableFile {
 public:
  explicit ForwardingReader(std::unique_ptr<ReadableFile> inner) : inner_(std::move(inner)) {}

  std::uint64_t size_bytes() const override { return inner_->size_bytes(); }
  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override {
    return inner_->ReadAt(offset, out);
  }
  void WillRead(std::uint64_t offset, std::uint64_t size) const override {
    inner_->WillRead(offset, size);
  }
  bool IsCached(std::uint64_t offset, std::uint64_t size) const override {
    return inner_->IsCached(offset, size);
  }
  bool is_direct() const override { return inner_->is_direct(); }
  std::optional<int> descriptor() const override { return inner_->descriptor(); }

 private:
  const std::unique_ptr<ReadableFile> inner_;
};

class ForwardingWriter : public WritableFile {
 public:
  explicit ForwardingWriter(std::unique_ptr<WritableFile> inner) : inner_(std::move(inner)) {}

  Status WriteAt(std::uint64_t offset, ByteSpan data) override {
    return inner_->WriteAt(offset, data);
  }
  Status Preallocate(std::uint64_t size_bytes) override { return inner_->Preallocate(size_bytes); }
  Status Sync() override { return inner_->Sync(); }
  Status Close() override { return inner_->Close(); }
  bool is_direct() const override { return inner_->is_direct(); }
  void ChargePartsTo(PartBudget& memory) override { inner_->ChargePartsTo(memory); }

 private:
  const std::unique_ptr<WritableFile> inner_;
};

class ForwardingDirectory : public Directory {
 public:
  explicit ForwardingDirectory(std::unique_ptr<Directory> inner) : inner_(std::move(inner)) {}

  const std::string& path() const override { return inner_->path(); }
  Result<std::unique_ptr<WritableFile>> CreateExclusive(std::string_view name,
                                                        CreateOptions options) override {
    return inner_->CreateExclusive(name, options);
  }
  Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name,
                                                    IoMode mode) const override {
    return inner_->OpenForRead(name, mode);
  }
  Result<EntryInfo> Stat(std::string_view name) const override { return inner_->Stat(name); }
  Result<std::vector<EntryInfo>> List() const override { return inner_->List(); }
  Result<Bytes> ReadFileIn(std::string_view subdirectory, std::string_view name,
                           std::size_t size_max) const override {
    return inner_->ReadFileIn(subdirectory, name, size_max);
  }
  Result<std::unique_ptr<Directory>> OpenSubdirectory(std::string_view name) const override {
    return inner_->OpenSubdirectory(name);
  }
  Status Remove(std::string_view name) override { return inner_->Remove(name); }
  Status RemoveSubdirectory(std::string_view name) override {
    return inner_->RemoveSubdirectory(name);
  }
  Status PublishExclusive(std::string_view from, std::string_view to,
                          PublishMethod method) override {
    return inner_->PublishExclusive(from, to, method);
  }
  Status PutIfAbsent(std::string_view name, ByteSpan content) override {
    return inner_->PutIfAbsent(name, content);
  }
  Status Replace(std::string_view name, ByteSpan content) override {
    return inner_->Replace(name, content);
  }
  Status LinkFrom(std::string_view directory, std::string_view name,
                  std::uint64_t name_count_max) override {
    return inner_->LinkFrom(directory, name, name_count_max);
  }
  Status Sync() override { return inner_->Sync(); }
  Result<SpaceInfo> FreeSpace() const override { return inner_->FreeSpace(); }
  Result<Capabilities> Probe(std::string_view probe_name) override {
    return inner_->Probe(probe_name);
  }

 private:
  const std::unique_ptr<Directory> inner_;
};

class ForwardingStorage : public Storage {
 public:
  explicit ForwardingStorage(std::shared_ptr<Storage> inner) : inner_(std::move(inner)) {}

  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override {
    return inner_->OpenDirectory(path);
  }
  Status CreateDirectories(std::string_view path) override {
    return inner_->CreateDirectories(path);
  }
  Result<std::vector<UnfinishedFile>> ListUnfinished(std::string_view path) const override {
    return inner_->ListUnfinished(path);
  }
  Status AbortUnfinished(std::string_view path, const UnfinishedFile& file) override {
    return inner_->AbortUnfinished(path, file);
  }
  Result<Location> Locate(std::string_view path) const override { return inner_->Locate(path); }
  std::uint64_t part_size_bytes(std::string_view path) const override {
    return inner_->part_size_bytes(path);
  }

 private:
  const std::shared_ptr<Storage> inner_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_STORAGE_FORWARDING_STORAGE_H_
