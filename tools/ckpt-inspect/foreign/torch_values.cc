// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt-inspect/foreign/torch_values.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "sealpoint/text.h"
#include "tools/ckpt-inspect/foreign/bytes.h"
#include "tools/ckpt-inspect/foreign/failure.h"
#include "tools/ckpt-inspect/foreign/known_classes.h"

namespace sealpoint::tools {
namespace {

using Kind = Pickled::Kind;

constexpr const char* kNodeKind = "$";
constexpr std::size_t kNestingMax = 200;
// More places than a pickle of this length has unless it is made to explode.
constexpr std::uint64_t kPlacesMin = 1'000'000;
constexpr std::int64_t kIntMax = (std::int64_t{1} << 53) - 1;
constexpr std::size_t kClassShownMax = 200;
constexpr std::size_t kShownDepth = 8;
constexpr std::size_t kDimensionsMax = 64;

[[noreturn]] void InvalidValue(const std::string& message) { throw std::invalid_argument(message); }

// Of a tuple or list. Throws if it has less.
const Pickled& At(const PickledItems& items, std::size_t i) {
  if (i >= items.size()) InvalidValue("an argument is missing");
  return *items[i];
}

const PickledItems& ArgsOf(const Pickled& object) { return object.parts->args->parts->items; }

const PickledItems& SequenceOf(const Pickled& value) {
  if (!value.is_sequence()) InvalidValue("a value is no list or tuple");
  return value.parts->items;
}

bool IsParameter(std::string_view name) {
  return name == "torch._utils._rebuild_parameter" ||
         name == "torch._utils._rebuild_parameter_with_state";
}
bool IsTensorV2(std::string_view name) { return name == "torch._utils._rebuild_tensor_v2"; }
bool IsTensorV3(std::string_view name) { return name == "torch._utils._rebuild_tensor_v3"; }
bool IsTypedTensor(std::string_view name) { return name == "torch._tensor._rebuild_from_type_v2"; }

bool IsPlainTensorType(const Pickled& type) {
  return type.text == "torch.Tensor" || type.text == "torch.nn.parameter.Parameter";
}

ValuePath Below(const ValuePath& path, PathPart part) {
  ValuePath below = path;
  below.push_back(std::move(part));
  return below;
}

// As Python's str() of the key that a pickle describes, for names; integers and strings stay.
PathPart PartOf(const Pickled& key);

std::string Repr(const Pickled& value) {
  switch (value.kind) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.number != 0 ? "True" : "False";
    case Kind::kInt:
      return std::to_string(value.number);
    case Kind::kFloat:
      return FloatText(value.real);
    case Kind::kText:
      return QuotedText(value.text);
    case Kind::kTuple: {
      std::string text = "(";
      for (const Pickled* const one : value.parts->items) {
        text += (text.size() > 1 ? ", " : "") + Repr(*one);
      }
      return text + (value.parts->items.size() == 1 ? ",)" : ")");
    }
    default:
      return value.text;
  }
}

PathPart PartOf(const Pickled& key) {
  if (key.is(Kind::kInt)) return key.number;
  return key.is(Kind::kText) ? key.text : Repr(key);
}

// Whether Python could hash it: what a key, or an element of a set, has to be.
bool IsHashable(const Pickled& value) {
  if (value.is(Kind::kList) || value.is(Kind::kMapping) || value.is(Kind::kSet)) return false;
  if (!value.is(Kind::kTuple)) return true;
  return std::ranges::all_of(value.parts->items,
                             [](const Pickled* one) { return IsHashable(*one); });
}

// The bytes that a text in latin-1 stands for: pickles of protocol 2 have bytes so.
std::string EncodedBytes(const PickledItems& args) {
  const Pickled& text = At(args, 0);
  const std::string& encoding = At(args, 1).text;
  if (!text.is(Kind::kText) || (encoding != "latin1" && encoding != "latin-1")) {
    InvalidValue("bytes of an unknown encoding");
  }
  std::string bytes;
  for (std::size_t at = 0; at < text.text.size(); ++at) {
    const auto lead = static_cast<unsigned char>(text.text[at]);
    if (lead >= 0xc4) InvalidValue("a character is not of latin-1");
    const unsigned next = lead < 0x80 ? 0 : static_cast<unsigned char>(text.text[++at]);
    bytes.push_back(static_cast<char>(lead < 0x80 ? lead : (lead & 3u) << 6 | (next & 0x3fu)));
  }
  return bytes;
}

// An array whose elements lie by columns, by rows.
std::string ByRows(const std::string& bytes, const Shape& shape, std::size_t element_size) {
  std::string rows;
  Shape index(shape.size(), 0);
  while (rows.size() < bytes.size()) {
    std::size_t at = 0;
    for (std::size_t d = shape.size(); d > 0; --d) at = at * shape[d - 1] + index[d - 1];
    rows.append(bytes, at * element_size, element_size);
    for (std::size_t d = shape.size(); d > 0 && ++index[d - 1] == shape[d - 1]; --d) {
      index[d - 1] = 0;
    }
  }
  return rows;
}

}  // namespace

