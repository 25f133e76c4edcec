// SPDX-License-Identifier: Apache-2.0
#include "tests/support/damage/storage.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"

namespace sealpoint::testing {
namespace {

using internal::MakeError;

Status ReadOnly() { return MakeError(Code::kIo, "the directory is read-only"); }

}  // namespace

DamagedFiles AsDamagedFiles(const std::map<std::string, Bytes>& files) {
  DamagedFiles entries;
  for (const auto& [name, bytes] : files) entries[name].bytes = bytes;
  return entries;
}

class DamageStorage::File final : public ReadableFile {
 public:
  File(const DamageStorage& storage, const std::pair<const std::string, DamagedEntry>& file)
      : storage_(storage), file_(file), size_(file.second.bytes.size()) {}

  std::uint64_t size_bytes() const override { return size_; }
  bool is_direct() const override { return false; }
  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override {
    if (storage_.before_read) storage_.before_read(file_.first, read_count_++);
    const Bytes& bytes = file_.second.bytes;
    const std::uint64_t whole_pages = internal::AlignUp(bytes.size(), kDirectIoAlignmentBytes);
    if (!internal::RangeFits(offset, out.size(), whole_pages)) {
      return std::move(MakeError(Code::kIncomplete, "the file ends before the range"))
          .AtPath(JoinPath(kPath, file_.first))
          .AtOffset(bytes.size());
    }
    const std::uint64_t begin = std::min<std::uint64_t>(offset, bytes.size());
    const std::uint64_t end = std::min<std::uint64_t>(offset + out.size(), bytes.size());
    const auto rest = std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                                bytes.begin() + static_cast<std::ptrdiff_t>(end), out.begin());
    std::fill(rest, out.end(), std::byte{0});
    return {};
  }

 private:
  const DamageStorage& storage_;
  const std::pair<const std::string, DamagedEntry>& file_;
  const std::uint64_t size_;
  mutable std::uint64_t read_count_ = 0;
};

class DamageStorage::Folder final : public Directory {
 public:
  explicit Folder(const DamageStorage& storage) : storage_(storage) {}

  const std::string& path() const override { return path_; }
  Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name, IoMode) const override {
    const auto found = Follow(name);
    if (found == storage_.files_.end()) return Missing(name);
    if (found->second.kind != EntryKind::kFile) {
      return std::move(MakeError(Code::kIo, "not a regular file")).AtPath(JoinPath(path_, name));
    }
    std::unique_ptr<ReadableFile> file = std::make_unique<File>(storage_, *found);
    return file;
  }
  Result<EntryInfo> Stat(std::string_view name) const override {
    const auto found = storage_.files_.find(name);
    if (found == storage_.files_.end()) return Missing(name);
    return Describe(found->first, found->second);
  }
  Result<std::vector<EntryInfo>> List() const override {
    std::vector<EntryInfo> entries;
    for (const auto& [name, entry] : storage_.files_) entries.push_back(Describe(name, entry));
    return entries;
  }
  Result<std::unique_ptr<WritableFile>> CreateExclusive(std::string_view, CreateOptions) override {
    return ReadOnly();
  }
  Result<Bytes> ReadFileIn(std::string_view name, std::string_view, std::size_t) const override {
    return Missing(name);
  }
  Result<std::unique_ptr<Directory>> OpenSubdirectory(std::string_view name) const override {
    return Missing(name);
  }
  Status Remove(std::string_view) override { return ReadOnly(); }
  Status RemoveSubdirectory(std::string_view) override { return ReadOnly(); }
  Status PublishExclusive(std::string_view, std::string_view, PublishMethod) override {
    return ReadOnly();
  }
  Status Sync() override { return ReadOnly(); }
  Result<SpaceInfo> FreeSpace() const override { return ReadOnly(); }
  Result<Capabilities> Probe(std::string_view) override { return ReadOnly(); }

 private:
  Status Missing(std::string_view name) const {
    return std::move(MakeError(Code::kNotFound, "no such file")).AtPath(JoinPath(path_, name));
  }
  // One step is enough for these tests.
  DamagedFiles::const_iterator Follow(std::string_view name) const {
    const auto found = storage_.files_.find(name);
    if (found == storage_.files_.end() || found->second.kind != EntryKind::kSymlink) return found;
    return storage_.files_.find(found->second.target);
  }
  EntryInfo Describe(const std::string& name, const DamagedEntry& entry) const {
    const auto file = Follow(name);
    const bool leads_to_a_file =
        file != storage_.files_.end() && file->second.kind == EntryKind::kFile;
    return {.name = name,
            .kind = entry.kind,
            .size_bytes = leads_to_a_file ? file->second.bytes.size() : 0};
  }

  const DamageStorage& storage_;
  const std::string path_ = kPath;
};

Result<std::unique_ptr<Directory>> DamageStorage::OpenDirectory(std::string_view path) const {
  if (path != kPath) {
    return std::move(MakeError(Code::kNotFound, "no such directory")).AtPath(path);
  }
  std::unique_ptr<Directory> folder = std::make_unique<Folder>(*this);
  return folder;
}

Status DamageStorage::CreateDirectories(std::string_view) { return ReadOnly(); }

}  // namespace sealpoint::testing
