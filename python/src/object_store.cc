// SPDX-License-Identifier: Apache-2.0
//
// Object stores that are objects of Python.
#include "sealpoint/object_store.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "python/src/gil.h"
#include "python/src/module.h"
#include "python/src/status.h"
#include "python/src/values.h"
#include "sealpoint/storage.h"

namespace sealpoint::python {
namespace {

using StoredObject = decltype(ObjectPage::objects)::value_type;

// An object of Python that threads of the library hold, perhaps past the end of the interpreter.
class Kept {
 public:
  explicit Kept(nb::object object) : object_(std::move(object)) {}
  ~Kept() {
    if (!nb::is_alive()) {
      static_cast<void>(object_.release());
      return;
    }
    const GilAcquire acquired;
    object_.reset();
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

  // With the GIL.
  nb::handle get() const { return object_; }

 private:
  nb::object object_;
};

nb::object StorageModule() { return nb::module_::import_("sealpoint.storage"); }

// What a store's function raised, as sealpoint/storage says it.
Status RaisedBy(const nb::python_error& error, const std::string& path) {
  try {
    return StatusOf(StorageModule().attr("error_of")(error.value(), Text(path)));
  } catch (const std::exception& other) {
    return Status(Code::kIo, other.what()).AtPath(path);
  }
}

// Runs call() with the GIL. Returns Result<its type>, or Status if it has none. The mistakes of an
// answer (a missing attribute, another type) are errors of the store.
template <typename Call>
auto AskStore(const std::string& path, const Call& call) {
  using Value = decltype(call());
  using Outcome = std::conditional_t<std::is_void_v<Value>, Status, Result<Value>>;
  const GilAcquire acquired;
  try {
    if constexpr (std::is_void_v<Value>) {
      call();
      return Outcome();
    } else {
      return Outcome(call());
    }
  } catch (const nb::python_error& error) {
    return Outcome(RaisedBy(error, path));
  } catch (const std::exception& error) {
    return Outcome(
        Status(Code::kIo,
               std::string("the object store in Python returned an invalid value: ") + error.what())
            .AtPath(path));
  }
}

// The class Memory of the module: what a memoryview is made of. Each view of it, and each part of
// one, holds the object.
struct Memory {
  void* data;
  std::size_t size;
  bool is_read_only;
};

int GetBufferOfMemory(PyObject* self, Py_buffer* buffer, int flags) {
  const auto* memory = nb::inst_ptr<Memory>(self);
  return PyBuffer_FillInfo(buffer, self, memory->data, static_cast<Py_ssize_t>(memory->size),
                           memory->is_read_only ? 1 : 0, flags);
}

// Memory of the library that Python sees during one call. End() takes it back, and throws if a
// part of it is still held. All with the GIL.
class Lent {
 public:
  explicit Lent(ByteSpan bytes) : Lent(const_cast<std::byte*>(bytes.data()), bytes.size(), true) {}
  explicit Lent(MutableByteSpan bytes) : Lent(bytes.data(), bytes.size(), false) {}
  Lent(Lent&&) = default;
  Lent& operator=(Lent&&) = delete;

  const nb::object& view() const { return view_; }
  void End() {
    view_.attr("release")();
    view_.reset();
    if (Py_REFCNT(memory_.ptr()) == 1) return;
    throw std::logic_error("it still holds memory that was lent for a call only");
  }

 private:
  Lent(std::byte* data, std::size_t size, bool is_read_only) {
    static char none = 0;
    void* const begin = size == 0 ? static_cast<void*>(&none) : data;
    memory_ = nb::cast(Memory{.data = begin, .size = size, .is_read_only = is_read_only});
    PyObject* view = PyMemoryView_FromObject(memory_.ptr());
    if (view == nullptr) nb::raise_python_error();
    view_ = nb::steal(view);
  }

