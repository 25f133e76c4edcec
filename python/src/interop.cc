// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/interop.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "python/src/borrowed.h"
#include "python/src/gil.h"
#include "python/src/module.h"
#include "python/src/status.h"
#include "python/src/values.h"

// Checkpoints of foreign formats, as sealpoint/interop makes states of them.

namespace sealpoint::python {
namespace {

nb::str Interned(std::string_view text) {
  PyObject* made = Text(text).release().ptr();
  PyUnicode_InternInPlace(&made);
  return nb::steal<nb::str>(made);
}

nb::tuple TupleOf(const Shape& shape) {
  PyObject* const made = PyTuple_New(static_cast<Py_ssize_t>(shape.size()));
  if (made == nullptr) nb::raise_python_error();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    PyTuple_SetItem(made, static_cast<Py_ssize_t>(i), nb::cast(shape[i]).release().ptr());
  }
  return nb::steal<nb::tuple>(made);
}

nb::tuple PairOf(const Box& box) {
  return nb::make_tuple(TupleOf(box.offset), TupleOf(box.extent));
}

// The node as Python's json has it. Frees what is converted: both would be twice the memory.
// `unread`: stands in the place of what could not be read.
nb::object TakeNode(ForeignNode node, const nb::list& unread) {  // recursive, 200 levels or so
  if (node.if_bool() != nullptr) return nb::cast(*node.if_bool());
  if (node.if_int() != nullptr) return nb::cast(*node.if_int());
  if (node.if_float() != nullptr) return nb::cast(*node.if_float());
  if (node.if_text() != nullptr) return Text(*node.if_text());
  if (node.if_unread() != nullptr) return unread[node.if_unread()->position];
  if (node.if_list() != nullptr) {
    nb::list items;
    for (ForeignNode& item : *node.if_list()) items.append(TakeNode(std::move(item), unread));
    return items;
  }
  if (node.if_object() == nullptr) return nb::none();
  nb::dict members;
  for (ForeignNode::Member& member : *node.if_object()) {
    const bool is_kind = member.key == "$" && member.value.if_text() != nullptr;
    const nb::object value = is_kind ? nb::object(Interned(*member.value.if_text()))
                                     : TakeNode(std::move(member.value), unread);
    members[Interned(member.key)] = value;
  }
  return members;
}

// A checkpoint, and how it is read.
struct Foreign {
  ForeignCheckpoint checkpoint;
  ForeignOptions options;

