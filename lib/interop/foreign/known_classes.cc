// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/known_classes.h"

#include <algorithm>
#include <span>

namespace sealpoint::internal::foreign {
namespace {

struct NamedDType {
  std::string_view name;
  DType dtype;
};

constexpr NamedDType kTorch[] = {{"bool", DType::kBool},
                                 {"int8", DType::kInt8},
                                 {"int16", DType::kInt16},
                                 {"int32", DType::kInt32},
                                 {"int64", DType::kInt64},
                                 {"uint8", DType::kUInt8},
                                 {"uint16", DType::kUInt16},
                                 {"uint32", DType::kUInt32},
                                 {"uint64", DType::kUInt64},
                                 {"float16", DType::kF16},
                                 {"bfloat16", DType::kBf16},
                                 {"float32", DType::kF32},
                                 {"float64", DType::kF64},
                                 {"complex32", DType::kComplex32},
                                 {"complex64", DType::kComplex64},
                                 {"complex128", DType::kComplex128},
                                 {"float8_e4m3fn", DType::kF8E4M3Fn},
                                 {"float8_e5m2", DType::kF8E5M2},
                                 {"float8_e4m3fnuz", DType::kF8E4M3Fnuz},
                                 {"float8_e5m2fnuz", DType::kF8E5M2Fnuz},
                                 {"float8_e8m0fnu", DType::kF8E8M0Fnu},
                                 {"float4_e2m1fn_x2", DType::kF4E2M1X2}};

constexpr NamedDType kStorages[] = {{"FloatStorage", DType::kF32},
                                    {"DoubleStorage", DType::kF64},
                                    {"HalfStorage", DType::kF16},
                                    {"BFloat16Storage", DType::kBf16},
                                    {"LongStorage", DType::kInt64},
                                    {"IntStorage", DType::kInt32},
                                    {"ShortStorage", DType::kInt16},
                                    {"CharStorage", DType::kInt8},
                                    {"ByteStorage", DType::kUInt8},
                                    {"BoolStorage", DType::kBool},
                                    {"ComplexHalfStorage", DType::kComplex32},
                                    {"ComplexFloatStorage", DType::kComplex64},
                                    {"ComplexDoubleStorage", DType::kComplex128}};

constexpr NamedDType kNumpy[] = {
    {"b1", DType::kBool},      {"i1", DType::kInt8},       {"i2", DType::kInt16},
    {"i4", DType::kInt32},     {"i8", DType::kInt64},      {"u1", DType::kUInt8},
    {"u2", DType::kUInt16},    {"u4", DType::kUInt32},     {"u8", DType::kUInt64},
    {"f2", DType::kF16},       {"f4", DType::kF32},        {"f8", DType::kF64},
    {"c8", DType::kComplex64}, {"c16", DType::kComplex128}};

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
                                         "builtins.set",
                                         "builtins.frozenset",
                                         "builtins.bytes",
                                         "builtins.bytearray",
                                         "builtins.complex",
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
                                         "torch.Tensor",
                                         "torch.nn.parameter.Parameter",
                                         "collections.OrderedDict",
                                         "collections.Counter",
                                         "collections.defaultdict",
                                         "collections.deque"};

constexpr std::string_view kTorchModule = "torch.";

std::optional<DType> Find(std::span<const NamedDType> names, std::string_view name) {
  const auto found = std::ranges::find(names, name, &NamedDType::name);
  if (found == names.end()) return std::nullopt;
  return found->dtype;
}

std::string_view WithoutTorch(std::string_view name) {
  return name.starts_with(kTorchModule) ? name.substr(kTorchModule.size()) : name;
}

}  // namespace

std::optional<DType> DTypeOfTorch(std::string_view name) {
  return Find(kTorch, WithoutTorch(name));
}
std::optional<DType> DTypeOfStorage(std::string_view name) {
  return Find(kStorages, WithoutTorch(name));
}
std::optional<DType> DTypeOfNumpy(std::string_view code) { return Find(kNumpy, code); }

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