  nb::object memory_;
  nb::object view_;
};

// Copies without the GIL what has the buffer protocol. Raises if the sizes differ.
void CopyBuffer(nb::handle from, MutableByteSpan to) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(from.ptr(), &buffer, PyBUF_SIMPLE) != 0) nb::raise_python_error();
  const auto size = static_cast<std::size_t>(buffer.len);
  if (size == to.size() && size > 0) {
    const GilRelease released;
    std::memcpy(to.data(), buffer.buf, size);
  }
  PyBuffer_Release(&buffer);
  if (size != to.size()) {
    const std::string sizes =
        std::to_string(size) + " bytes, expected " + std::to_string(to.size());
    throw nb::value_error(sizes.c_str());
  }
}

Bytes CopyOfBuffer(nb::handle from) {
  Bytes bytes(nb::len(from));
  CopyBuffer(from, bytes);
  return bytes;
}

// Bytes of Python's own, copied without the GIL.
nb::object CopyForPython(ByteSpan bytes) {
  PyObject* made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes.size()));
  if (made == nullptr) nb::raise_python_error();
  nb::object object = nb::steal(made);
  if (!bytes.empty()) {
    char* const to = PyBytes_AsString(made);
    const GilRelease released;
    std::memcpy(to, bytes.data(), bytes.size());
  }
  return object;
}

StoredObject StoredObjectOf(nb::handle object) {
  return {.key = TextOf(object.attr("key")),
          .size_bytes = nb::cast<std::uint64_t>(object.attr("size_bytes")),
          .etag = TextOf(object.attr("etag"))};
}

class PythonUpload final : public ObjectUpload {
 public:
  PythonUpload(nb::object upload, std::string path)
      : upload_(std::move(upload)), path_(std::move(path)) {}
  ~PythonUpload() override {
    if (!is_over_ && nb::is_alive()) Abort();
  }

  Status Append(ByteSpan part, std::function<void()> released) override {
    Status status = AskStore(path_, [&] {
      if (failure_.ok()) upload_.get().attr("append")(CopyForPython(part));
    });
    if (released) released();
    if (failure_.ok()) failure_ = std::move(status);
    return failure_;
  }

  Status Complete() override {
    if (!failure_.ok()) return failure_;
    failure_ = AskStore(path_, [&] { upload_.get().attr("complete")(); });
    is_over_ = failure_.ok();
    return failure_;
  }

  void Abort() override {
    is_over_ = true;
    static_cast<void>(AskStore(path_, [&] { upload_.get().attr("abort")(); }));
  }

 private:
  const Kept upload_;
  const std::string path_;
  Status failure_;
  bool is_over_ = false;
};

class PythonObjectStore final : public ObjectStore {
 public:
  // With the GIL. Raises what its attributes raise.
  explicit PythonObjectStore(const nb::object& store)
      : store_(store),
        uri_(nb::cast<std::string>(store.attr("uri"))),
        part_size_bytes_(nb::cast<std::uint64_t>(store.attr("part_size_bytes"))) {}

  const std::string& uri() const override { return uri_; }
  std::uint64_t part_size_bytes() const override { return part_size_bytes_; }

  Status Put(const std::string& key, ByteSpan content) override {
    return PutBy("put", key, content);
  }

  Status PutIfAbsent(const std::string& key, ByteSpan content) override {
    return PutBy("put_if_absent", key, content);
  }

  Result<std::unique_ptr<ObjectUpload>> StartUpload(const std::string& key) override {
    const std::string path = JoinPath(uri_, key);
    return AskStore(path, [&]() -> std::unique_ptr<ObjectUpload> {
      return std::make_unique<PythonUpload>(Call("start_upload", Text(key)), path);
    });
  }

  Result<std::string> Copy(const StoredObject& from, const std::string& to) override {
    return AskStore(JoinPath(uri_, to), [&] {
      const nb::object stored =
          StorageModule().attr("StoredObject")(Text(from.key), from.size_bytes, Text(from.etag));
      return TextOf(Call("copy", stored, Text(to)));
    });
  }

  Result<StoredObject> GetFirst(const std::string& key, std::size_t size_max,
                                Bytes& out) const override {
    return AskStore(JoinPath(uri_, key), [&] {
      const nb::object pair = Call("get_first", Text(key), size_max);
      Bytes first = CopyOfBuffer(nb::object(pair[1]));
      if (first.size() > size_max) first.resize(size_max);
      out = std::move(first);
      return StoredObjectOf(nb::object(pair[0]));
    });
  }

  Status GetRanges(const StoredObject& object, std::span<const ObjectRange> ranges) const override {
    return AskStore(JoinPath(uri_, object.key), [&] {
      std::vector<Lent> lent;
      nb::list pairs;
      for (const ObjectRange& range : ranges) {
        lent.emplace_back(range.out);
        pairs.append(nb::make_tuple(range.offset, lent.back().view()));
      }
      const nb::object stored = StorageModule().attr("StoredObject")(
          Text(object.key), object.size_bytes, Text(object.etag));
      Call("get_ranges", stored, pairs);
      for (Lent& one : lent) one.End();
    });
  }