  const ForeignTensor& At(const std::string& name) const {
    const auto found = checkpoint.tensors.find(name);
    if (found != checkpoint.tensors.end()) return found->second;
    throw StatusError(Status(Code::kNotFound, "no such tensor").AtTensor(name));
  }
};

std::optional<Foreign> ReadForeignPath(nb::handle path, bool drop_unknown, bool goes_on,
                                       const std::vector<std::string>& per_rank, bool allow_part,
                                       const std::vector<std::string>& allow_missing,
                                       nb::handle base,
                                       std::optional<std::uint64_t> metadata_memory_bytes) {
  const std::string text = PathOf(path);
  ForeignOptions options{.drop_unknown = drop_unknown,
                         .goes_on = goes_on,
                         .per_rank = per_rank,
                         .allow_part = allow_part,
                         .allow_missing = allow_missing,
                         .base = base.is_none() ? "" : PathOf(base),
                         .metadata_memory_bytes = metadata_memory_bytes};
  std::optional<ForeignCheckpoint> read = [&] {
    const GilRelease released;
    return Value(ReadForeign(text, options));
  }();
  if (!read) return std::nullopt;
  return Foreign{.checkpoint = *std::move(read), .options = std::move(options)};
}

nb::object NewestIteration(nb::handle path) {
  const std::string run = PathOf(path);
  const std::optional<std::string> newest = [&] {
    const GilRelease released;
    return Value(NewestForeignDirectory(run));
  }();
  return newest ? nb::object(Text(*newest)) : nb::none();
}

// In the order in which they lie in the files, so that these are read from front to back.
nb::list TensorsOf(const Foreign& foreign) {
  std::vector<const std::pair<const std::string, ForeignTensor>*> order;
  for (const auto& entry : foreign.checkpoint.tensors) order.push_back(&entry);
  const auto place = [](const auto* entry) {
    const std::vector<ForeignPart>& parts = entry->second.parts;
    const std::string_view name = entry->first;
    if (parts.empty()) return std::tuple<std::size_t, std::uint64_t, std::string_view>(0, 0, name);
    const ForeignPart& first = parts.front();
    return std::tuple<std::size_t, std::uint64_t, std::string_view>(
        first.file, first.entry_begin + first.begin, name);
  };
  std::ranges::sort(order, {}, place);
  nb::list tensors;
  for (const auto* const entry : order) {
    const ForeignTensor& tensor = entry->second;
    const bool has_items = !tensor.parts.empty() && tensor.parts.front().is_item;
    tensors.append(nb::make_tuple(Text(entry->first), Interned(DTypeName(tensor.dtype)),
                                  TupleOf(tensor.shape), has_items));
  }
  return tensors;
}

nb::object BoxesOf(const Foreign& foreign, nb::handle name) {
  const ForeignTensor& tensor = foreign.At(TextOf(name));
  if (tensor.flattened_shape) return nb::none();
  nb::list boxes;
  for (const ForeignPart& part : tensor.parts) {
    if (part.run) return nb::none();
    boxes.append(PairOf(part.box));
  }
  return boxes;
}

nb::object RunOf(const ForeignPart& part) {
  return part.run ? nb::object(nb::make_tuple(part.run->first, part.run->second)) : nb::none();
}

nb::list PartsOf(const Foreign& foreign, nb::handle name) {
  const std::string text = TextOf(name);
  const std::vector<ForeignPart> parts = [&] {
    const GilRelease released;
    return Value(ResolveParts(foreign.checkpoint, text, foreign.options));
  }();
  nb::list result;
  for (const ForeignPart& part : parts) {
    result.append(
        nb::make_tuple(PairOf(part.box), Text(foreign.checkpoint.paths.at(part.file)),
                       nb::make_tuple(Text(part.entry_name), part.entry_begin, part.entry_size,
                                      part.crc ? nb::cast(*part.crc) : nb::none()),
                       part.begin, part.strides ? nb::object(TupleOf(*part.strides)) : nb::none(),
                       RunOf(part), part.flips_sign));
  }
  return result;
}

// Borrows the checkpoint.
class DeltaReader {
 public:
  DeltaReader(const Foreign& foreign, const std::string& name, std::uint64_t memory_bytes)
      : reader_([&] {
          const GilRelease released;
          return Value(
              ForeignDeltaReader::Open(foreign.checkpoint, name, memory_bytes, foreign.options));
        }()) {}

  void ReadInto(std::uint64_t offset, nb::handle out) const {
    const Borrowed borrowed(out, PyBUF_WRITABLE);
    const GilRelease released;
    Check(reader_->Read(offset, borrowed.bytes()));
  }

  void Finish() const {
    const GilRelease released;
    Check(reader_->Finish());
  }

 private:
  std::unique_ptr<ForeignDeltaReader> reader_;
};

std::optional<DeltaReader> DeltaReaderOf(const Foreign& foreign, nb::handle name,
                                         std::uint64_t memory_bytes) {
  const std::string text = TextOf(name);
  if (foreign.At(text).deltas.empty()) return std::nullopt;
  return std::make_optional<DeltaReader>(foreign, text, memory_bytes);
}

class DeltaEncoder {
 public:
  explicit DeltaEncoder(std::uint64_t size_bytes)
      : encoder_(Value(ForeignDeltaEncoder::Create(size_bytes))) {}

  nb::bytes Add(nb::handle base, nb::handle current) const {
    const Borrowed old(base, PyBUF_SIMPLE);
    const Borrowed borrowed(current, PyBUF_SIMPLE);
    Bytes frame;
    {
      const GilRelease released;
      Check(encoder_->Add(old.bytes(), borrowed.bytes(), frame));
    }
    return BytesOf(frame);
  }

  bool is_changed() const { return encoder_->is_changed(); }
  std::string checksum() const { return encoder_->checksum(); }

