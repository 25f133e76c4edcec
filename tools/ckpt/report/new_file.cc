// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/report/new_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "sealpoint/bytes.h"
#include "sealpoint/id.h"
#include "sealpoint/storage.h"

namespace sealpoint::tools {
namespace {

Status Write(Directory& directory, const std::string& name, std::string_view content) {
  const auto file = directory.CreateExclusive(name, {});
  if (!file) return file.error();
  if (Status status = (*file)->WriteAt(0, AsBytes(content)); !status.ok()) return status;
  if (Status status = (*file)->Sync(); !status.ok()) return status;
  return (*file)->Close();
}

// Anything else of that name is an error: a device, or a link to what somebody else made.
Result<bool> HasFile(const Directory& directory, const std::string& name) {
  const Result<EntryInfo> there = directory.Stat(name);
  if (there && there->kind == EntryKind::kFile) return true;
  if (there) {
    return Status(Code::kInvalidArgument, "it is not a regular file, and is not replaced")
        .AtPath(JoinPath(directory.path(), name));
  }
  if (there.error().code() == Code::kNotFound) return false;
  return there.error();
}

// A file that is to be made, and its directory.
class NewFile {
 public:
  static Result<std::unique_ptr<NewFile>> Open(const std::string& path) {
    auto [parent, name] = SplitPath(path);
    auto directory = DefaultStorage()->OpenDirectory(parent);
    if (!directory) return Status(directory.error()).AtPath(parent);
    if (name.empty()) {
      return Status(Code::kInvalidArgument, "it is a directory, expected the name of a file")
          .AtPath(path);
    }
    const Result<bool> is_there = HasFile(**directory, name);
    if (!is_there) return is_there.error();
    const Result<Id128> id = Id128::Random();
    if (!id) return id.error();
    const std::string other = fmt::format(".{}-{}", name, id->ToHex().substr(0, kDigits));
    const Result<Capabilities> offered = (*directory)->Probe(other);
    if (!offered) return offered.error();
    return std::make_unique<NewFile>(*std::move(directory), name, other + ".tmp", offered->publish,
                                     *is_there);
  }
  NewFile(std::unique_ptr<Directory> directory, std::string name, std::string other,
          PublishMethod method, bool is_there)
      : directory_(std::move(directory)),
        name_(std::move(name)),
        other_(std::move(other)),
        method_(method),
        is_there_(is_there) {}

  bool is_there() const { return is_there_; }

  // With `replace` what has the name goes, after everything that may fail for want of space.
  Status Make(std::string_view content, bool replace) {
    if (method_ == PublishMethod::kPutIfAbsent) {
      if (Status status = replace ? TakeAway() : Status(); !status.ok()) return status;
      return directory_->PutIfAbsent(name_, AsBytes(content));
    }
    Status status = Write(*directory_, other_, content);
    if (status.ok()) status = Publish(content, replace);
    (void)directory_->Remove(other_);
    return status.ok() ? directory_->Sync() : status;
  }

 private:
  static constexpr std::size_t kDigits = 8;

  // Others may replace the file at the same time: the last one stays.
  Status Publish(std::string_view content, bool replace) {
    constexpr int kTries = 20;
    for (int i = 1;; ++i) {
      Status status = replace ? TakeAway() : Status();
      // Without links the other name is of no use: a crash may then leave a part of the file.
      if (status.ok() && method_ == PublishMethod::kNone) {
        status = Write(*directory_, name_, content);
      } else if (status.ok()) {
        status = directory_->PublishExclusive(other_, name_, method_);
      }
      if (!replace || i == kTries || status.code() != Code::kAlreadyExists) return status;
    }
  }

  Status TakeAway() {
    const Result<bool> is_there = HasFile(*directory_, name_);
    if (!is_there) return is_there.error();
    const Status removed = *is_there ? directory_->Remove(name_) : Status();
    return removed.code() == Code::kNotFound ? Status() : removed;
  }

  const std::unique_ptr<Directory> directory_;
  const std::string name_;
  const std::string other_;
  const PublishMethod method_;
  const bool is_there_;
};

Status Make(const std::string& path, std::string_view content, bool replace) {
  const auto place = NewFile::Open(path);
  return place ? (*place)->Make(content, replace) : place.error();
}

}  // namespace

std::pair<std::string, std::string> SplitPath(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {".", std::string(path)};
  return {std::string(path.substr(0, std::max<std::size_t>(slash, 1))),
          std::string(path.substr(slash + 1))};
}

Result<bool> CheckPlace(const std::string& path) {
  const auto place = NewFile::Open(path);
  if (!place) return place.error();
  return (*place)->is_there();
}

Status MakeFile(const std::string& path, std::string_view content) {
  return Make(path, content, false);
}

Status ReplaceFile(const std::string& path, std::string_view content) {
  return Make(path, content, true);
}

Result<std::string> ReadBegin(const std::string& path, std::uint64_t size_max) {
  const auto [parent, name] = SplitPath(path);
  const auto directory = DefaultStorage()->OpenDirectory(parent);
  if (!directory) return Status(directory.error()).AtPath(parent);
  const auto file = (*directory)->OpenForRead(name, IoMode::kBuffered);
  if (!file) return file.error();
  std::string text(std::min((*file)->size_bytes(), size_max), '\0');
  const Status status =
      (*file)->ReadAt(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  if (!status.ok()) return status;
  return text;
}

}  // namespace sealpoint::tools
