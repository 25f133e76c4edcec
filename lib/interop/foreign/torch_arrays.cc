// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <string_view>

#include "lib/interop/foreign/arguments.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/known_classes.h"
#include "lib/interop/foreign/torch_values.h"

// Bytes and arrays of numpy.

namespace sealpoint::internal::foreign {
namespace {

using Kind = Pickled::Kind;

// The bytes that a text in latin-1 stands for: pickles of protocol 2 have bytes so.
std::string EncodedBytes(const PickledItems& args) {
  const Pickled& text = At(args, 0);
  const std::string_view encoding = At(args, 1).text;
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

std::string TorchValues::BytesOf(const Pickled& value) {
  const bool is_encoded = value.is(Kind::kObject) && value.text == "_codecs.encode";
  if (!is_encoded && !value.is(Kind::kBytes)) InvalidValue("bytes are none");
  Cost(CappedMul(is_encoded ? At(ArgsOf(value), 0).text.size() : value.text.size(), 4));
  return is_encoded ? EncodedBytes(ArgsOf(value)) : std::string(value.text);
}

DType TorchValues::DTypeOfArray(const Pickled& described) {
  if (!described.is(Kind::kObject) || described.text != "numpy.dtype") {
    InvalidValue("an array without a dtype");
  }
  if (described.parts()->state != nullptr) {
    const std::string_view order = At(SequenceOf(*described.parts()->state), 1).text;
    if (order == ">") throw Unknown{"numpy.ndarray of big-endian numbers"};
    if (order != "<" && order != "|" && order != "=") InvalidValue("an array without an order");
  }
  const Pickled& code = At(ArgsOf(described), 0);
  if (!code.is(Kind::kText)) InvalidValue("an array without a dtype");
  const auto dtype = DTypeOfNumpy(code.text);
  if (!dtype) throw Unknown{StrCat("numpy.ndarray of ", code.text)};
  return *dtype;
}

ForeignNode TorchValues::Array(const Pickled& value) {
  const bool is_buffer = value.text.ends_with("._frombuffer");
  const PickledItems* items = &ArgsOf(value);
  if (value.text.ends_with(".scalar")) {
    return {{kNodeKind, "array"},
            {"dtype", DTypeName(DTypeOfArray(At(*items, 0)))},
            {"base64", Base64(BytesOf(At(*items, 1)))}};
  }
  if (!is_buffer && !value.text.ends_with("._reconstruct")) throw Unknown{std::string(value.text)};
  if (!is_buffer) {
    if (value.parts()->state == nullptr) InvalidValue("an array without a state");
    items = &SequenceOf(*value.parts()->state);
  }
  // bytes, dtype, shape, order; or version, shape, dtype, whether by columns, bytes
  const DType dtype = DTypeOfArray(At(*items, is_buffer ? 1 : 2));
  const std::string bytes = BytesOf(At(*items, is_buffer ? 0 : 4));
  const Shape shape = SizesOf(At(*items, is_buffer ? 2 : 1));
  const Pickled& order = At(*items, 3);
  const bool is_by_columns =
      is_buffer ? order.text == "F" : order.is(Kind::kBool) && order.number != 0;
  const Result<std::uint64_t> count = ElementCount(shape);
  const std::uint32_t size = DTypeSizeBytes(dtype);
  if (!count.ok() || *count != bytes.size() / size || bytes.size() % size != 0) {
    InvalidValue(StrCat(bytes.size(), " bytes of an array of ", ShapeToString(shape)));
  }
  ForeignNode::List sizes;
  for (const std::uint64_t extent : shape) sizes.push_back(static_cast<std::int64_t>(extent));
  return {{kNodeKind, "array"},
          {"dtype", DTypeName(dtype)},
          {"base64", Base64(is_by_columns ? ByRows(bytes, shape, size) : bytes)},
          {"shape", std::move(sizes)}};
}

}  // namespace sealpoint::internal::foreign
