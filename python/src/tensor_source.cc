// SPDX-License-Identifier: Apache-2.0
#include "python/src/tensor_source.h"

#include <vector>

namespace sealpoint::python {
namespace {

bool IsPair(nb::handle value) {
  return PyTuple_Check(value.ptr()) != 0 && PyTuple_Size(value.ptr()) == 2;
}

}  // namespace

TensorSource SourceOf(ArrayReader& arrays, std::string name, nb::handle array,
                      const Encoding& encoding) {
  TensorSource source{.spec = {.name = std::move(name),
                               .chunk_size_bytes = encoding.chunk_size_bytes,
                               .codec = encoding.codec,
                               .codec_level = encoding.codec_level}};
  TensorSpec& spec = source.spec;
  std::optional<DTypeInfo> named;
  nb::object memory_of = nb::borrow(array);
  if (IsPair(array)) {
    named = DTypeNamed(NameOf(nb::borrow<nb::tuple>(array)[1], "dtype"), spec.name);
    memory_of = nb::borrow<nb::tuple>(array)[0];
  }
  ArrayMemory memory = arrays.Read(memory_of, spec.name);
  if (!named && memory.dtype == DType::kNone && memory.element_size == 1) {
    memory.dtype = DType::kUInt8;  // bytes are what they are
  }
  spec.dtype = named ? named->dtype : memory.dtype;
  if (spec.dtype == DType::kNone) {
    ThrowInvalid("the elements have no dtype; give (array, name of the dtype)", spec.name);
  }
  const std::uint32_t element_size = named ? named->size_bytes : memory.element_size;
  source.extent = memory.shape;
  if (memory.element_size != element_size) {
    if (memory.element_size != 1 || memory.shape.empty() || memory.shape.back() != element_size) {
      ThrowInvalid("elements of the array have " + std::to_string(memory.element_size) +
                       " bytes, expected " + std::to_string(element_size) + " of " +
                       std::string(named->name) + ", or bytes with a last axis of that size",
                   spec.name);
    }
    source.extent.pop_back();
  }
  if (named) memory.dtype = DType::kNone;
  const std::vector<bool> all(source.extent.size(), true);
  source.view =
      ViewOf<MemoryView>(memory, FitArray(memory, source.extent, all, element_size, spec.name));
  spec.shape = source.extent;
  return source;
}

ObjectSource ObjectSourceOf(ArrayReader& arrays, const std::string& name, nb::handle object) {
  ObjectSource source;
  nb::object bytes_of = nb::borrow(object);
  if (IsPair(object)) {
    source.media_type = NameOf(nb::borrow<nb::tuple>(object)[1], "media type");
    bytes_of = nb::borrow<nb::tuple>(object)[0];
  }
  if (PyObject_CheckBuffer(bytes_of.ptr()) == 0) {
    throw StatusError(
        Status(Code::kInvalidArgument, NameOf(bytes_of.type().attr("__name__"), "name") +
                                           " is not bytes, expected bytes or (bytes, media type)")
            .AtObject(name));
  }
  const ArrayMemory memory = arrays.Read(bytes_of, name);
  if (!memory.is_dense) {
    throw StatusError(Status(Code::kInvalidArgument, "the bytes of the object are not contiguous")
                          .AtObject(name));
  }
  source.bytes = {memory.data, memory.size_bytes};
  return source;
}

}  // namespace sealpoint::python
