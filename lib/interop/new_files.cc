// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/durable.h"
#include "sealpoint/id.h"
#include "sealpoint/interop.h"

namespace sealpoint {
namespace internal::interop {
namespace {

constexpr std::string_view kPartial = ".partial-";
constexpr std::size_t kPartialDigits = 8;
// More names than a model has files are not written by this library.
constexpr std::size_t kMarkerSizeMax = 16 * kMiB;

bool IsMarker(std::string_view name) {
  return name.starts_with(kPartial) && name.size() == kPartial.size() + kPartialDigits &&
         name.find_first_not_of("0123456789abcdef", kPartial.size()) == name.npos;
}

// Under names of their own, which they lose for the right ones.
class RenamedFiles final : public NewFiles {
 public:
  RenamedFiles(Directory& directory, std::vector<std::string> names, PublishMethod method,
               std::string suffix)
      : directory_(directory),
        names_(std::move(names)),
        method_(method),
        suffix_(std::move(suffix)) {}

  // Removing is all that can be tried, and a name that is left does no harm.
  ~RenamedFiles() override {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (!is_done_ && i < published_count_) static_cast<void>(directory_.Remove(names_[i]));
      static_cast<void>(directory_.Remove(names_[i] + suffix_));
    }
  }

  Result<std::unique_ptr<WritableFile>> Begin(std::size_t number) override {
    return directory_.CreateExclusive(names_[number] + suffix_, {});
  }

  // A crash in between leaves some of the names: the files that have them are whole, and the last
  // of a model, its index, is not there.
  Status Publish() override {
    SEALPOINT_RETURN_IF_ERROR(directory_.Sync());
    for (const std::string& name : names_) {
      SEALPOINT_RETURN_IF_ERROR(directory_.PublishExclusive(name + suffix_, name, method_));
      ++published_count_;
    }
    SEALPOINT_RETURN_IF_ERROR(directory_.Sync());
    is_done_ = true;
    return {};
  }

 private:
  Directory& directory_;
  const std::vector<std::string> names_;
  const PublishMethod method_;
  const std::string suffix_;  // of the other names
  std::size_t published_count_ = 0;
  bool is_done_ = false;
};

class StoredFiles final : public NewFiles {
 public:
  StoredFiles(Directory& directory, std::vector<std::string> names, std::string marker)
      : directory_(directory),
        names_(std::move(names)),
        marker_(std::move(marker)),
        is_made_(names_.size()) {}
  ~StoredFiles() override;

  // After this the destructor removes the marker.
  Status PutMarker() {
    if (!HasMarker()) return {};
    std::string text;
    for (const std::string& name : names_) text += name + "\n";
    return directory_.PutIfAbsent(marker_, AsBytes(text));
  }

  Result<std::unique_ptr<WritableFile>> Begin(std::size_t number) override;

  Status Publish() override {
    Status removed = HasMarker() ? directory_.Remove(marker_) : Status();
    // A lost answer, perhaps.
    if (!removed.ok() && directory_.Stat(marker_).status().code() != Code::kNotFound) {
      return removed;
    }
    is_done_ = true;
    return {};
  }

  // The outcome is unknown after an error: the object may still come.
  void NoteMade(std::size_t number, bool is_known) {
    const std::lock_guard lock(mutex_);
    is_made_[number] = true;
    is_known_ &= is_known;
  }

 private:
  // One file is there as a whole or not at all.
  bool HasMarker() const { return names_.size() > 1; }

  Directory& directory_;
  const std::vector<std::string> names_;
  const std::string marker_;
  std::mutex mutex_;
  std::vector<bool> is_made_;  // or may be
  bool is_known_ = true;
  bool is_done_ = false;
};

// Tells when there is an object. If a name was taken the object is another's, and stays.
class StoredFile final : public WritableFile {
 public:
  StoredFile(StoredFiles& files, std::size_t number, std::unique_ptr<WritableFile> file)
      : files_(files), number_(number), file_(std::move(file)) {}

  Status WriteAt(std::uint64_t offset, ByteSpan data) override {
    return file_->WriteAt(offset, data);
  }
  Status Preallocate(std::uint64_t size_bytes) override { return file_->Preallocate(size_bytes); }
  Status Sync() override { return Noted(file_->Sync()); }
  Status Close() override { return Noted(file_->Close()); }
  bool is_direct() const override { return file_->is_direct(); }

