// SPDX-License-Identifier: Apache-2.0
#include "python/src/arrays.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>

#include "python/src/status.h"
#include "sealpoint/interop.h"
#include "sealpoint/memory_view.h"

namespace sealpoint::python {
namespace {

// What numpy's attribute __array_struct__ points to (numpy's documentation of the array interface).
struct NumpyStruct {
  int two;
  int ndim;
  char kind;
  int element_size;
  int flags;
  Py_ssize_t* shape;
  Py_ssize_t* strides_bytes;
  void* data;
  PyObject* description;
};
constexpr int kNativeByteOrder = 0x200;
constexpr int kWriteable = 0x400;

DType SignedInteger(std::size_t size) {
  return static_cast<DType>(static_cast<int>(DType::kInt8) + std::countr_zero(size));
}

DType UnsignedInteger(std::size_t size) {
  return static_cast<DType>(static_cast<int>(DType::kUInt8) + std::countr_zero(size));
}

// The dtype of a format of Python's module struct; kNone: raw bytes. Nothing: there is none.
std::optional<DType> DTypeOfFormat(std::string_view format, std::size_t element_size) {
  if (!format.empty() && (format[0] == '@' || format[0] == '=' || format[0] == '<')) {
    format.remove_prefix(1);
  }
  if (format == "Zf") return DType::kComplex64;
  if (format == "Zd") return DType::kComplex128;
  if (format.size() != 1) return std::nullopt;
  switch (format[0]) {
    case 'B':
    case 'b':
    case 'c':
      return DType::kNone;
    case '?':
      return DType::kBool;
    case 'e':
      return DType::kF16;
    case 'f':
      return DType::kF32;
    case 'd':
      return DType::kF64;
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return SignedInteger(element_size);
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return UnsignedInteger(element_size);
    default:
      return std::nullopt;
  }
}

// Sets shape, strides and the range of addresses. No strides: dense, as ctypes has it.
void SetGeometry(ArrayMemory& memory, void* first, int ndim, const Py_ssize_t* shape,
                 const Py_ssize_t* strides_bytes) {
  std::int64_t lowest = 0, highest = 0;
  bool is_empty = false;
  std::int64_t dense_stride = memory.element_size;
  memory.shape.resize(static_cast<std::size_t>(ndim));
  memory.strides_bytes.resize(static_cast<std::size_t>(ndim));
  for (int d = ndim - 1; d >= 0; --d) {
    const auto at = static_cast<std::size_t>(d);
    memory.shape[at] = static_cast<std::uint64_t>(shape[d]);
    const std::int64_t stride = strides_bytes != nullptr ? strides_bytes[d] : dense_stride;
    memory.strides_bytes[at] = stride;
    if (shape[d] == 0) is_empty = true;
    if (shape[d] != 1 && stride != dense_stride) memory.is_dense = false;
    dense_stride *= shape[d];
    const std::int64_t reach = (shape[d] - 1) * stride;
    (reach < 0 ? lowest : highest) += reach;
  }
  if (is_empty) {
    memory.is_dense = true;
    lowest = highest = 0;
  }
  memory.data = static_cast<std::byte*>(first) + lowest;
  memory.origin_bytes = static_cast<std::size_t>(-lowest);
  memory.size_bytes =
      is_empty ? 0 : static_cast<std::size_t>(highest - lowest) + memory.element_size;
}

std::string TypeName(nb::handle object) { return NameOf(object.type().attr("__name__"), "name"); }

ArrayMemory MemoryOf(const MutableMemoryView& view) {
  const auto dtype = FindDType(view.dtype);
  return {.data = view.data,
          .size_bytes = view.size_bytes,
          .dtype = view.dtype,
          .element_size = dtype ? dtype->size_bytes : 1,
          .has_shape = false,
          .strides_bytes = view.strides_bytes,
          .is_dense = view.is_dense(),
          .device = view.device,
          .stream = view.stream};
}

void MakeMemoryView(MutableMemoryView* self, std::uintptr_t address, std::size_t size_bytes,
                    const std::optional<std::string>& dtype,
                    std::optional<std::vector<std::int64_t>> strides_bytes,
                    std::optional<int> device, std::uintptr_t stream) {
  new (self) MutableMemoryView{
      .data = reinterpret_cast<std::byte*>(address),
      .size_bytes = size_bytes,
      .dtype = dtype ? DTypeNamed(*dtype, "").dtype : DType::kNone,
      .strides_bytes = std::move(strides_bytes).value_or(std::vector<std::int64_t>{}),
      .device = device.value_or(kHostDevice),
      .stream = reinterpret_cast<void*>(stream)};
}

}  // namespace

void BindMemory(nb::module_& m) {
  nb::class_<MutableMemoryView>(m, "MemoryView",
                                "A view of host or device memory. Keeps nothing alive.")
      .def("__init__", MakeMemoryView, nb::arg("address"), nb::arg("size_bytes"),
           nb::arg("dtype") = nb::none(), nb::arg("strides_bytes") = nb::none(),
           nb::arg("device") = nb::none(), nb::arg("stream") = 0,
           "``strides_bytes``: None for dense memory; ``device``: number of the CUDA device, or "
           "None for the host.");
}

DTypeInfo DTypeNamed(const std::string& name, std::string_view tensor) {
  const auto dtype = FindDType(name);
  if (!dtype) ThrowInvalid("dtype " + name + " is not registered", tensor);
  return *dtype;
}

void ThrowInvalid(std::string message, std::string_view tensor) {
  throw StatusError(Status(Code::kInvalidArgument, std::move(message)).AtTensor(tensor));
}

std::string NameOf(nb::handle name, const char* what) {
  Py_ssize_t size = 0;
  const char* text =
      PyUnicode_Check(name.ptr()) ? PyUnicode_AsUTF8AndSize(name.ptr(), &size) : nullptr;
  if (text != nullptr) return {text, static_cast<std::size_t>(size)};
  PyErr_Clear();
  const nb::object type = nb::module_::import_("sealpoint._errors").attr("ArgumentTypeError");
  const nb::object message =
      nb::str("{} is {!r:.80}, expected a str that UTF-8 can encode").attr("format")(what, name);
  PyErr_SetObject(type.ptr(), message.ptr());
  nb::raise_python_error();
}

ArrayReader::ArrayReader(Access access) : access_(access) {
  const nb::object numpy = nb::module_::import_("sys").attr("modules").attr("get")("numpy");
  if (!numpy.is_none() && nb::hasattr(numpy, "ndarray")) ndarray_ = numpy.attr("ndarray");
}

ArrayReader::~ArrayReader() {
  for (Py_buffer& buffer : buffers_) PyBuffer_Release(&buffer);
}

ArrayMemory ArrayReader::Read(nb::handle array, std::string_view tensor) {
  if (nb::isinstance<MutableMemoryView>(array)) {
    return MemoryOf(nb::cast<const MutableMemoryView&>(array));
  }
  if (ndarray_.is_valid() && nb::isinstance(array, ndarray_)) return ReadNumpy(array, tensor);
  return ReadBuffer(array, tensor);
}

// numpy's buffers know no bfloat16, and each costs the program memory as long as the array lives.
ArrayMemory ArrayReader::ReadNumpy(nb::handle array, std::string_view tensor) {
  if (!array.type().is(ndarray_) && nb::hasattr(array, "mask")) {
    ThrowInvalid("masked arrays are not supported: the mask would be lost", tensor);
  }
  const nb::object capsule = array.attr("__array_struct__");
  const auto* numpy = static_cast<NumpyStruct*>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  if (numpy == nullptr) nb::raise_python_error();
  const nb::object dtype = array.attr("dtype");
  const NumpyDType& known = NumpyDTypeOf(dtype);
  const bool is_native = (numpy->flags & kNativeByteOrder) != 0 || numpy->element_size == 1;
  if (!known.is_known || !is_native) {
    ThrowInvalid("dtype " + NameOf(nb::str(dtype), "dtype") +
                     (known.is_known ? " is not little-endian" : " has no counterpart"),
                 tensor);
  }
  if (access_ == Access::kWrite && (numpy->flags & kWriteable) == 0) {
    ThrowInvalid("destination is read-only", tensor);
  }
  owners_.push_back(nb::borrow(array));
  ArrayMemory memory{.dtype = known.dtype,
                     .element_size = static_cast<std::uint32_t>(numpy->element_size)};
  SetGeometry(memory, numpy->data, numpy->ndim, numpy->shape, numpy->strides_bytes);
  return memory;
}

const ArrayReader::NumpyDType& ArrayReader::NumpyDTypeOf(nb::handle dtype) {
  const auto [at, is_new] = dtypes_.try_emplace(dtype.ptr());
  if (!is_new) return at->second;
  owners_.push_back(nb::borrow(dtype));  // so that no other dtype gets its address
  const std::string name = NameOf(dtype.attr("name"), "name");
  for (const ForeignDType& known : ForeignDTypes()) {
    // Arrays of c32 are bytes (docs/guides/python.md).
    if (known.dtype != DType::kComplex32 && known.name == name)
      at->second = {.dtype = known.dtype, .is_known = true};
  }
  // Elements of some bytes, without fields.
  const bool is_void = name.starts_with("void") && dtype.attr("names").is_none();
  if (is_void) at->second.is_known = true;
  return at->second;
}

ArrayMemory ArrayReader::ReadBuffer(nb::handle array, std::string_view tensor) {
  Py_buffer buffer;
  const int flags = PyBUF_RECORDS_RO | (access_ == Access::kWrite ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(array.ptr(), &buffer, flags) != 0) {
    const nb::python_error why;
    if (nb::hasattr(array, "__dlpack__")) return ReadDlpack(array, tensor);
    if (PyObject_CheckBuffer(array.ptr()) == 0) {
      ThrowInvalid(TypeName(array) +
                       " is not an array, expected one of numpy or an object with the buffer "
                       "protocol or __dlpack__",
                   tensor);
    }
    ThrowInvalid(TypeName(array) + ": " + NameOf(nb::str(why.value()), "text"), tensor);
  }
  buffers_.push_back(buffer);
  const std::string_view format = buffer.format == nullptr ? "B" : buffer.format;
  const auto dtype = DTypeOfFormat(format, static_cast<std::size_t>(buffer.itemsize));
  if (!dtype) ThrowInvalid("format " + std::string(format) + " has no counterpart", tensor);
  ArrayMemory memory{.dtype = *dtype, .element_size = static_cast<std::uint32_t>(buffer.itemsize)};
  SetGeometry(memory, buffer.buf, buffer.ndim, buffer.shape, buffer.strides);
  return memory;
}

// Tensors of torch, arrays of JAX whose dtype no buffer has, and those of devices.
ArrayMemory ArrayReader::ReadDlpack(nb::handle array, std::string_view tensor) {
  try {
    dlpack_arrays_.emplace_back(array);
  } catch (nb::python_error& error) {
    const nb::object own = nb::module_::import_("sealpoint._errors").attr("Error");
    // Damage of a stored tensor, or a KeyboardInterrupt, says nothing about the argument.
    if (error.matches(own) || !error.matches(PyExc_Exception)) throw;
    ThrowInvalid(TypeName(array) + ": " + NameOf(nb::str(error.value()), "text"), tensor);
  }
  const DlpackArray& taken = dlpack_arrays_.back();
  if (access_ == Access::kWrite && !taken.is_writable()) {
    ThrowInvalid(taken.is_versioned() ? "destination is read-only, or a copy"
                                      : TypeName(array) +
                                            " may be read-only, which DLPack before version 1 does "
                                            "not report; expected a newer DLPack",
                 tensor);
  }
  const nb::dlpack::dltensor& given = taken.tensor();
  const auto dtype = DTypeOfDlpack({given.dtype.code, given.dtype.bits, given.dtype.lanes});
  if (!dtype) {
    ThrowInvalid("dtype of DLPack with code " + std::to_string(given.dtype.code) + " and " +
                     std::to_string(given.dtype.bits) + " bits has no counterpart",
                 tensor);
  }
  ArrayMemory memory{.dtype = *dtype, .element_size = DTypeSizeBytes(*dtype)};
  const std::int32_t device = given.device.device_type;
  if (device == kDlpackCuda || device == kDlpackCudaManaged) {
    memory.device = given.device.device_id;  // on its default stream, as was asked for
  } else if (device != kDlpackCpu && device != kDlpackCudaHost) {
    ThrowInvalid("device of the array is DLPack's type " + std::to_string(device) +
                     ", expected CPU (1, 3) or CUDA (2, 13)",
                 tensor);
  }
  if (given.ndim < 0) ThrowInvalid("the array of DLPack has a negative ndim", tensor);
  const std::vector<Py_ssize_t> shape(given.shape, given.shape + given.ndim);
  std::vector<Py_ssize_t> strides_bytes;
  if (given.strides != nullptr) {
    for (std::int32_t d = 0; d < given.ndim; ++d) {
      strides_bytes.push_back(given.strides[d] * memory.element_size);
    }
  }
  const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  if (given.data == nullptr && !is_empty) {
    ThrowInvalid(TypeName(array) +
                     " has no memory of its own; use sealpoint.torch for distributed tensors such "
                     "as a DTensor",
                 tensor);
  }
  SetGeometry(memory, static_cast<std::byte*>(given.data) + (is_empty ? 0 : given.byte_offset),
              given.ndim, shape.data(), given.strides == nullptr ? nullptr : strides_bytes.data());
  const auto lowest = -static_cast<std::int64_t>(memory.origin_bytes);
  const auto end = static_cast<std::int64_t>(memory.size_bytes) + lowest;
  if (!is_empty && !DlpackBegin(given.data, given.byte_offset, lowest, end)) {
    ThrowInvalid("the array of DLPack exceeds the address space", tensor);
  }
  return memory;
}

ArrayFit FitArray(const ArrayMemory& memory, const Shape& extent, const std::vector<bool>& is_kept,
                  std::uint32_t element_size, std::string_view tensor) {
  if (!memory.has_shape) return {.dtype = memory.dtype, .strides_bytes = memory.strides_bytes};
  Shape expected;
  for (std::size_t d = 0; d < extent.size(); ++d) {
    if (is_kept[d]) expected.push_back(extent[d]);
  }
  const bool is_bytes =
      memory.element_size == 1 && (memory.dtype == DType::kNone || memory.dtype == DType::kUInt8);
  const bool has_byte_axis = is_bytes && memory.shape.size() == expected.size() + 1 &&
                             memory.shape.back() == element_size &&
                             (element_size == 1 || memory.strides_bytes.back() == 1);
  ArrayFit fit{.dtype = memory.dtype};
  if (memory.shape == expected && memory.element_size == element_size) {
    // As it is.
  } else if (has_byte_axis && std::equal(expected.begin(), expected.end(), memory.shape.begin())) {
    fit.dtype = DType::kNone;
  } else if (is_bytes && memory.dtype == DType::kNone && memory.shape.size() == 1 &&
             memory.is_dense) {
    return fit;  // The library compares the size.
  } else if (memory.shape == expected) {
    return fit;  // The library names both dtypes.
  } else {
    ThrowInvalid("shape of the array is " + ShapeToString(memory.shape) + ", expected " +
                     ShapeToString(expected),
                 tensor);
  }
  if (memory.is_dense) return fit;
  std::size_t kept = 0;
  for (const bool is_here : is_kept) {
    fit.strides_bytes.push_back(is_here ? memory.strides_bytes[kept++] : element_size);
  }
  return fit;
}

}  // namespace sealpoint::python
