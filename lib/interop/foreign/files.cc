// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/files.h"

#include <algorithm>
#include <filesystem>

#include "lib/interop/foreign/failure.h"
#include "sealpoint/bytes.h"
#include "sealpoint/text.h"

namespace sealpoint::internal::foreign {
namespace {

namespace fs = std::filesystem;

// An empty one says its size as a link that leads nowhere does.
bool LeadsToFile(const EntryInfo& entry, const Directory& directory) {
  return entry.kind == EntryKind::kSymlink &&
         (entry.size_bytes > 0 || directory.OpenForRead(entry.name, IoMode::kBuffered).ok());
}

}  // namespace

std::string SourceFile::Read(std::uint64_t offset, std::uint64_t size) const {
  if (offset > this->size() || size > this->size() - offset) {
    Fail(Code::kIncomplete, path_, "the file has ", this->size(), " bytes, expected ",
         offset + size, " at least");
  }
  std::string bytes(size, '\0');
  Status status = file_->ReadAt(offset, std::as_writable_bytes(std::span(bytes)));
  if (!status.ok()) throw Failure{std::move(status)};
  return bytes;
}

std::shared_ptr<const SourceFile> SourceFiles::Open(const std::string& path) {
  if (last_ != nullptr && last_->path() == path) return last_;
  const fs::path parts(path);
  const std::string parent = parts.has_parent_path() ? parts.parent_path().string() : ".";
  const auto directory = Take(storage_->OpenDirectory(parent));
  last_ = std::make_shared<const SourceFile>(
      path, NumberOf(path),
      Take(directory->OpenForRead(parts.filename().string(), IoMode::kBuffered)), budget_);
  return last_;
}

std::size_t SourceFiles::NumberOf(const std::string& path) {
  const auto [at, is_new] = numbers_.try_emplace(path, paths_.size());
  if (is_new) paths_.push_back(path);
  return at->second;
}

std::vector<SourceEntry> SourceFiles::List(const std::string& directory) const {
  std::vector<SourceEntry> entries;
  const auto opened = Take(storage_->OpenDirectory(directory));
  for (EntryInfo& entry : Take(opened->List())) {
    const bool is_file = entry.kind == EntryKind::kFile || LeadsToFile(entry, *opened);
    entries.push_back({.name = std::move(entry.name),
                       .size = is_file ? entry.size_bytes : 0,
                       .is_file = is_file,
                       .kind = entry.kind});
  }
  return entries;
}

void CheckInside(const std::string& name, const std::string& where) {
  constexpr std::size_t kShownMax = 200;
  bool is_inside = !name.empty() && name.front() != '/' && name.find('\0') == name.npos;
  for (const fs::path& part : fs::path(name)) is_inside &= part != "..";
  const fs::path file = fs::path(name).filename();
  is_inside &= !file.empty() && file != ".";
  if (is_inside) return;
  Fail(Code::kCorrupt, where, "file is named '", Printable(name.substr(0, kShownMax)),
       "', expected a relative path within the directory");
}

void CheckLinks(const std::string& directory, const std::string& name) {
  const std::string path = JoinPath(directory, name);
  std::error_code error;
  const fs::path inner = fs::weakly_canonical(path, error);
  if (error) return;  // opening it will say why
  const fs::path outer = fs::weakly_canonical(directory, error);
  const auto [rest, at] = std::ranges::mismatch(outer, inner);
  if (error || rest == outer.end()) return;
  Fail(Code::kUnsupported, path,
       "a symbolic link that leads out of the directory, expected a file within it; copy the "
       "directory with its links followed (cp -rL)");
}

}  // namespace sealpoint::internal::foreign
