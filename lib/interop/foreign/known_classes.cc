// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/known_classes.h"

#include <algorithm>
#include <array>
#include <span>

#include "sealpoint/interop.h"

namespace sealpoint::internal::foreign {
namespace {

constexpr std::array<ForeignDType, 22> kDTypes = {{
    {DType::kBool, "bool", "BoolStorage", "b1"},
    {DType::kInt8, "int8", "CharStorage", "i1"},
    {DType::kInt16, "int16", "ShortStorage", "i2"},
    {DType::kInt32, "int32", "IntStorage", "i4"},
    {DType::kInt64, "int64", "LongStorage", "i8"},
    {DType::kUInt8, "uint8", "ByteStorage", "u1"},
    {DType::kUInt16, "uint16", "", "u2"},
    {DType::kUInt32, "uint32", "", "u4"},
    {DType::kUInt64, "uint64", "", "u8"},
    {DType::kF16, "float16", "HalfStorage", "f2"},
    {DType::kBf16, "bfloat16", "BFloat16Storage", ""},
    {DType::kF32, "float32", "FloatStorage", "f4"},
    {DType::kF64, "float64", "DoubleStorage", "f8"},
    {DType::kComplex64, "complex64", "ComplexFloatStorage", "c8"},
    {DType::kComplex128, "complex128", "ComplexDoubleStorage", "c16"},
    {DType::kF8E4M3Fn, "float8_e4m3fn", "", ""},
    {DType::kF8E5M2, "float8_e5m2", "", ""},
    {DType::kF8E4M3Fnuz, "float8_e4m3fnuz", "", ""},
    {DType::kF8E5M2Fnuz, "float8_e5m2fnuz", "", ""},
    {DType::kF8E8M0Fnu, "float8_e8m0fnu", "", ""},
    {DType::kF4E2M1X2, "float4_e2m1fn_x2", "", ""},
    {DType::kComplex32, "complex32", "ComplexHalfStorage", ""},
}};

constexpr std::string_view kClasses[] = {"torch.Size",
                                         "torch.device",
                                         "argparse.Namespace",
                                         "_codecs.encode",
                                         "numpy.ndarray",
                                         "numpy.dtype",
                                         "_io.BytesIO",
                                         "__builtin__.set",
                                         "__builtin__.frozenset",
                                         "__builtin__.bytes",
                                         "__builtin__.bytearray",
                                         "__builtin__.complex",
                                         "__builtin__.getattr",
                                         "builtins.set",
                                         "builtins.frozenset",
                                         "builtins.bytes",
                                         "builtins.bytearray",
                                         "builtins.complex",
                                         "builtins.getattr",
                                         "numpy.core.multiarray._reconstruct",
                                         "numpy.core.multiarray.scalar",
                                         "numpy._core.multiarray._reconstruct",
                                         "numpy._core.multiarray.scalar",
                                         "numpy.core.numeric._frombuffer",
                                         "numpy._core.numeric._frombuffer",
                                         "torch._utils._rebuild_parameter",
                                         "torch._utils._rebuild_parameter_with_state",
                                         "torch._tensor._rebuild_from_type_v2",
                                         "torch._utils._rebuild_tensor",
                                         "torch._utils._rebuild_tensor_v2",
                                         "torch._utils._rebuild_tensor_v3",
                                         "torch._utils._rebuild_wrapper_subclass",
                                         "torch.Tensor",
                                         "torch.nn.parameter.Parameter",
                                         "collections.OrderedDict",
                                         "collections.Counter",
                                         "collections.defaultdict",
                                         "collections.deque"};

constexpr std::string_view kTorchModule = "torch.";

// The dtype of which this member is `name`.
std::optional<DType> Find(std::string_view ForeignDType::* member, std::string_view name) {
  const auto* const found = std::ranges::find(kDTypes, name, member);
  if (name.empty() || found == kDTypes.end()) return std::nullopt;
  return found->dtype;
}

std::string_view WithoutTorch(std::string_view name) {
  return name.starts_with(kTorchModule) ? name.substr(kTorchModule.size()) : name;
}

}  // namespace

std::optional<DType> DTypeOfTorch(std::string_view name) {
  return Find(&ForeignDType::name, WithoutTorch(name));
}
std::optional<DType> DTypeOfStorage(std::string_view name) {
  return Find(&ForeignDType::torch_storage, WithoutTorch(name));
}
std::optional<DType> DTypeOfNumpy(std::string_view code) {
  return Find(&ForeignDType::numpy_code, code);
}

bool IsUntypedStorage(std::string_view name) {
  return name == "torch.storage.UntypedStorage" || name == "torch.UntypedStorage";
}

bool IsKnownValueClass(std::string_view name) {
  if (std::ranges::find(kClasses, name) != std::end(kClasses)) return true;
  if (name.starts_with("megatron.") || IsUntypedStorage(name)) return true;
  return name.starts_with(kTorchModule) && (DTypeOfTorch(name) || DTypeOfStorage(name));
}

bool IsKnownMetadataClass(std::string_view name) {
  // Any dtype may occur, also one that the format lacks.
  const bool is_of_torch =
      name.starts_with(kTorchModule) && WithoutTorch(name).find('.') == name.npos;
  return IsKnownValueClass(name) || name.starts_with("torch.distributed.") ||
         name.starts_with("pathlib.") || name == "torch.serialization._get_layout" || is_of_torch;
}

}  // namespace sealpoint::internal::foreign

namespace sealpoint {

std::span<const ForeignDType> ForeignDTypes() { return internal::foreign::kDTypes; }

}  // namespace sealpoint
