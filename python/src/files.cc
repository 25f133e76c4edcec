// SPDX-License-Identifier: Apache-2.0
//
// Files of other programs, on any storage: read at offsets, and made for them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "python/src/gil.h"
#include "python/src/module.h"
#include "python/src/status.h"
#include "sealpoint/block_cache.h"
#include "sealpoint/interop.h"
#include "sealpoint/storage.h"

namespace sealpoint::python {
namespace {

// The bytes that an object of Python lends, while this is.
class Borrowed {
 public:
  Borrowed(nb::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) nb::raise_python_error();
  }
  ~Borrowed() { PyBuffer_Release(&buffer_); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  MutableByteSpan bytes() const {
    return {static_cast<std::byte*>(buffer_.buf), static_cast<std::size_t>(buffer_.len)};
  }

 private:
  Py_buffer buffer_{};
};

// "/a" and "b" of "/a/b"; "s3://c/a" and "b".
std::pair<std::string, std::string> SplitPath(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == path.npos) return {".", path};
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

nb::object EntryAt(nb::handle path) {
  const std::string text = PathOf(path);
  const auto [parent, name] = SplitPath(text);
  const Result<bool> is_directory = [&]() -> Result<bool> {
    const GilRelease released;
    const auto itself = DefaultStorage()->OpenDirectory(text);
    if (itself.ok()) return true;
    // The first error of an object store may be that there is an object, as its parent then shows.
    const auto directory = DefaultStorage()->OpenDirectory(parent);
    const auto entry = directory.ok() ? (*directory)->Stat(name) : directory.error();
    if (entry.ok()) return entry->kind == EntryKind::kDirectory;
    return itself.error().code() == Code::kNotFound ? entry.error() : itself.error();
  }();
  if (!is_directory.ok() && is_directory.error().code() == Code::kNotFound) return nb::none();
  return nb::bool_(Value(is_directory));
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
      .def("close", &MadeFile::Close, "Makes it durable; in an object store it is there now.");
  nb::class_<MadeFiles>(m, "NewFiles")
      .def(nb::init<nb::handle, std::vector<std::string>>(), nb::arg("directory"), nb::arg("names"),
           nb::sig("def __init__(self, directory: str, names: list[str]) -> None"))
      .def("begin", &MadeFiles::Begin, nb::arg("number"), nb::keep_alive<0, 1>())
      .def("publish", &MadeFiles::Publish)
      .def("close", &MadeFiles::Close, "Removes what was made, unless it was published.");
  m.def("files_left", FilesLeft, nb::arg("directory"),
        nb::sig("def files_left(directory: str) -> list[str]"),
        "What programs that were killed left of new files: the next NewFiles removes it.");
  m.def("is_directory_at", EntryAt, nb::arg("path"),
        nb::sig("def is_directory_at(path: str) -> bool | None"),
        "Whether what is at the path is a directory. None: nothing is there.");
}

}  // namespace sealpoint::python
