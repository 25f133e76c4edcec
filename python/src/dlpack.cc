// SPDX-License-Identifier: Apache-2.0
#include "python/src/dlpack.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "python/src/arrays.h"
#include "python/src/gil.h"
#include "python/src/module.h"
#include "python/src/status.h"
#include "sealpoint/memory_view.h"

namespace sealpoint::python {
namespace {

// DLManagedTensor, of before version 1.
struct Managed {
  nb::dlpack::dltensor tensor{};
  void* context = nullptr;
  void (*deleter)(Managed*) = nullptr;
  static constexpr const char* kName = "dltensor";
  static constexpr const char* kUsedName = "used_dltensor";
};

// DLManagedTensorVersioned.
struct VersionedManaged {
  struct {
    std::uint32_t major = 1;
    std::uint32_t minor = 1;
  } version{};
  void* context = nullptr;
  void (*deleter)(VersionedManaged*) = nullptr;
  std::uint64_t flags = 0;
  nb::dlpack::dltensor tensor{};
  static constexpr const char* kName = "dltensor_versioned";
  static constexpr const char* kUsedName = "used_dltensor_versioned";
};
constexpr std::uint64_t kIsReadOnly = 1;
constexpr std::uint64_t kIsCopied = 2;

[[noreturn]] void Raise(const char* message) {
  PyErr_SetString(PyExc_BufferError, message);
  nb::raise_python_error();
}

nb::object CapsuleOf(nb::handle object) {
  const nb::object method = object.attr("__dlpack__");
  try {
    return method(nb::arg("max_version") = nb::make_tuple(1, 1));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    return method();  // of before version 1
  }
}

template <typename T>
T* Take(const nb::object& capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), T::kName) == 0) return nullptr;
  auto* const managed = static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), T::kName));
  PyCapsule_SetName(capsule.ptr(), T::kUsedName);  // whose destructor then leaves it to us
  return managed;
}

template <typename T>
std::shared_ptr<void> OwnerOf(T* managed) {
  return {managed, [](T* one) {
            if (one->deleter != nullptr) one->deleter(one);
          }};
}

// What is given out: the memory's owners, and what describes it.
template <typename T>
struct Export {
  ArrayReader reader{ArrayReader::Access::kRead};
  nb::object owner{};
  std::vector<std::int64_t> shape{};
  std::vector<std::int64_t> strides{};
  T managed{};

  // Called once, on any thread. Once the interpreter has ended nothing can be released.
  static void Delete(T* managed) {
    if (Py_IsInitialized() == 0) return;
    const GilAcquire acquired;
    const nb::error_scope kept;  // an error may be on its way meanwhile
    delete static_cast<Export*>(managed->context);
  }
};

// The destructor of a capsule that nobody has taken.
template <typename T>
void DeleteCapsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, T::kName) == 0) return;
  auto* const managed = static_cast<T*>(PyCapsule_GetPointer(capsule, T::kName));
  managed->deleter(managed);
}

template <typename T>
nb::object Give(nb::handle memory, nb::object owner, const DTypeInfo& dtype,
                const std::optional<std::vector<std::int64_t>>& shape, std::uint64_t flags) {
  auto made = std::make_unique<Export<T>>();
  const ArrayMemory found = made->reader.Read(memory, "");
  made->owner = std::move(owner);
  if (shape) {
    made->shape = *shape;
  } else {
    made->shape.assign(found.shape.begin(), found.shape.end());
  }
  made->strides.resize(made->shape.size());
  std::int64_t dense = 1;
  for (std::size_t d = made->shape.size(); d-- > 0;) {
    made->strides[d] = dense;
    dense *= made->shape[d];
    if (shape || made->shape[d] == 1) continue;
    if (found.strides_bytes[d] % dtype.size_bytes != 0) {
      Raise("a stride of the array is not a multiple of the element size, as DLPack requires");
    }
    made->strides[d] = found.strides_bytes[d] / dtype.size_bytes;
  }
  nb::dlpack::dltensor& tensor = made->managed.tensor;
  tensor.data = found.size_bytes == 0 ? nullptr : found.data + found.origin_bytes;
  tensor.device = {kDlpackCpu, 0};
  tensor.ndim = static_cast<std::int32_t>(made->shape.size());
  const DlpackDType dlpack = *DlpackOf(dtype.dtype);  // each registered one has one
  tensor.dtype = {dlpack.code, dlpack.bits, dlpack.lanes};
  tensor.shape = made->shape.data();
  tensor.strides = made->strides.data();
  if constexpr (std::is_same_v<T, VersionedManaged>) made->managed.flags = flags;
  made->managed.context = made.get();
  made->managed.deleter = &Export<T>::Delete;
  PyObject* const capsule = PyCapsule_New(&made->managed, T::kName, DeleteCapsule<T>);
  if (capsule == nullptr) nb::raise_python_error();
  static_cast<void>(made.release());
  return nb::steal(capsule);
}

nb::object GiveCapsule(nb::handle memory, nb::object owner, const std::string& dtype,
                       const std::optional<std::vector<std::int64_t>>& shape, bool is_read_only,
                       bool is_copied, bool is_versioned) {
  const DTypeInfo info = DTypeNamed(dtype, "");
  if (!is_versioned) return Give<Managed>(memory, std::move(owner), info, shape, 0);
  const std::uint64_t flags = (is_read_only ? kIsReadOnly : 0) | (is_copied ? kIsCopied : 0);
  return Give<VersionedManaged>(memory, std::move(owner), info, shape, flags);
}

}  // namespace

DlpackArray::DlpackArray(nb::handle object) {
  const nb::object capsule = CapsuleOf(object);
  if (auto* const versioned = Take<VersionedManaged>(capsule)) {
    owner_ = OwnerOf(versioned);
    if (versioned->version.major != 1) {
      Raise("__dlpack__ returned an array of another version than 1");
    }
    tensor_ = &versioned->tensor;
    flags_ = versioned->flags & (kIsReadOnly | kIsCopied);
    is_versioned_ = true;
  } else if (auto* const managed = Take<Managed>(capsule)) {
    owner_ = OwnerOf(managed);
    tensor_ = &managed->tensor;
  } else {
    Raise("__dlpack__ did not return an unused DLPack capsule");
  }
}

void BindDlpack(nb::module_& m) {
  m.def("dlpack", GiveCapsule, nb::arg("memory"), nb::arg("owner").none(), nb::arg("dtype"),
        nb::arg("shape").none(), nb::arg("is_read_only"), nb::arg("is_copied"),
        nb::arg("is_versioned"),
        "Returns a DLPack capsule over `memory` that keeps `memory` and `owner` alive. `shape`: "
        "shape of dense elements. None: shape and strides of the array `memory`.");
}

}  // namespace sealpoint::python