std::uint64_t NaturalOf(const Pickled& value) {
  if (!value.is(Kind::kInt) || value.number < 0 || value.number >= std::int64_t{1} << 62) {
    InvalidValue("a value is no size");
  }
  return static_cast<std::uint64_t>(value.number);
}

Shape SizesOf(const Pickled& value) {
  const bool is_size = value.is(Kind::kObject) && value.text == "torch.Size";
  const PickledItems& items = SequenceOf(is_size ? At(ArgsOf(value), 0) : value);
  if (items.size() > kDimensionsMax) InvalidValue("a shape has too many dimensions");
  Shape sizes;
  for (const Pickled* const one : items) sizes.push_back(NaturalOf(*one));
  return sizes;
}

void TorchValues::Refuse(Code code, const ValuePath& path, const std::string& message) const {
  throw Failure{Status(code, message)
                    .AtPath(archive_.path())
                    .AtOffset(archive_.pickle_begin())
                    .AtObject(Printable(TextOf(path)))};
}

Json TorchValues::Node(const Pickled& value, const ValuePath& path) {
  try {
    Json node = Plain(value, path);
    std::ranges::move(shared_, std::back_inserter(state_.notes));
    shared_.clear();
    return node;
  } catch (const Unknown& unknown) {
    Refuse(Code::kUnsupported, path,
           fmt::format("values of '{}' have no form in the format",
                       Printable(unknown.name.substr(0, kClassShownMax))));
  }
}

std::string TorchValues::Text(const std::string& text, const ValuePath& path) const {
  if (!IsText(text, false)) Refuse(Code::kUnsupported, path, "string is no text");
  return text;
}

Json TorchValues::Plain(const Pickled& value, const ValuePath& path) {
  const ValuePath shown(
      path.begin(), path.begin() + static_cast<std::ptrdiff_t>(std::min(path.size(), kShownDepth)));
  if (path.size() > kNestingMax) {
    Refuse(Code::kLimitExceeded, shown, "values are nested deeper than 200 levels, or in a cycle");
  }
  if (++places_ > std::max(kPlacesMin, 4 * archive_.pickle_size())) {
    Refuse(Code::kLimitExceeded, shown, "the pickle unfolds to more values than its length allows");
  }
  switch (value.kind) {
    case Kind::kNone:
      return nullptr;
    case Kind::kBool:
      return value.number != 0;
    case Kind::kInt:
      if (value.number >= -kIntMax && value.number <= kIntMax) return value.number;
      return {{kNodeKind, "int"}, {"value", std::to_string(value.number)}};
    case Kind::kLargeInt:
      return {{kNodeKind, "int"}, {"value", value.text}};
    case Kind::kFloat:
      if (std::isfinite(value.real)) return value.real;
      return {{kNodeKind, "float"}, {"value", FloatText(value.real)}};
    case Kind::kText:
      return Text(value.text, path);
    case Kind::kBytes:
      return {{kNodeKind, "bytes"}, {"base64", Base64(value.text)}};
    case Kind::kList:
      return Items(value.parts->items, path);
    case Kind::kTuple:
      return {{kNodeKind, "tuple"}, {"items", Items(value.parts->items, path)}};
    case Kind::kMapping:
      return Mapping(value.parts->pairs, path);
    case Kind::kSet:
    case Kind::kFrozenSet:
      return Set(value.parts->items, value.is(Kind::kFrozenSet), path);
    case Kind::kObject:
      return Object(value, path);
    case Kind::kGlobal: {
      if (!DTypeOfTorch(value.text)) throw Unknown{value.text};
      constexpr std::string_view kModule = "torch.";
      const bool has_module = value.text.starts_with(kModule);
      return {{kNodeKind, "dtype"}, {"name", value.text.substr(has_module ? kModule.size() : 0)}};
    }
    case Kind::kPersistent:
      break;
  }
  Refuse(Code::kCorrupt, path, "a value is a Persistent, expected no such thing there");
}

