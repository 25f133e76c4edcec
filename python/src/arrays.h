// SPDX-License-Identifier: Apache-2.0
//
// Arrays of Python as memory for the library: those of numpy, everything with the buffer protocol
// or DLPack, and plain addresses. Nothing is copied.
#ifndef SEALPOINT_PYTHON_SRC_ARRAYS_H_
#define SEALPOINT_PYTHON_SRC_ARRAYS_H_

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "python/src/dlpack.h"
#include "sealpoint/dtype.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"

namespace sealpoint::python {

namespace nb = nanobind;

// Memory of one array, as the caller's object describes it.
struct ArrayMemory {
  std::byte* data = nullptr;  // lowest address
  std::size_t size_bytes = 0;
  std::size_t origin_bytes = 0;  // of element (0, 0, …), from `data` on
  DType dtype = DType::kNone;    // kNone: raw bytes, or elements without a dtype
  std::uint32_t element_size = 1;
  bool has_shape = true;  // false for plain addresses: the library compares sizes
  Shape shape{};
  std::vector<std::int64_t> strides_bytes{};
  bool is_dense = true;  // row-major without gaps: strides may be left out
  int device = kHostDevice;
  void* stream = nullptr;
};

// Looks at arrays, and keeps what it has looked at alive and in place until it is destroyed. With
// the GIL; one thread.
class ArrayReader {
 public:
  enum class Access : std::uint8_t { kRead, kWrite };

  explicit ArrayReader(Access access);
  ~ArrayReader();
  ArrayReader(const ArrayReader&) = delete;
  ArrayReader& operator=(const ArrayReader&) = delete;

  // `array` is an array of numpy, an object with the buffer protocol or with __dlpack__, or a
  // MemoryView of the module (see BindMemory). Throws InvalidArgument that names the tensor.
  ArrayMemory Read(nb::handle array, std::string_view tensor);

 private:
  struct NumpyDType {
    DType dtype = DType::kNone;
    bool is_known = false;
  };

  ArrayMemory ReadNumpy(nb::handle array, std::string_view tensor);
  ArrayMemory ReadBuffer(nb::handle array, std::string_view tensor);
  ArrayMemory ReadDlpack(nb::handle array, std::string_view tensor);
  const NumpyDType& NumpyDTypeOf(nb::handle dtype);

  const Access access_;
  nb::object ndarray_;  // numpy.ndarray; invalid while nobody has imported numpy
  std::unordered_map<PyObject*, NumpyDType> dtypes_;
  std::vector<nb::object> owners_;
  std::deque<Py_buffer> buffers_;
  std::deque<DlpackArray> dlpack_arrays_;
};

// How memory holds `extent` elements per dimension of a tensor, of which the dimensions that
// `is_kept` leaves out have an extent of 1 and none in the array. Elements may be typed, or raw
// bytes: flat, or with one more axis of the element's size.
struct ArrayFit {
  DType dtype = DType::kNone;
  std::vector<std::int64_t> strides_bytes{};  // empty: dense
};
ArrayFit FitArray(const ArrayMemory& memory, const Shape& extent, const std::vector<bool>& is_kept,
                  std::uint32_t element_size, std::string_view tensor);

// MemoryView: memory at an address, as programs have it that know no arrays of numpy.
void BindMemory(nb::module_& m);

// An InvalidArgument about a tensor.
[[noreturn]] void ThrowInvalid(std::string message, std::string_view tensor);

// What is known of the dtype of this name. Throws InvalidArgument.
DTypeInfo DTypeNamed(const std::string& name, std::string_view tensor);

// A str as UTF-8. Throws ArgumentTypeError that names `what`.
std::string NameOf(nb::handle name, const char* what);

template <typename View>
View ViewOf(const ArrayMemory& memory, ArrayFit fit) {
  return {.data = memory.data,
          .size_bytes = memory.size_bytes,
          .dtype = fit.dtype,
          .strides_bytes = std::move(fit.strides_bytes),
          .origin_bytes = memory.origin_bytes,
          .device = memory.device,
          .stream = memory.stream};
}

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_ARRAYS_H_