 private:
  Status Noted(Status status) {
    if (status.code() != Code::kAlreadyExists) files_.NoteMade(number_, status.ok());
    return status;
  }

  StoredFiles& files_;
  const std::size_t number_;
  const std::unique_ptr<WritableFile> file_;
};

Result<std::unique_ptr<WritableFile>> StoredFiles::Begin(std::size_t number) {
  if (HasMarker() && number + 1 == names_.size()) {
    const auto marker = directory_.Stat(marker_);
    if (!marker.ok() && marker.error().code() != Code::kNotFound) return marker.error();
    if (!marker.ok()) {
      return MakeError(Code::kIo, "another program removed ", marker_,
                       " and started to write here; expected one writer")
          .AtPath(directory_.path());
    }
  }
  SEALPOINT_ASSIGN_OR_RETURN(auto file, directory_.CreateExclusive(names_[number], {}));
  std::unique_ptr<WritableFile> noted =
      std::make_unique<StoredFile>(*this, number, std::move(file));
  return noted;
}

// The last goes first: without it nothing passes for whole. What is here without a marker belongs
// to whoever removed that. A marker that is left names what the next one is to remove.
StoredFiles::~StoredFiles() {
  if (is_done_ || (HasMarker() && !directory_.Stat(marker_).ok())) return;
  bool is_removed = is_known_;
  for (std::size_t i = names_.size(); i > 0; --i) {
    if (is_made_[i - 1]) is_removed &= directory_.Remove(names_[i - 1]).ok();
  }
  if (HasMarker() && is_removed) static_cast<void>(directory_.Remove(marker_));
}

Status RemoveLeft(Directory& directory) {
  SEALPOINT_ASSIGN_OR_RETURN(std::vector<std::string> left, NewFiles::Left(directory));
  std::ranges::partition(left, [](const std::string& name) { return !IsMarker(name); });
  for (const std::string& name : left) SEALPOINT_RETURN_IF_ERROR(directory.Remove(name));
  return {};
}

}  // namespace
}  // namespace internal::interop

Result<std::vector<std::string>> NewFiles::Left(const Directory& directory) {
  std::vector<std::string> left;
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<EntryInfo> entries, directory.List());
  for (const EntryInfo& entry : entries) {
    if (entry.kind != EntryKind::kFile || !internal::interop::IsMarker(entry.name)) continue;
    SEALPOINT_ASSIGN_OR_RETURN(const auto file,
                               directory.OpenForRead(entry.name, IoMode::kBuffered));
    std::string text(std::min<std::uint64_t>(file->size_bytes(), internal::interop::kMarkerSizeMax),
                     '\0');
    SEALPOINT_RETURN_IF_ERROR(file->ReadAt(0, std::as_writable_bytes(std::span(text))));
    left.push_back(entry.name);
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view name = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
      const auto is_it = [name](const EntryInfo& one) { return one.name == name; };
      if (std::ranges::any_of(entries, is_it)) left.emplace_back(name);
    }
  }
  std::ranges::sort(left);
  left.erase(std::ranges::unique(left).begin(), left.end());
  return left;
}

Result<std::unique_ptr<NewFiles>> NewFiles::Create(Directory& directory,
                                                   std::vector<std::string> names) {
  SEALPOINT_ASSIGN_OR_RETURN(const Id128 id, Id128::Random());
  std::string partial(internal::interop::kPartial);
  partial += id.ToHex().substr(0, internal::interop::kPartialDigits);
  // A probe that a killed program leaves is a marker that names nothing.
  SEALPOINT_ASSIGN_OR_RETURN(const Capabilities capabilities, directory.Probe(partial));
  SEALPOINT_RETURN_IF_ERROR(internal::storage::CheckCapabilities(directory, capabilities));
  if (capabilities.publish != PublishMethod::kPutIfAbsent) {
    return std::unique_ptr<NewFiles>(std::make_unique<internal::interop::RenamedFiles>(
        directory, std::move(names), capabilities.publish, partial));
  }
  if (names.size() > 1) SEALPOINT_RETURN_IF_ERROR(internal::interop::RemoveLeft(directory));
  auto made =
      std::make_unique<internal::interop::StoredFiles>(directory, std::move(names), partial);
  SEALPOINT_RETURN_IF_ERROR(made->PutMarker());
  return std::unique_ptr<NewFiles>(std::move(made));
}

}  // namespace sealpoint