 private:
  std::unique_ptr<ForeignDeltaEncoder> encoder_;
};

nb::dict ObjectsOf(const Foreign& foreign) {
  nb::dict objects;
  for (const auto& [name, object] : foreign.checkpoint.objects) {
    objects[Text(name)] = nb::make_tuple(Text(object.media_type), BytesOf(object.bytes));
  }
  return objects;
}

nb::list FilesOf(const Foreign& foreign) {
  nb::list files;
  for (const ForeignFile& file : foreign.checkpoint.files) {
    files.append(nb::make_tuple(Text(file.name), file.size_bytes, Text(file.meaning)));
  }
  return files;
}

nb::list LeftOutOf(const Foreign& foreign) {
  nb::list left_out;
  for (const ForeignLeftOut& entry : foreign.checkpoint.left_out) {
    left_out.append(nb::make_tuple(Text(entry.name), entry.size_bytes, Text(entry.reason),
                                   entry.may_hold_state));
  }
  return left_out;
}

nb::list UnreadOf(const Foreign& foreign) {
  nb::list unread;
  for (const ForeignUnread& entry : foreign.checkpoint.unread) {
    unread.append(nb::make_tuple(ErrorOf(entry.error), entry.is_beside));
  }
  return unread;
}

nb::list NotesOf(const Foreign& foreign) {
  nb::list notes;
  for (const std::string& note : foreign.checkpoint.notes) notes.append(Text(note));
  return notes;
}

nb::list MissingOf(const Foreign& foreign) {
  nb::list names;
  for (const std::string& name : foreign.checkpoint.missing) names.append(Text(name));
  return names;
}

nb::list TakeRankValues(Foreign& foreign, const nb::list& unread) {
  nb::list values;
  for (ForeignNode& value : foreign.checkpoint.rank_values) {
    values.append(TakeNode(std::move(value), unread));
  }
  return values;
}

nb::list DTypes() {
  nb::list rows;
  for (const ForeignDType& row : ForeignDTypes()) {
    rows.append(nb::make_tuple(Text(DTypeName(row.dtype)), DTypeSizeBytes(row.dtype),
                               Text(row.name), Text(row.torch_storage), Text(row.numpy_code)));
  }
  return rows;
}

nb::tuple GgufRows() {
  nb::list types;
  for (const GgufType& row : GgufTypes()) {
    types.append(nb::make_tuple(Text(row.name), row.id, row.block_elements, row.block_bytes,
                                Text(DTypeName(row.dtype))));
  }
  nb::list values;
  for (const std::string_view name : GgufValueTypes()) values.append(Text(name));
  return nb::make_tuple(types, values);
}

void BindDeltas(nb::module_& m) {
  nb::class_<DeltaReader>(m, "DeltaReader", "Reads the bytes of a tensor that deltas lead to.")
      .def("read_into", &DeltaReader::ReadInto, nb::arg("offset"), nb::arg("out"),
           nb::sig("def read_into(self, offset: int, out: object) -> None"))
      .def("finish", &DeltaReader::Finish, "Compares the checksums.");
  nb::class_<DeltaEncoder>(m, "DeltaEncoder", "Makes the delta of one tensor.")
      .def(nb::init<std::uint64_t>(), nb::arg("size_bytes"))
      .def("add", &DeltaEncoder::Add, nb::arg("base"), nb::arg("current"),
           nb::sig("def add(self, base: object, current: object) -> bytes"),
           "Adds the next bytes of both. Returns the next bytes of the zstd frame.")
      .def_prop_ro("is_changed", &DeltaEncoder::is_changed)
      .def_prop_ro("checksum", &DeltaEncoder::checksum);
}

void BindGguf(nb::module_& m) {
  m.def("gguf_types", GgufRows,
        nb::sig("def gguf_types() -> tuple[list[tuple[str, int, int, int, str]], list[str]]"),
        "Types of tensors: name, id, elements and bytes of a block, dtype. Types of values: names, "
        "by id.");
}

}  // namespace

