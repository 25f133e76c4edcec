// SPDX-License-Identifier: Apache-2.0
//
// Paths of any storage: what is there, small files, removal and publication; and files of other
// programs, read at offsets and made for them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/src/borrowed.h"
#include "python/src/gil.h"
#include "python/src/module.h"
#include "python/src/status.h"
#include "python/src/values.h"
#include "sealpoint/interop.h"
#include "sealpoint/object_store.h"
#include "sealpoint/series.h"
#include "sealpoint/storage.h"

namespace sealpoint::python {
namespace {

// "/a" and "b" of "/a/b/"; "s3://c/a" and "b". A root, which is in no directory, has an empty name.
std::pair<std::string, std::string> SplitPath(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::size_t slash = path.rfind('/');
  if (slash == path.npos) return {".", path};
  if (slash > 1 && path.compare(slash - 2, 3, "://") == 0) return {path, ""};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

struct SourceFile {
  std::shared_ptr<const ReadableFile> file;

  void ReadInto(std::uint64_t offset, nb::handle out) const {
    const Borrowed borrowed(out, PyBUF_WRITABLE);
    const GilRelease released;
    Check(file->ReadAt(offset, borrowed.bytes()));
  }
};

// Opens files; those far away share blocks. Any thread.
class SourceFiles {
 public:
  SourceFiles(std::uint64_t block_size_bytes, std::size_t block_count_max)
      : blocks_(BlockCache::Create(block_size_bytes, block_count_max)) {}

  SourceFile Open(nb::handle path) {
    const std::string text = PathOf(path);
    const auto [parent, name] = SplitPath(text);
    const GilRelease released;
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(text);
    if (found != open_.end()) return {found->second};
    if (open_.size() >= kOpenMax) open_.clear();
    std::shared_ptr<const ReadableFile> file =
        blocks_->Wrap(Value(DirectoryAt(parent)->OpenForRead(name, IoMode::kBuffered)));
    open_.emplace(text, file);
    return {std::move(file)};
  }

 private:
  static constexpr std::size_t kOpenMax = 32;

  // To open one in an object store is to list it. Precondition: the mutex is held.
  std::shared_ptr<const Directory> DirectoryAt(const std::string& path) {
    if (directory_ == nullptr || directory_->path() != path) {
      directory_ = Value(DefaultStorage()->OpenDirectory(path));
    }
    return directory_;
  }

  const std::shared_ptr<BlockCache> blocks_;
  std::mutex mutex_;
  std::shared_ptr<const Directory> directory_;
  std::map<std::string, std::shared_ptr<const ReadableFile>> open_;  // a request each in a store
};

struct MadeFile {
  std::unique_ptr<WritableFile> file;

  explicit MadeFile(std::unique_ptr<WritableFile> begun) : file(std::move(begun)) {}
  MadeFile(MadeFile&&) = default;
  MadeFile& operator=(MadeFile&&) = delete;
  // A store in Python gives up what is not closed, perhaps while an error is on its way.
  ~MadeFile() {
    const nb::error_scope kept;
    file.reset();
  }

  void WriteAt(std::uint64_t offset, nb::handle data) const {
    const Borrowed borrowed(data, PyBUF_SIMPLE);
    const GilRelease released;
    Check(file->WriteAt(offset, borrowed.bytes()));
  }

  void Close() const {
    const GilRelease released;
    Check(file->Sync());
    Check(file->Close());
  }
};

class MadeFiles {
 public:
  MadeFiles(nb::handle directory, std::vector<std::string> names) {
    const std::string path = PathOf(directory);
    const GilRelease released;
    const std::shared_ptr<Storage> storage = DefaultStorage();
    Check(storage->CreateDirectories(path));
    directory_ = Value(storage->OpenDirectory(path));
    files_ = Value(NewFiles::Create(*directory_, std::move(names)));
  }

  MadeFile Begin(std::size_t number) const {
    const GilRelease released;
    return MadeFile(Value(files_->Begin(number)));
  }

  void Publish() {
    const GilRelease released;
    Check(files_->Publish());
  }

  // What was begun is closed, or was dropped.
  void Close() {
    const GilRelease released;
    files_.reset();
  }

 private:
  std::unique_ptr<Directory> directory_;
  std::unique_ptr<NewFiles> files_;
};

std::vector<std::string> FilesLeft(nb::handle directory) {
  const std::string path = PathOf(directory);
  const GilRelease released;
  const auto opened = DefaultStorage()->OpenDirectory(path);
  if (!opened.ok() && opened.error().code() == Code::kNotFound) return {};
  if (!opened.ok()) throw StatusError(opened.error());
  return Value(NewFiles::Left(**opened));
}

// Calls work(storage, path) without the GIL.
template <typename Work>
auto OnStorage(nb::handle path, const Work& work) {
  const std::string text = PathOf(path);
  const GilRelease released;
  return work(*DefaultStorage(), text);
}

const char* EntryKindName(EntryKind kind) {
  switch (kind) {
    case EntryKind::kFile:
      return "file";
    case EntryKind::kDirectory:
      return "directory";
    case EntryKind::kSymlink:
      return "link";
    case EntryKind::kOther:
      break;
  }
  return "other";
}

nb::object StatEntry(nb::handle path) {
  const auto entry = Value(OnStorage(path, StatPath));
  if (!entry) return nb::none();
  return nb::make_tuple(EntryKindName(entry->kind), entry->size_bytes);
}

// Nothing if there is no such directory.
std::optional<std::vector<EntryInfo>> Entries(const Storage& storage, const std::string& path) {
  const auto directory = storage.OpenDirectory(path);
  if (directory.ok()) return Value((*directory)->List());
  const auto entry = Value(StatPath(storage, path));
  if (!entry || entry->kind != EntryKind::kDirectory) return std::nullopt;
  throw StatusError(directory.error());
}

nb::object ListDirectory(nb::handle path) {
  const auto entries = OnStorage(path, Entries);
  if (!entries) return nb::none();
  nb::list list;
  for (const EntryInfo& entry : *entries) {
    list.append(nb::make_tuple(Text(entry.name), EntryKindName(entry.kind), entry.size_bytes));
  }
  return list;
}

// Nothing if there is no regular file.
std::optional<Bytes> FrontOf(const Storage& storage, const std::string& path,
                             std::size_t size_max) {
  const auto [parent, name] = SplitPath(path);
  const auto directory = storage.OpenDirectory(parent);
  const auto file =
      directory.ok() ? (*directory)->OpenForRead(name, IoMode::kBuffered) : directory.error();
  if (!file.ok()) {
    const auto entry = Value(StatPath(storage, path));
    if (!entry || entry->kind != EntryKind::kFile) return std::nullopt;
    throw StatusError(file.error());
  }
  Bytes front(std::min<std::uint64_t>(size_max, (*file)->size_bytes()));
  Check((*file)->ReadAt(0, front));
  return front;
}

nb::object ReadFile(nb::handle path, std::size_t size_max) {
  const auto front = OnStorage(path, [&](const Storage& storage, const std::string& text) {
    return FrontOf(storage, text, size_max);
  });
  return front ? nb::object(BytesOf(*front)) : nb::none();
}

void WriteFile(nb::handle path, const nb::bytes& content) {
  const ByteSpan bytes = SpanOf(content);
  OnStorage(path, [&](Storage& storage, const std::string& text) {
    const auto [parent, name] = SplitPath(text);
    Check(storage.CreateDirectories(parent));
    Check(Value(storage.OpenDirectory(parent))->Replace(name, bytes));
  });
}

void RemovePath(nb::handle path) {
  OnStorage(path,
            [](Storage& storage, const std::string& text) { Check(RemoveAll(storage, text)); });
}

void TakeOut(nb::handle path, std::vector<std::string> first, std::vector<std::string> also,
             bool everything) {
  OnStorage(path, [&](Storage& storage, const std::string& text) {
    Check(RemoveCheckpoint(
        storage, text,
        {.first = std::move(first), .also = std::move(also), .everything = everything}));
  });
}

void SyncDirectory(nb::handle path) {
  OnStorage(path, [](const Storage& storage, const std::string& text) {
    Check(Value(storage.OpenDirectory(text))->Sync());
  });
}

void SyncAll(nb::handle path) {
  OnStorage(path, [](Storage& storage, const std::string& text) { Check(storage.SyncAll(text)); });
}

void Publish(nb::handle from, nb::handle to) {
  const std::string target = PathOf(to);
  OnStorage(from, [&](Storage& storage, const std::string& text) {
    Check(storage.SyncAll(text));
    Check(storage.Move(text, target));
  });
}

std::uint64_t FreeBytes(nb::handle directory) {
  return OnStorage(directory, [](const Storage& storage, const std::string& text) {
    return Value(Value(storage.OpenDirectory(text))->FreeSpace()).free_bytes;
  });
}

nb::str Describe(nb::handle path) {
  const PlaceDescription found = OnStorage(path, [](const Storage&, const std::string& text) {
    return DescribePlace(text, {.opens_series = "; sealpoint.Series(path).open_newest() opens it"});
  });
  return Text(found.text);
}

void BindPaths(nb::module_& m) {
  m.def("stat_path", StatEntry, nb::arg("path"),
        nb::sig("def stat_path(path: str) -> tuple[str, int] | None"),
        "Kind (file, directory, broken link, other) and size in bytes. None: the path does not "
        "exist.");
  m.def("list_directory", ListDirectory, nb::arg("directory"),
        nb::sig("def list_directory(directory: str) -> list[tuple[str, str, int]] | None"),
        "Name, kind and size in bytes of each entry. Links are not followed. None: the directory "
        "does not exist.");
  m.def("read_file", ReadFile, nb::arg("path"), nb::arg("size_max"),
        nb::sig("def read_file(path: str, size_max: int) -> bytes | None"),
        "First bytes of a file. None: the file does not exist.");
  m.def("write_file", WriteFile, nb::arg("path"), nb::arg("content"),
        nb::sig("def write_file(path: str, content: bytes) -> None"),
        "Writes a file atomically and durably. Replaces an existing file and creates missing "
        "directories.");
  m.def("remove_path", RemovePath, nb::arg("path"), nb::sig("def remove_path(path: str) -> None"),
        "Removes a file, or a directory with its content. Succeeds if the path does not exist.");
  m.def("remove_checkpoint", TakeOut, nb::arg("path"), nb::arg("first"), nb::arg("also"),
        nb::arg("everything"),
        nb::sig("def remove_checkpoint(path: str, first: list[str], also: list[str], everything: "
                "bool) -> None"),
        "Removes a checkpoint: the files ``first``, then the marker, then the rest. Other files "
        "stay unless ``everything``.");
  m.def("sync_directory", SyncDirectory, nb::arg("path"),
        nb::sig("def sync_directory(path: str) -> None"));
  m.def("sync_all", SyncAll, nb::arg("path"), nb::sig("def sync_all(path: str) -> None"),
        "Makes an existing file, or a directory with its content, durable.");
  m.def("publish", Publish, nb::arg("source"), nb::arg("destination"),
        nb::sig("def publish(source: str, destination: str) -> None"),
        "Makes a file or directory durable and moves it to its final path, which must be absent or "
        "an empty directory. UnsupportedError in object stores.");
  m.def("free_bytes", FreeBytes, nb::arg("directory"),
        nb::sig("def free_bytes(directory: str) -> int"),
        "2^64 - 1 if the storage has no limit or does not report it.");
  m.def("describe_place", Describe, nb::arg("path"),
        nb::sig("def describe_place(path: str) -> str"));
}

}  // namespace

void BindFiles(nb::module_& m) {
  nb::class_<SourceFile>(m, "SourceFile")
      .def_prop_ro("size", [](const SourceFile& file) { return file.file->size_bytes(); })
      .def("read_into", &SourceFile::ReadInto, nb::arg("offset"), nb::arg("out"),
           nb::sig("def read_into(self, offset: int, out: memoryview) -> None"));
  nb::class_<SourceFiles>(m, "SourceFiles")
      .def(nb::init<std::uint64_t, std::size_t>(), nb::arg("block_size_bytes"),
           nb::arg("block_count_max"))
      .def("open", &SourceFiles::Open, nb::arg("path"),
           nb::sig("def open(self, path: str) -> SourceFile"));
  nb::class_<MadeFile>(m, "NewFile")
      .def("write_at", &MadeFile::WriteAt, nb::arg("offset"), nb::arg("data"),
           nb::sig("def write_at(self, offset: int, data: memoryview) -> None"))
      .def("close", &MadeFile::Close, "Makes the file durable. In an object store it now exists.");
  nb::class_<MadeFiles>(m, "NewFiles")
      .def(nb::init<nb::handle, std::vector<std::string>>(), nb::arg("directory"), nb::arg("names"),
           nb::sig("def __init__(self, directory: str, names: list[str]) -> None"))
      .def("begin", &MadeFiles::Begin, nb::arg("number"), nb::keep_alive<0, 1>())
      .def("publish", &MadeFiles::Publish)
      .def("close", &MadeFiles::Close, "Removes the new files, unless they were published.");
  m.def("files_left", FilesLeft, nb::arg("directory"),
        nb::sig("def files_left(directory: str) -> list[str]"),
        "Remains of killed programs, which the next NewFiles removes.");
  BindPaths(m);
}

}  // namespace sealpoint::python