Json TorchValues::Items(const PickledItems& items, const ValuePath& path) {
  Json nodes = Json::array();
  for (const Pickled* const one : items) {
    nodes.push_back(Plain(*one, Below(path, static_cast<std::int64_t>(nodes.size()))));
  }
  return nodes;
}

void TorchValues::AddEntry(const Pickled& key, const Pickled& value, const ValuePath& path,
                           Entries& entries) {
  Json key_node = Plain(key, path);
  const bool is_key = key.kind <= Kind::kText || key.is(Kind::kTuple);
  if (!is_key) {
    Refuse(Code::kUnsupported, path,
           fmt::format("a key is a {}, expected a string or a number", KindName(key.kind)));
  }
  if (!IsHashable(key)) Refuse(Code::kCorrupt, path, "a key holds what no key can hold");
  const ValuePath below = Below(path, PartOf(key));
  try {
    Json node = Plain(value, below);
    // A key that comes again keeps its place.
    const auto [at, is_new] =
        entries.positions.try_emplace(PythonJson(key_node), entries.nodes.size());
    if (is_new) entries.nodes.emplace_back(std::move(key_node), Json());
    entries.nodes[at->second].second = std::move(node);
  } catch (const Unknown& unknown) {
    state_.notes.push_back(
        fmt::format("{} is left out: its class is {}", TextOf(below), unknown.name));
  }
}

Json TorchValues::Mapping(const PickledPairs& pairs, const ValuePath& path) {
  Entries entries;
  bool is_plain = true;
  for (const auto& [key, value] : pairs) {
    AddEntry(*key, *value, path, entries);
    is_plain &= key->is(Kind::kText) && key->text != kNodeKind;
  }
  if (is_plain) {
    Json::object_t plain;
    for (auto& [key, node] : entries.nodes)
      plain.emplace_back(key.get<std::string>(), std::move(node));
    return plain;
  }
  Json items = Json::array();
  for (auto& [key, node] : entries.nodes) {
    items.push_back(Json::array({std::move(key), std::move(node)}));
  }
  return {{kNodeKind, "dict"}, {"items", std::move(items)}};
}

Json TorchValues::Set(const PickledItems& items, bool is_frozen, const ValuePath& path) {
  std::map<std::string, Json> sorted;  // each once
  for (std::size_t i = 0; i < items.size(); ++i) {
    Json node = Plain(*items[i], Below(path, static_cast<std::int64_t>(i)));
    if (!IsHashable(*items[i])) Refuse(Code::kCorrupt, path, "a set holds what no set can hold");
    std::string text = PythonJson(node, true);
    sorted.emplace(std::move(text), std::move(node));
  }
  Json nodes = Json::array();
  for (auto& [text, node] : sorted) nodes.push_back(std::move(node));
  return {{kNodeKind, is_frozen ? "frozenset" : "set"}, {"items", std::move(nodes)}};
}