void BindInterop(nb::module_& m) {
  BindDeltas(m);
  BindGguf(m);
  nb::class_<Foreign>(m, "Foreign", "A checkpoint of a foreign format, for sealpoint.interop.")
      .def_prop_ro(
          "format", [](const Foreign& foreign) { return Text(foreign.checkpoint.format); },
          nb::sig("def format(self) -> str"))
      .def_prop_ro("step", [](const Foreign& foreign) { return foreign.checkpoint.step; })
      .def_prop_ro(
          "digest", [](const Foreign& foreign) { return Text(foreign.checkpoint.digest); },
          nb::sig("def digest(self) -> str"))
      .def("tensors", TensorsOf,
           nb::sig("def tensors(self) -> list[tuple[str, str, tuple[int, ...], bool]]"),
           "Name, dtype, shape, and whether its parts are items to be read by `parts`.")
      .def(
          "boxes", BoxesOf, nb::arg("name"),
          nb::sig(
              "def boxes(self, name: str) -> list[tuple[tuple[int, ...], tuple[int, ...]]] | None"),
          "Offset and extent in a tensor. None: unknown until `parts` is called, or parts of a "
          "box.")
      .def("parts", PartsOf, nb::arg("name"),
           nb::sig("def parts(self, name: str) -> list[tuple[tuple[tuple[int, ...], tuple[int, "
                   "...]], str, tuple[str, int, int, int | None], int, tuple[int, ...] | None, "
                   "tuple[int, int] | None, bool]]"),
           "Locations of a tensor's elements: box; path; name, begin, size and CRC-32 of the "
           "entry; begin within it; strides; run; whether signs are flipped. Thread-safe.")
      .def("delta_reader", DeltaReaderOf, nb::arg("name"), nb::arg("memory_bytes"),
           nb::keep_alive<0, 1>(),
           nb::sig("def delta_reader(self, name: str, memory_bytes: int) -> DeltaReader | None"),
           "None: the tensor has no deltas.")
      .def(
          "has_deltas",
          [](const Foreign& foreign, nb::handle name) {
            return !foreign.At(TextOf(name)).deltas.empty();
          },
          nb::arg("name"), nb::sig("def has_deltas(self, name: str) -> bool"))
      .def("objects", ObjectsOf, nb::sig("def objects(self) -> dict[str, tuple[str, bytes]]"))
      .def("files", FilesOf, nb::sig("def files(self) -> list[tuple[str, int, str]]"))
      .def("left_out", LeftOutOf, nb::sig("def left_out(self) -> list[tuple[str, int, str, bool]]"))
      .def_prop_ro("metadata_memory_bytes",
                   [](const Foreign& foreign) { return foreign.checkpoint.metadata_memory_bytes; })
      .def("missing", MissingOf, nb::sig("def missing(self) -> list[str]"),
           "Tensors that an index names but no file has.")
      .def("unread", UnreadOf, nb::sig("def unread(self) -> list[tuple[BaseException, bool]]"),
           "Errors, and whether they concern sidecar files.")
      .def("notes", NotesOf, nb::sig("def notes(self) -> list[str]"))
      .def(
          "take_tree",
          [](Foreign& foreign, const nb::list& unread) {
            return TakeNode(std::move(foreign.checkpoint.tree), unread);
          },
          nb::arg("unread"), nb::sig("def take_tree(self, unread: object) -> object"),
          "Call it once. Unreadable values are represented by an element of `unread`.")
      .def("take_rank_values", TakeRankValues, nb::arg("unread"),
           nb::sig("def take_rank_values(self, unread: object) -> object"));
  m.def("read_foreign", ReadForeignPath, nb::arg("path"), nb::arg("drop_unknown"),
        nb::arg("goes_on"), nb::arg("per_rank"), nb::arg("allow_part"), nb::arg("allow_missing"),
        nb::arg("base").none(), nb::arg("metadata_memory_bytes").none(),
        nb::sig("def read_foreign(path: str, drop_unknown: bool, goes_on: bool, per_rank: "
                "list[str], allow_part: bool, allow_missing: list[str], base: str | None, "
                "metadata_memory_bytes: int | None) -> Foreign | None"),
        "None: the format is unknown.");
  m.def("foreign_dtypes", DTypes,
        nb::sig("def foreign_dtypes() -> list[tuple[str, int, str, str, str]]"),
        "Name, element size in bytes, names in torch and numpy, storage class in torch, numpy's "
        "code.");
  m.def("newest_foreign_directory", NewestIteration, nb::arg("path"),
        nb::sig("def newest_foreign_directory(path: str) -> str | None"));
}

}  // namespace sealpoint::python
