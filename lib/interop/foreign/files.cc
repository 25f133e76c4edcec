// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/files.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "lib/base/macros.h"
#include "lib/interop/foreign/failure.h"
#include "lib/pipeline/thread_pool.h"
#include "lib/storage/open_files.h"
#include "lib/storage/path.h"
#include "sealpoint/bytes.h"

namespace sealpoint {
namespace internal::foreign {
namespace {

namespace fs = std::filesystem;

constexpr int kReadsAtOnce = 16;

// The path that the system knows; nothing of an object store.
std::optional<std::string> LocalPath(const std::string& path) {
  const std::string_view scheme = storage::SchemeOf(path);
  if (scheme.empty()) return path;
  const auto lower = [](char c) { return static_cast<char>(c | 0x20); };
  if (!std::ranges::equal(scheme, std::string_view("file"), {}, lower)) return std::nullopt;
  return path.substr(storage::AuthorityOf(path).size());
}

// Makes room for one more of what stays open or is remembered.
template <typename Map>
void KeepFew(Map& map) {
  constexpr std::size_t kCountMax = 32;
  if (map.size() >= storage::OpenFilesFor(kCountMax)) map.clear();
}

// An empty one says its size as a link that leads nowhere does.
bool LeadsToFile(const EntryInfo& entry, const Directory& directory) {
  return entry.kind == EntryKind::kSymlink &&
         (entry.size_bytes > 0 || directory.OpenForRead(entry.name, IoMode::kBuffered).ok());
}

}  // namespace

std::string SourceFile::Read(std::uint64_t offset, std::uint64_t size) const {
  CheckRange(offset, size);
  std::string bytes(size, '\0');
  ReadInto(offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

void SourceFile::ReadInto(std::uint64_t offset, MutableByteSpan out) const {
  CheckRange(offset, out.size());
  Status status = file_->ReadAt(offset, out);
  if (!status.ok()) throw Failure{std::move(status)};
}

void SourceFile::CheckRange(std::uint64_t offset, std::uint64_t size) const {
  if (offset <= this->size() && size <= this->size() - offset) return;
  Fail(Code::kIncomplete, path_, "the file has ", this->size(), " bytes, expected ", offset + size,
       " at least");
}

std::string SourceFile::ReadEach(const std::vector<std::uint64_t>& offsets,
                                 std::uint64_t size) const {
  std::string bytes(offsets.size() * size, '\0');
  const MutableByteSpan out = std::as_writable_bytes(std::span(bytes));
  const int threads = file_->descriptor() ? 1 : kReadsAtOnce;
  Status status = pipeline::ParallelFor(threads, offsets.size(), [&](int, std::size_t at) {
    return file_->ReadAt(offsets[at], out.subspan(at * size, size));
  });
  if (!status.ok()) throw Failure{std::move(status)};
  return bytes;
}

Result<PathKind> KindAt(const std::string& path, const Storage& storage) {
  if (path.empty()) return PathKind::kNothing;
  const auto entry = StatPath(storage, path);
  if (!entry.ok() && !LocalPath(path)) return entry.error();
  if (!entry.ok() || !*entry) return PathKind::kNothing;
  if ((*entry)->kind == EntryKind::kDirectory) return PathKind::kDirectory;
  return (*entry)->kind == EntryKind::kFile ? PathKind::kFile : PathKind::kNothing;
}

std::shared_ptr<const SourceFile> SourceFiles::Open(const std::string& path) {
  const auto found = open_.find(path);
  if (found != open_.end() && &found->second->budget() == budget_.get()) return found->second;
  KeepFew(open_);
  const auto directory = Take(directories_->Open(storage::ParentPath(path), *storage_));
  auto file = Take(directory->OpenForRead(storage::LastComponent(path), IoMode::kBuffered));
  return open_[path] = std::make_shared<const SourceFile>(path, NumberOf(path),
                                                          blocks_->Wrap(std::move(file)), budget_);
}

std::size_t SourceFiles::NumberOf(const std::string& path) {
  const auto [at, is_new] = numbers_.try_emplace(path, paths_.size());
  if (is_new) paths_.push_back(path);
  return at->second;
}

std::vector<SourceEntry> SourceFiles::List(const std::string& directory) {
  const auto found = listed_.find(directory);
  if (found != listed_.end()) return found->second;
  std::vector<SourceEntry> entries;
  const auto opened = Take(directories_->Open(directory, *storage_));
  for (EntryInfo& entry : Take(opened->List())) {
    const bool is_file = entry.kind == EntryKind::kFile || LeadsToFile(entry, *opened);
    entries.push_back({.name = std::move(entry.name),
                       .size = is_file ? entry.size_bytes : 0,
                       .is_file = is_file,
                       .kind = entry.kind});
  }
  KeepFew(listed_);
  return listed_[directory] = std::move(entries);
}

void CheckInside(const std::string& name, const std::string& where) {
  constexpr std::size_t kShownMax = 200;
  bool is_inside = !name.starts_with('/') && name.find('\0') == name.npos;
  std::string_view rest = name;
  std::string_view last;
  do {
    last = rest.substr(0, rest.find('/'));
    is_inside &= last != "..";
    rest.remove_prefix(std::min(rest.size(), last.size() + 1));
  } while (!rest.empty());
  is_inside &= !last.empty() && last != "." && !name.ends_with('/');
  if (is_inside) return;
  Fail(Code::kCorrupt, where, "file is named '", Printable(name.substr(0, kShownMax)),
       "', expected a relative path within the directory");
}

void CheckLinks(const std::string& directory, const std::string& name) {
  const std::optional<std::string> local = LocalPath(directory);
  if (!local) return;  // an object store has no links
  const std::string path = JoinPath(directory, name);
  std::error_code error;
  const fs::path inner = fs::weakly_canonical(JoinPath(*local, name), error);
  if (error) return;  // opening it will say why
  const fs::path outer = fs::weakly_canonical(*local, error);
  const auto [rest, at] = std::ranges::mismatch(outer, inner);
  if (error || rest == outer.end()) return;
  Fail(Code::kUnsupported, path,
       "a symbolic link out of the directory, expected a file within it; copy the directory with "
       "cp -rL, which follows links");
}

std::string WhatLinkIs(const std::string& directory, const std::string& name) {
  std::error_code error;
  const fs::file_status found =
      fs::status(JoinPath(LocalPath(directory).value_or(""), name), error);
  if (found.type() == fs::file_type::not_found) return "No such file or directory";
  if (error) return error.message();
  return found.type() == fs::file_type::directory ? "a directory" : "no regular file";
}

}  // namespace internal::foreign

Result<std::shared_ptr<const Directory>> ForeignDirectories::Open(const std::string& path,
                                                                  const Storage& storage) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(path);
    if (found != open_.end()) return found->second;
  }
  SEALPOINT_ASSIGN_OR_RETURN(std::shared_ptr<const Directory> opened, storage.OpenDirectory(path));
  const std::lock_guard lock(mutex_);
  internal::foreign::KeepFew(open_);
  return open_[path] = std::move(opened);
}

}  // namespace sealpoint