Json TorchValues::Object(const Pickled& value, const ValuePath& path) {
  try {
    return KnownObject(value, path);
  } catch (const std::invalid_argument& error) {
    Refuse(Code::kCorrupt, path,
           fmt::format("an object of {} is malformed: {}", Printable(value.text), error.what()));
  }
}

Json TorchValues::KnownObject(const Pickled& value, const ValuePath& path) {
  const std::string& name = value.text;
  const PickledItems& args = ArgsOf(value);
  if (IsTensorV2(name) || IsTensorV3(name) || IsParameter(name) || IsTypedTensor(name)) {
    return Tensor(value, path);
  }
  if (name == "collections.OrderedDict") return Ordered(value, path);
  if (name == "torch.Size") {
    Json items = Json::array();
    for (const Pickled* const one : SequenceOf(At(args, 0))) items.push_back(NaturalOf(*one));
    return {{kNodeKind, "size"}, {"items", std::move(items)}};
  }
  if (name == "torch.device") {
    std::string device;
    for (const Pickled* const part : args) {
      if (!part->is(Kind::kText) && !part->is(Kind::kInt)) InvalidValue("a device is no text");
      if (part != args.front()) device += ':';
      device += part->is(Kind::kText) ? part->text : std::to_string(part->number);
    }
    return {{kNodeKind, "device"}, {"name", Text(device, path)}};
  }
  if (name == "argparse.Namespace") return Namespace(value, path);
  if (name == "_io.BytesIO") {
    if (value.parts->state == nullptr) InvalidValue("a file without a state");
    const Pickled& bytes = At(SequenceOf(*value.parts->state), 0);
    return {{kNodeKind, "file"}, {"base64", Base64(BytesOf(bytes))}};
  }
  if (name == "_codecs.encode") return Encoded(args);
  if (name.starts_with("__builtin__.") || name.starts_with("builtins.")) {
    return Builtin(name.substr(name.find('.') + 1), args, path);
  }
  if (name.starts_with("numpy.")) return Array(value);
  const bool is_enum = name.starts_with("megatron.") && args.size() == 1 &&
                       value.parts->state == nullptr &&
                       (args[0]->is(Kind::kInt) || args[0]->is(Kind::kText));
  if (!is_enum) throw Unknown{name};
  return {{kNodeKind, "enum"}, {"class", name}, {"value", Plain(*args[0], path)}};
}

Json TorchValues::Ordered(const Pickled& value, const ValuePath& path) {
  PickledPairs pairs;
  const PickledItems& args = ArgsOf(value);
  if (!args.empty()) {
    for (const Pickled* const pair : SequenceOf(*args[0])) {
      const PickledItems& both = SequenceOf(*pair);
      if (both.size() != 2) InvalidValue("an entry is no pair");
      pairs.emplace_back(both[0], both[1]);
    }
  }
  std::ranges::copy(value.parts->pairs, std::back_inserter(pairs));
  return Mapping(pairs, path);
}

Json TorchValues::Namespace(const Pickled& value, const ValuePath& path) {
  const Pickled* const state = value.parts->state;
  if (state == nullptr) return {{kNodeKind, "namespace"}, {"items", Json::object()}};
  if (!state->is(Kind::kMapping)) InvalidValue("a namespace without a mapping");
  for (const auto& [key, one] : state->parts->pairs) {
    if (!key->is(Kind::kText)) InvalidValue("a name is no string");
  }
  return {{kNodeKind, "namespace"}, {"items", Mapping(state->parts->pairs, path)}};
}

std::string TorchValues::BytesOf(const Pickled& value) const {
  if (value.is(Kind::kBytes)) return value.text;
  if (value.is(Kind::kObject) && value.text == "_codecs.encode") {
    return std::string(EncodedBytes(ArgsOf(value)));
  }
  InvalidValue("bytes are none");
}

Json TorchValues::Encoded(const PickledItems& args) const {
  return {{kNodeKind, "bytes"}, {"base64", Base64(EncodedBytes(args))}};
}

