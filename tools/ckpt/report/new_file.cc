// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/report/new_file.h"

#include <algorithm>
#include <memory>

#include "sealpoint/bytes.h"
#include "sealpoint/interop.h"
#include "sealpoint/storage.h"

namespace sealpoint::tools {
namespace {

// A file that is to be made, and its directory.
struct Target {
  std::unique_ptr<Directory> directory;
  std::string name;
  bool is_there = false;
};

Result<Target> FindTarget(const std::string& path) {
  auto [parent, name] = SplitPath(path);
  auto directory = DefaultStorage()->OpenDirectory(parent);
  if (!directory) return Status(directory.error()).AtPath(parent);
  if (name.empty()) {
    return Status(Code::kInvalidArgument, "it is a directory, expected the name of a file")
        .AtPath(path);
  }
  const Result<EntryInfo> there = (*directory)->Stat(name);
  if (!there && there.error().code() != Code::kNotFound) return there.error();
  // A device, or a link to what somebody else made.
  if (there && there->kind != EntryKind::kFile) {
    return Status(Code::kInvalidArgument, "it is not a regular file, and is not replaced")
        .AtPath(path);
  }
  return Target{*std::move(directory), name, there.ok()};
}

Status Write(NewFiles& files, std::string_view content) {
  const auto file = files.Begin(0);
  if (!file) return file.error();
  if (Status status = (*file)->WriteAt(0, AsBytes(content)); !status.ok()) return status;
  if (Status status = (*file)->Sync(); !status.ok()) return status;
  if (Status status = (*file)->Close(); !status.ok()) return status;
  return files.Publish();
}

}  // namespace

std::pair<std::string, std::string> SplitPath(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {".", std::string(path)};
  return {std::string(path.substr(0, std::max<std::size_t>(slash, 1))),
          std::string(path.substr(slash + 1))};
}

Result<bool> CheckPlace(const std::string& path) {
  const auto place = FindTarget(path);
  if (!place) return place.error();
  const auto files = NewFiles::Create(*place->directory, {place->name});
  if (!files && files.error().code() != Code::kUnsupported) return files.error();
  return place->is_there;
}

Status MakeFile(const std::string& path, std::string_view content) {
  const auto place = FindTarget(path);
  if (!place) return place.error();
  const auto files = NewFiles::Create(*place->directory, {place->name});
  if (files) return Write(**files, content);
  const bool has_no_links = files.error().code() == Code::kUnsupported && !place->is_there;
  return has_no_links ? place->directory->Replace(place->name, AsBytes(content)) : files.error();
}

Status ReplaceFile(const std::string& path, std::string_view content) {
  const auto place = FindTarget(path);
  return place ? place->directory->Replace(place->name, AsBytes(content)) : place.error();
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
