// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "lib/interop/foreign/arguments.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/known_classes.h"
#include "lib/interop/foreign/torch_values.h"
#include "sealpoint/bytes.h"

// Tensors, and the storages that they lie in.

namespace sealpoint::internal::foreign {
namespace {

using Kind = Pickled::Kind;

constexpr std::uint64_t kStoredTensorCost = 1536;  // of memory, in bytes

bool IsParameter(std::string_view name) {
  return name == "torch._utils._rebuild_parameter" ||
         name == "torch._utils._rebuild_parameter_with_state";
}
bool IsTensorV1(std::string_view name) { return name == "torch._utils._rebuild_tensor"; }
bool IsTensorV2(std::string_view name) { return name == "torch._utils._rebuild_tensor_v2"; }
bool IsTensorV3(std::string_view name) { return name == "torch._utils._rebuild_tensor_v3"; }
bool IsTypedTensor(std::string_view name) { return name == "torch._tensor._rebuild_from_type_v2"; }

bool IsWrapper(std::string_view name) { return name == "torch._utils._rebuild_wrapper_subclass"; }

// Set by torch on parameters, and no part of what a class says of a tensor.
constexpr std::string_view kIsParameter = "_is_param";
constexpr std::string_view kQuantState = "quant_state";
constexpr std::string_view kOwnModule = "torch.";

bool IsPlainTensorType(const Pickled& type) {
  return type.text == "torch.Tensor" || type.text == "torch.nn.parameter.Parameter";
}

bool IsComplex(DType dtype) {
  return dtype == DType::kComplex32 || dtype == DType::kComplex64 || dtype == DType::kComplex128;
}
bool IsReal(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBf16 || dtype == DType::kF32 ||
         dtype == DType::kF64;
}

// Whether the elements lie in row-major order without gaps.
bool IsDense(const StoredTensor& tensor) {
  std::uint64_t step = 1;
  for (std::size_t d = tensor.shape.size(); d > 0; --d) {
    if (tensor.shape[d - 1] > 1 && tensor.strides[d - 1] != step) return false;
    step = CappedMul(step, tensor.shape[d - 1]);
  }
  return true;
}

}  // namespace

ForeignPart TorchArchive::PartOf(const StoredTensor& tensor) const {
  ForeignPart part{.box = {.offset = Shape(tensor.shape.size(), 0), .extent = tensor.shape},
                   .file = file().number(),
                   .begin = tensor.begin * DTypeSizeBytes(tensor.dtype),
                   .flips_sign = tensor.is_conjugate || tensor.is_negative};
  if (!IsDense(tensor)) part.strides = tensor.strides;
  FindStorage(tensor.key, tensor.storage_size, part);
  return part;
}

bool MakesTensor(std::string_view function) {
  return IsTensorV1(function) || IsTensorV2(function) || IsTensorV3(function) ||
         IsParameter(function) || IsTypedTensor(function);
}

ForeignNode TorchValues::ContextOf(const Pickled& value) {
  try {
    return Plain(value);
  } catch (const Unknown& unknown) {
    return {{kNodeKind, "type"}, {"name", Text(unknown.name)}};
  }
}

ForeignNode TorchValues::Composed(const PickledItems& args) {
  if (!At(args, 1).is(Kind::kGlobal)) InvalidValue("a tensor without a class");
  const std::string class_name(At(args, 1).text);
  // Those of torch itself are parts of another tensor, or of a program.
  if (class_name.starts_with(kOwnModule)) throw Unknown{class_name};
  const PickledItems& outer = SequenceOf(At(args, 2));
  ForeignNode::List shape;
  for (const std::uint64_t extent : SizesOf(At(outer, 2))) {
    shape.push_back(static_cast<std::int64_t>(extent));
  }
  ForeignNode::List context;
  ForeignNode::Members parts;
  Cost(kStoredTensorCost);
  for (const auto& [key, value] : PairsOf(At(args, 3))) {
    const std::string name = Text(NameOf(*key));
    const PathScope scope(*this, name);
    if (value->is(Kind::kObject) && MakesTensor(value->text)) {
      if (std::ranges::find(parts, name, &ForeignNode::Member::key) != parts.end()) {
        InvalidValue("duplicate part of a tensor");
      }
      parts.push_back({name, Plain(*value)});
    } else if (name != kIsParameter) {
      context.push_back(PairNode(name, ContextOf(*value)));
    }
  }
  if (parts.empty()) throw Unknown{class_name};
  context.push_back(PairNode("dtype", ContextOf(At(outer, 1))));
  return {{kNodeKind, "tensor_parts"},
          {"class", class_name},
          {"shape", std::move(shape)},
          {"context", {{kNodeKind, "dict"}, {"items", std::move(context)}}},
          {"parts", {{"", std::move(parts)}}}};
}

ForeignNode TorchValues::Tensor(const Pickled& value) {
  if (IsTypedTensor(value.text) && IsWrapper(At(ArgsOf(value), 0).text)) {
    return Composed(ArgsOf(value));
  }
  const StoredTensor tensor = TensorOf(value, 0);
  const std::string name = Text(TextOf(path_));
  Cost(kStoredTensorCost + 3 * name.size() + tensor.key.size());
  const bool is_empty = std::ranges::find(tensor.shape, 0u) != tensor.shape.end();
  if (const auto found = known_.find(tensor); found != known_.end() && !is_empty) {
    return TensorNode(found->second);
  }
  if (state_.tensors.contains(name)) {
    throw Failure{Status(Code::kUnsupported, "duplicate path of a tensor in the state")
                      .AtPath(archive_.path())
                      .AtTensor(name)};
  }
  ForeignTensor described{.dtype = tensor.dtype, .shape = tensor.shape};
  if (!is_empty) {
    known_.emplace(tensor, name);
    const auto [first, is_first] = storages_.try_emplace(tensor.key, name);
    if (!is_first) {
      shared_.push_back(
          StrCat(name, " shares memory with ", first->second, "; each is kept by itself"));
    }
    added_.push_back({.name = name, .stored = tensor, .is_first = is_first});
    described.parts.push_back(archive_.PartOf(tensor));
  } else {
    added_.push_back({.name = name, .stored = std::nullopt});
  }
  state_.tensors[name] = std::move(described);
  return TensorNode(name);
}

StoredTensor TorchValues::TensorOf(const Pickled& value, int depth) {
  constexpr int kWrapsMax = 8;
  if (!value.is(Kind::kObject) || depth > kWrapsMax) InvalidValue("a parameter without a tensor");
  const PickledItems& args = ArgsOf(value);
  if (IsParameter(value.text)) {
    const bool has_state = args.size() > 3 && args[3]->is(Kind::kMapping);
    if (has_state && Find(*args[3], kQuantState) != nullptr) {
      Refuse(Code::kUnsupported,
             "a quantized weight of bitsandbytes, whose scales are attributes; save the "
             "state_dict of its module, which has them as tensors");
    }
    return TensorOf(At(args, 0), depth + 1);
  }
  if (IsTypedTensor(value.text)) {
    const Pickled& function = At(args, 0);
    if (!IsPlainTensorType(At(args, 1))) throw Unknown{std::string(At(args, 1).text)};
    if (!MakesTensor(function.text)) throw Unknown{std::string(function.text)};
    if (!At(args, 2).is(Kind::kTuple)) InvalidValue("a tensor without arguments");
    const PickledItems& inner = At(args, 2).parts()->items;
    const bool is_v3 = IsTensorV3(function.text);
    if (!is_v3 && !IsTensorV2(function.text) && !IsTensorV1(function.text)) {
      InvalidValue("malformed tensor");
    }
    return InStorage(inner, is_v3 ? &At(inner, 6) : nullptr);
  }
  const bool is_v3 = IsTensorV3(value.text);
  if (!is_v3 && !IsTensorV2(value.text) && !IsTensorV1(value.text)) {
    InvalidValue("a parameter without a tensor");
  }
  return InStorage(args, is_v3 ? &At(args, 6) : nullptr);
}

void TorchValues::ReadBits(const PickledPairs& pairs, StoredTensor& tensor) const {
  for (const auto& [key, value] : pairs) {
    const bool is_set = value->is(Kind::kBool) && value->number != 0;
    const bool is_conjugate = key->is(Kind::kText) && key->text == "conj";
    const bool is_negative = key->is(Kind::kText) && key->text == "neg";
    if (!is_set ||
        !(is_conjugate ? IsComplex(tensor.dtype) : is_negative && IsReal(tensor.dtype))) {
      Refuse(Code::kUnsupported, StrCat("the tensor of ", DTypeName(tensor.dtype),
                                        " is a view with unknown bits, expected conj of complex or "
                                        "neg of real numbers; resolve it first"));
    }
    tensor.is_conjugate |= is_conjugate;
    tensor.is_negative |= is_negative;
  }
}

StoredTensor TorchValues::InStorage(const PickledItems& args, const Pickled* dtype) {
  const Pickled& storage = At(args, 0);
  if (!storage.is(Kind::kPersistent) || !storage.parts()->items[0]->is(Kind::kTuple)) {
    InvalidValue("a tensor without a storage");
  }
  const PickledItems& parts = storage.parts()->items;
  const PickledItems& id = parts[0]->parts()->items;
  if (id.size() != (parts.size() == 1 ? 5 : 6) || !id[0]->is(Kind::kText) ||
      id[0]->text != "storage" || !id[1]->is(Kind::kGlobal) || !id[2]->is(Kind::kText) ||
      (dtype != nullptr && !dtype->is(Kind::kGlobal))) {
    InvalidValue("a tensor without a storage");
  }
  const auto known = dtype != nullptr ? DTypeOfTorch(dtype->text) : DTypeOfStorage(id[1]->text);
  if (!known) {
    Refuse(Code::kUnsupported, StrCat("a tensor has the dtype of ",
                                      Printable(dtype != nullptr ? dtype->text : id[1]->text),
                                      ", which the format lacks"));
  }
  const std::uint64_t element_size = DTypeSizeBytes(*known);
  StoredTensor tensor{.key = std::string(id[2]->text),
                      .storage_size = NaturalOf(*id[4]),
                      .dtype = *known,
                      .begin = NaturalOf(At(args, 1)),
                      .shape = SizesOf(At(args, 2)),
                      .strides = SizesOf(At(args, 3))};
  if (tensor.shape.size() != tensor.strides.size()) {
    InvalidValue(StrCat(tensor.shape.size(), " extents and ", tensor.strides.size(), " strides"));
  }
  const std::size_t metadata = dtype != nullptr ? 7 : 6;
  const bool has_bits = metadata < args.size() && args[metadata]->is(Kind::kMapping);
  if (has_bits) ReadBits(args[metadata]->parts()->pairs, tensor);
  const std::uint64_t unit = IsUntypedStorage(id[1]->text) ? 1 : element_size;
  const Pickled* const view =
      parts.back()->is(Kind::kTuple) && parts.size() == 2 ? parts[1] : nullptr;
  const std::uint64_t stored =
      CappedMul(view == nullptr ? tensor.storage_size : NaturalOf(*view->parts()->items[2]), unit);
  tensor.storage_size = CappedMul(tensor.storage_size, unit);
  std::uint64_t end = tensor.begin + 1;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] == 0) return tensor;
    end = CappedAdd(end, CappedMul(tensor.shape[d] - 1, tensor.strides[d]));
  }
  if (CappedMul(end, element_size) > stored) {
    Refuse(Code::kCorrupt, StrCat("tensor ends at byte ", CappedMul(end, element_size),
                                  " of its storage, which has ", stored));
  }
  if (view != nullptr) tensor.begin += NaturalOf(*view->parts()->items[1]);
  return tensor;
}

}  // namespace sealpoint::internal::foreign