Json TorchValues::Builtin(const std::string& name, const PickledItems& args,
                          const ValuePath& path) {
  if (name == "set" || name == "frozenset") {
    const PickledItems none;
    return Set(args.empty() ? none : SequenceOf(*args[0]), name == "frozenset", path);
  }
  if (name == "bytes" || name == "bytearray") {
    return {{kNodeKind, "bytes"}, {"base64", Base64(args.empty() ? "" : BytesOf(*args[0]))}};
  }
  if (name != "complex") throw Unknown{name};
  if (args.size() != 2) InvalidValue("a complex number has no two parts");
  Json node = {{kNodeKind, "complex"}};
  for (std::size_t i = 0; i < 2; ++i) {
    if (!args[i]->is(Kind::kFloat) && !args[i]->is(Kind::kInt)) InvalidValue("a part is no number");
    Pickled part;
    part.kind = Kind::kFloat;
    part.real = args[i]->is(Kind::kInt) ? static_cast<double>(args[i]->number) : args[i]->real;
    node[i == 0 ? "real" : "imag"] = Plain(part, path);
  }
  return node;
}

DType TorchValues::DTypeOfArray(const Pickled& described) {
  if (!described.is(Kind::kObject) || described.text != "numpy.dtype") {
    InvalidValue("an array without a dtype");
  }
  if (described.parts->state != nullptr) {
    const std::string& order = At(SequenceOf(*described.parts->state), 1).text;
    if (order != "<" && order != "|" && order != "=") InvalidValue("an array is big-endian");
  }
  const auto dtype = DTypeOfNumpy(At(ArgsOf(described), 0).text);
  if (!dtype) InvalidValue("an array of an unknown dtype");
  return *dtype;
}

Json TorchValues::Array(const Pickled& value) const {
  const bool is_buffer = value.text.ends_with("._frombuffer");
  const PickledItems* items = &ArgsOf(value);
  if (value.text.ends_with(".scalar")) {
    return {{kNodeKind, "array"},
            {"dtype", DTypeName(DTypeOfArray(At(*items, 0)))},
            {"base64", Base64(BytesOf(At(*items, 1)))}};
  }
  if (!is_buffer && !value.text.ends_with("._reconstruct")) throw Unknown{value.text};
  if (!is_buffer) {
    if (value.parts->state == nullptr) InvalidValue("an array without a state");
    items = &SequenceOf(*value.parts->state);
  }
  // bytes, dtype, shape, order; or version, shape, dtype, whether by columns, bytes
  const std::string bytes = BytesOf(At(*items, is_buffer ? 0 : 4));
  const DType dtype = DTypeOfArray(At(*items, is_buffer ? 1 : 2));
  const Shape shape = SizesOf(At(*items, is_buffer ? 2 : 1));
  const Pickled& order = At(*items, 3);
  const bool is_by_columns = is_buffer ? order.text == "F" : order.number != 0;
  const Result<std::uint64_t> count = ElementCount(shape);
  const std::uint32_t size = DTypeSizeBytes(dtype);
  if (!count.ok() || *count != bytes.size() / size || bytes.size() % size != 0) {
    InvalidValue(fmt::format("{} bytes of an array of {}", bytes.size(), ShapeToString(shape)));
  }
  return {{kNodeKind, "array"},
          {"dtype", DTypeName(dtype)},
          {"base64", Base64(is_by_columns ? ByRows(bytes, shape, size) : bytes)},
          {"shape", shape}};
}

Json TorchValues::Tensor(const Pickled& value, const ValuePath& path) {
  const StoredTensor tensor = TensorOf(value, path, 0);
  const std::string name = Text(TextOf(path), path);
  const bool is_empty = std::ranges::find(tensor.shape, 0u) != tensor.shape.end();
  if (const auto found = known_.find(tensor); found != known_.end() && !is_empty) {
    return TensorNode(found->second);
  }
  if (state_.tensors.contains(name)) {
    throw Failure{Status(Code::kUnsupported, "two tensors of the state have this path")
                      .AtPath(archive_.path())
                      .AtTensor(name)};
  }
  if (!is_empty) {
    known_.emplace(tensor, name);
    const std::string& first = storages_.try_emplace(tensor.key, name).first->second;
    if (first != name) {
      shared_.push_back(
          fmt::format("{} shares memory with {}; each is kept by itself", name, first));
    }
    archive_.CheckStorage(tensor.key, tensor.storage_size);
  }
  state_.tensors[name] = {tensor.dtype, tensor.shape, is_empty ? std::size_t{0} : 1};
  return TensorNode(name);
}