  Result<StoredObject> Head(const std::string& key) const override {
    return AskStore(JoinPath(uri_, key), [&] { return StoredObjectOf(Call("head", Text(key))); });
  }

  Result<ObjectPage> List(const std::string& prefix, const std::string& next) const override {
    return AskStore(JoinPath(uri_, prefix), [&] {
      const nb::object listed = Call("list", Text(prefix), Text(next));
      ObjectPage page;
      for (const nb::handle one : nb::object(listed.attr("objects"))) {
        page.objects.push_back(StoredObjectOf(one));
      }
      for (const nb::handle one : nb::object(listed.attr("prefixes"))) {
        page.prefixes.push_back(TextOf(one));
      }
      page.next = TextOf(listed.attr("next"));
      return page;
    });
  }

  Status Delete(std::span<const std::string> keys) override {
    return AskStore(keys.empty() ? uri_ : JoinPath(uri_, keys.front()), [&] {
      nb::list list;
      for (const std::string& key : keys) list.append(Text(key));
      Call("delete", list);
    });
  }

  Result<std::vector<UnfinishedUpload>> ListUploads(const std::string& prefix) const override {
    return AskStore(JoinPath(uri_, prefix), [&] {
      std::vector<UnfinishedUpload> uploads;
      for (const nb::handle upload : Call("list_uploads", Text(prefix))) {
        uploads.push_back({.key = TextOf(upload.attr("key")),
                           .upload_id = TextOf(upload.attr("upload_id")),
                           .begun_unix_s = nb::cast<std::uint64_t>(upload.attr("begun_unix_s"))});
      }
      return uploads;
    });
  }

  Status AbortUpload(const UnfinishedUpload& upload) override {
    return AskStore(JoinPath(uri_, upload.key), [&] {
      Call("abort_upload", StorageModule().attr("UnfinishedUpload")(
                               Text(upload.key), Text(upload.upload_id), upload.begun_unix_s));
    });
  }

 private:
  template <typename... Arguments>
  nb::object Call(const char* function, Arguments&&... arguments) const {
    return store_.get().attr(function)(std::forward<Arguments>(arguments)...);
  }

  Status PutBy(const char* function, const std::string& key, ByteSpan content) {
    return AskStore(JoinPath(uri_, key), [&] {
      Lent lent(content);
      Call(function, Text(key), lent.view());
      lent.End();
    });
  }

  const Kept store_;
  const std::string uri_;
  const std::uint64_t part_size_bytes_;
};

void Register(const std::string& scheme, nb::object factory, std::uint64_t upload_memory_bytes) {
  const auto kept = std::make_shared<const Kept>(std::move(factory));
  const GilRelease released;
  Check(RegisterStorage(
      scheme,
      [kept, upload_memory_bytes](std::string_view authority) -> Result<std::shared_ptr<Storage>> {
        const std::string path(authority);
        auto store = AskStore(path, [&]() -> std::shared_ptr<ObjectStore> {
          return std::make_shared<PythonObjectStore>(nb::object(kept->get()(Text(path))));
        });
        if (!store.ok()) return store.error();
        return ObjectStorage(std::move(store).value(),
                             {.upload_memory_bytes = upload_memory_bytes});
      }));
}

void CopyInto(nb::handle from, nb::handle to) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(to.ptr(), &buffer, PyBUF_WRITABLE) != 0) nb::raise_python_error();
  const std::unique_ptr<Py_buffer, decltype(&PyBuffer_Release)> held(&buffer, PyBuffer_Release);
  CopyBuffer(from, {static_cast<std::byte*>(buffer.buf), static_cast<std::size_t>(buffer.len)});
}

}  // namespace

void BindObjectStore(nb::module_& m) {
  PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(GetBufferOfMemory)},
                         {0, nullptr}};
  nb::class_<Memory>(m, "Memory", nb::type_slots(slots));
  m.def("register_storage", Register, nb::arg("scheme"), nb::arg("factory"),
        nb::arg("upload_memory_bytes"),
        nb::sig("def register_storage(scheme: str, factory: collections.abc.Callable[[str], "
                "object], upload_memory_bytes: int) -> None"));
  m.def("copy_into", CopyInto, nb::arg("source"), nb::arg("destination"),
        nb::sig("def copy_into(source: object, destination: memoryview) -> None"),
        "Copies bytes between memory of equal size without the GIL. Raises ValueError if the sizes "
        "differ.");
}

}  // namespace sealpoint::python
