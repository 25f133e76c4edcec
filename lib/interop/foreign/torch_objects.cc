// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "lib/interop/foreign/arguments.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/torch_values.h"
#include "sealpoint/bytes.h"

// Objects of the classes that have a form.

namespace sealpoint::internal::foreign {
namespace {

using Kind = Pickled::Kind;

// A number as a node, and as text, in bytes.
constexpr std::uint64_t kSizeCost = 64;
constexpr std::size_t kObjectShownMax = 200;

}  // namespace

ForeignNode TorchValues::Object(const Pickled& value) {
  try {
    return KnownObject(value);
  } catch (const std::invalid_argument& error) {
    Refuse(Code::kCorrupt, StrCat("an object of ", Printable(value.text.substr(0, kObjectShownMax)),
                                  " is malformed: ", error.what()));
  }
}

ForeignNode TorchValues::KnownObject(const Pickled& value) {
  const std::string name(value.text);
  const PickledItems& args = ArgsOf(value);
  if (MakesTensor(name)) return Tensor(value);
  // As sealpoint.save stores a path.
  if (name.starts_with("pathlib.") && name.ends_with("Path") && value.parts()->state == nullptr) {
    std::string path;
    for (const Pickled* const part : args) path = JoinPath(path, NameOf(*part));
    return Text(path.empty() ? "." : path);
  }
  if (name.starts_with("collections.")) return Container(value);
  if (name == "torch.Size") {
    ForeignNode::List items;
    const PickledItems& sizes = SequenceOf(At(args, 0));
    Cost(CappedMul(sizes.size(), kSizeCost));
    for (const Pickled* const extent : sizes) {
      items.push_back(static_cast<std::int64_t>(NaturalOf(*extent)));
    }
    return {{kNodeKind, "size"}, {"items", std::move(items)}};
  }
  if (name == "torch.device") {
    std::string device;
    for (const Pickled* const part : args) {
      if (!part->is(Kind::kText) && !part->is(Kind::kInt)) {
        InvalidValue(StrCat("a device has a ", KindName(*part), ", expected a str or an int"));
      }
      Cost(part->text.size());
      if (part != args.front()) device += ':';
      if (part->is(Kind::kText)) {
        device += part->text;
      } else {
        device += std::to_string(part->number);
      }
    }
    return {{kNodeKind, "device"}, {"name", Text(device)}};
  }
  if (name == "argparse.Namespace") return Namespace(value);
  if (name == "_io.BytesIO") {
    if (value.parts()->state == nullptr) InvalidValue("a file without a state");
    const Pickled& bytes = At(SequenceOf(*value.parts()->state), 0);
    return {{kNodeKind, "file"}, {"base64", Base64(BytesOf(bytes))}};
  }
  if (name == "_codecs.encode") return {{kNodeKind, "bytes"}, {"base64", Base64(BytesOf(value))}};
  // Python 3.11.0 to 3.11.3 pickle a member of an enumeration by its name.
  const bool is_member = (name == "builtins.getattr" || name == "__builtin__.getattr") &&
                         args.size() == 2 && value.parts()->state == nullptr &&
                         args[0]->is(Kind::kGlobal) && args[0]->text.starts_with("megatron.") &&
                         args[1]->is(Kind::kText);
  if (is_member) {
    return {{kNodeKind, "enum"}, {"class", Text(args[0]->text)}, {"name", Text(args[1]->text)}};
  }
  if (name.starts_with("__builtin__.") || name.starts_with("builtins.")) {
    return Builtin(name, args);
  }
  if (name.starts_with("numpy.")) return Array(value);
  const bool is_enum = name.starts_with("megatron.") && args.size() == 1 &&
                       value.parts()->state == nullptr &&
                       (args[0]->is(Kind::kInt) || args[0]->is(Kind::kText));
  if (!is_enum) throw Unknown{name};
  return {{kNodeKind, "enum"}, {"class", name}, {"value", Plain(*args[0])}};
}

ForeignNode TorchValues::Container(const Pickled& value) {
  PickledPairs pairs;
  const PickledItems& args = ArgsOf(value);
  if (value.text == "collections.deque") {
    PickledItems items = args.empty() ? PickledItems() : SequenceOf(*args[0]);
    std::ranges::copy(value.parts()->items, std::back_inserter(items));
    return Items(items);
  }
  if (value.text == "collections.Counter") {
    if (!args.empty() && !args[0]->is(Kind::kMapping)) {
      InvalidValue(StrCat("counts are a ", KindName(*args[0]), ", expected a mapping"));
    }
    if (!args.empty()) pairs = args[0]->parts()->pairs;
  } else if (value.text == "collections.OrderedDict" && !args.empty()) {
    for (const Pickled* const pair : SequenceOf(*args[0])) {
      const PickledItems& both = SequenceOf(*pair);
      if (both.size() != 2) {
        InvalidValue(StrCat("an entry has ", both.size(), " values, expected a key and a value"));
      }
      pairs.emplace_back(both[0], both[1]);
    }
  }
  if (value.text != "collections.OrderedDict" && value.text != "collections.Counter" &&
      value.text != "collections.defaultdict") {
    throw Unknown{std::string(value.text)};
  }
  std::ranges::copy(value.parts()->pairs, std::back_inserter(pairs));
  return Mapping(pairs);
}

ForeignNode TorchValues::Namespace(const Pickled& value) {
  const Pickled* const state = value.parts()->state;
  if (state == nullptr) return {{kNodeKind, "namespace"}, {"items", ForeignNode::Members()}};
  if (!state->is(Kind::kMapping)) InvalidValue("a namespace without a mapping");
  for (const auto& [key, one] : state->parts()->pairs) {
    if (!key->is(Kind::kText)) {
      InvalidValue(StrCat("a name is a ", KindName(*key), ", expected a str"));
    }
  }
  return {{kNodeKind, "namespace"}, {"items", Mapping(state->parts()->pairs)}};
}

ForeignNode TorchValues::Builtin(const std::string& full_name, const PickledItems& args) {
  const std::string name = full_name.substr(full_name.find('.') + 1);
  if (name == "set" || name == "frozenset") {
    const PickledItems none;
    return Set(args.empty() ? none : SequenceOf(*args[0]), name == "frozenset");
  }
  if (name == "bytes" || name == "bytearray") {
    return {{kNodeKind, "bytes"}, {"base64", Base64(args.empty() ? "" : BytesOf(*args[0]))}};
  }
  if (name != "complex") throw Unknown{full_name};
  if (args.size() != 2)
    InvalidValue(StrCat("a complex number has ", args.size(), " parts, expected 2"));
  ForeignNode::Members node;
  node.push_back({kNodeKind, "complex"});
  for (std::size_t i = 0; i < 2; ++i) {
    if (!args[i]->is(Kind::kFloat) && !args[i]->is(Kind::kInt)) {
      InvalidValue(StrCat("a part is a ", KindName(*args[i]), ", expected a number"));
    }
    Pickled part;
    part.kind = Kind::kFloat;
    part.real = args[i]->is(Kind::kInt) ? static_cast<double>(args[i]->number) : args[i]->real;
    node.push_back({i == 0 ? "real" : "imag", Plain(part)});
  }
  return node;
}

}  // namespace sealpoint::internal::foreign