StoredTensor TorchValues::TensorOf(const Pickled& value, const ValuePath& path, int depth) {
  constexpr int kWrapsMax = 8;
  if (!value.is(Kind::kObject) || depth > kWrapsMax) InvalidValue("a parameter without a tensor");
  const PickledItems& args = ArgsOf(value);
  if (IsParameter(value.text)) return TensorOf(At(args, 0), path, depth + 1);
  if (IsTypedTensor(value.text)) {
    const Pickled& function = At(args, 0);
    if (!IsPlainTensorType(At(args, 1))) throw Unknown{At(args, 1).text};
    if (!At(args, 2).is(Kind::kTuple)) InvalidValue("a tensor without arguments");
    const PickledItems& inner = At(args, 2).parts->items;
    const bool is_v3 = IsTensorV3(function.text);
    if (!is_v3 && !IsTensorV2(function.text)) InvalidValue("a tensor that is none");
    return InStorage(inner, is_v3 ? &At(inner, 6) : nullptr, path);
  }
  const bool is_v3 = IsTensorV3(value.text);
  if (!is_v3 && !IsTensorV2(value.text)) InvalidValue("a parameter without a tensor");
  return InStorage(args, is_v3 ? &At(args, 6) : nullptr, path);
}

StoredTensor TorchValues::InStorage(const PickledItems& args, const Pickled* dtype,
                                    const ValuePath& path) {
  const std::size_t metadata = dtype != nullptr ? 7 : 6;
  if (metadata < args.size() && args[metadata]->parts && !args[metadata]->parts->pairs.empty()) {
    Refuse(Code::kUnsupported, path,
           "the tensor is a view with a conjugate or negative bit; resolve it first");
  }
  const Pickled& storage = At(args, 0);
  if (!storage.is(Kind::kPersistent) || !storage.parts->items[0]->is(Kind::kTuple)) {
    InvalidValue("a tensor without a storage");
  }
  const PickledItems& id = storage.parts->items[0]->parts->items;
  if (id.size() != 5 || id[0]->text != "storage" || !id[2]->is(Kind::kText)) {
    InvalidValue("a tensor without a storage");
  }
  const auto known = dtype != nullptr ? DTypeOfTorch(dtype->text) : DTypeOfStorage(id[1]->text);
  if (!known) {
    Refuse(Code::kUnsupported, path,
           fmt::format("a tensor has the dtype of {}, which the format lacks",
                       Printable(dtype != nullptr ? dtype->text : id[1]->text)));
  }
  const std::uint64_t element_size = DTypeSizeBytes(*known);
  StoredTensor tensor{.key = id[2]->text,
                      .storage_size = NaturalOf(*id[4]),
                      .dtype = *known,
                      .begin = NaturalOf(At(args, 1)),
                      .shape = SizesOf(At(args, 2)),
                      .strides = SizesOf(At(args, 3))};
  if (tensor.shape.size() != tensor.strides.size()) InvalidValue("other strides than extents");
  tensor.storage_size =
      CappedMul(tensor.storage_size, IsUntypedStorage(id[1]->text) ? 1 : element_size);
  std::uint64_t end = tensor.begin + 1;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] == 0) return tensor;
    end = CappedAdd(end, CappedMul(tensor.shape[d] - 1, tensor.strides[d]));
  }
  if (CappedMul(end, element_size) > tensor.storage_size) {
    Refuse(Code::kCorrupt, path,
           fmt::format("tensor ends at byte {} of its storage, which has {}",
                       CappedMul(end, element_size), tensor.storage_size));
  }
  return tensor;
}

}  // namespace sealpoint::tools
