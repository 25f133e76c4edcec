// SPDX-License-Identifier: Apache-2.0
#include "lib/format/attributes.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/utf8.h"

namespace sealpoint {
namespace {

// Types of the encoding: the number of the alternative of AttributeValue, plus 1; lists from 17 on.
constexpr std::uint8_t kString = 1;
constexpr std::uint8_t kFloat = 3;
constexpr std::uint8_t kBool = 4;
constexpr std::uint8_t kList = 16;

std::uint8_t TypeOf(const AttributeValue& value) {
  const std::size_t number = value.index();
  return static_cast<std::uint8_t>(number < kBool ? number + 1 : number - kBool + kList + 1);
}

// Takes little-endian fields from the front of an encoded set.
class Fields {
 public:
  explicit Fields(std::string_view set) : size_(set.size()), rest_(set) {}

  std::size_t at() const { return size_ - rest_.size(); }
  bool at_end() const { return rest_.empty(); }
  bool Take(std::size_t size, std::string_view& bytes) {
    if (size > rest_.size()) return false;
    bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  template <typename T>
  bool Take(T& number) {
    std::string_view bytes;
    if (!Take(sizeof(T), bytes)) return false;
    number = 0;
    for (std::size_t i = sizeof(T); i-- > 0;) {
      number = static_cast<T>(std::uint64_t{number} << 8 | static_cast<std::uint8_t>(bytes[i]));
    }
    return true;
  }
  bool TakeText(std::string_view& text) {
    std::uint32_t size = 0;
    return Take(size) && Take(size, text);
  }

 private:
  std::size_t size_;
  std::string_view rest_;
};

struct Entry {
  std::string_view name;
  std::uint8_t type = 0;
  std::uint32_t count = 0;

  bool is_list() const { return type > kList; }
  std::uint8_t element() const {
    return static_cast<std::uint8_t>(is_list() ? type - kList : type);
  }
};

bool TakeEntry(Fields& in, Entry& entry) {
  std::uint16_t name_size = 0;
  return in.Take(name_size) && in.Take(name_size, entry.name) && in.Take(entry.type) &&
         in.Take(entry.count);
}

Status Fault(Code code, std::string_view rule, std::size_t at, std::string_view message) {
  return internal::RuleError(code, rule, message).AtOffset(at);
}

Status CheckEntry(const Entry& entry, std::string_view previous, std::size_t at) {
  if (entry.name.empty() || entry.name.size() > kAttributeNameSizeMaxBytes ||
      !internal::IsPrintableUtf8(entry.name)) {
    return Fault(Code::kCorrupt, "R-ATT-03", at,
                 internal::StrCat("the name of an attribute has ", entry.name.size(),
                                  " bytes, expected 1 to ", kAttributeNameSizeMaxBytes,
                                  " bytes of UTF-8 without control characters"));
  }
  if (entry.name <= previous) {
    return Fault(Code::kCorrupt, "R-ATT-03", at,
                 internal::StrCat("attribute \"", entry.name, "\" does not sort after \"", previous,
                                  "\", the one before it"));
  }
  if (entry.element() < kString || entry.element() > kBool) {
    return Fault(Code::kUnsupported, "R-ATT-04", at,
                 internal::StrCat("attribute \"", entry.name, "\" has type ", unsigned{entry.type},
                                  ", this build reads 1 to 4 and 17 to 20"));
  }
  if (!entry.is_list() && entry.count != 1) {
    return Fault(Code::kCorrupt, "R-ATT-05", at,
                 internal::StrCat("attribute \"", entry.name, "\" has ", entry.count,
                                  " values, expected 1"));
  }
  return {};
}

Status CheckValues(const Entry& entry, Fields& in) {
  const auto outside = [&] {
    return Fault(Code::kCorrupt, "R-ATT-02", in.at(),
                 internal::StrCat("the values of attribute \"", entry.name, "\" exceed the set"));
  };
  std::string_view text;
  std::uint8_t truth = 0;
  if (entry.element() != kString && entry.element() != kBool) {
    return in.Take(std::size_t{8} * entry.count, text) ? Status() : outside();
  }
  for (std::uint32_t i = 0; i < entry.count; ++i) {
    const std::size_t at = in.at();
    const bool is_text = entry.element() == kString;
    if (!(is_text ? in.TakeText(text) : in.Take(truth))) return outside();
    if (is_text ? internal::IsUtf8(text) : truth <= 1) continue;
    return Fault(Code::kCorrupt, "R-ATT-05", at,
                 internal::StrCat("value ", i, " of attribute \"", entry.name,
                                  is_text ? "\" is not UTF-8" : "\" is another byte than 0 and 1"));
  }
  return {};
}

}  // namespace

Status internal::format::CheckAttributes(std::string_view encoded) {
  if (encoded.empty() || encoded.size() > kAttributesSizeMaxBytes) {
    return Fault(Code::kCorrupt, "R-ATT-01", 0,
                 StrCat("a set of attributes has ", encoded.size(), " bytes, expected 1 to ",
                        kAttributesSizeMaxBytes));
  }
  std::string_view previous;
  for (Fields in(encoded); !in.at_end();) {
    const std::size_t at = in.at();
    Entry entry;
    if (!TakeEntry(in, entry)) {
      return Fault(Code::kCorrupt, "R-ATT-02", at, "an attribute exceeds its set");
    }
    SEALPOINT_RETURN_IF_ERROR(CheckEntry(entry, previous, at));
    SEALPOINT_RETURN_IF_ERROR(CheckValues(entry, in));
    previous = entry.name;
  }
  return {};
}

namespace {

template <typename T>
void Put(T number, std::string& out) {
  const auto bits = static_cast<std::uint64_t>(number);
  for (std::size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(bits >> 8 * i));
}

void PutValue(const std::string& text, std::string& out) {
  Put(static_cast<std::uint32_t>(text.size()), out);
  out.append(text);
}
void PutValue(std::int64_t number, std::string& out) { Put(number, out); }
void PutValue(double number, std::string& out) { Put(std::bit_cast<std::uint64_t>(number), out); }
void PutValue(bool truth, std::string& out) { Put(static_cast<std::uint8_t>(truth), out); }

template <typename T>
void PutValues(const T& value, std::string& out) {
  Put(std::uint32_t{1}, out);
  PutValue(value, out);
}
template <typename T>
void PutValues(const std::vector<T>& values, std::string& out) {
  Put(static_cast<std::uint32_t>(values.size()), out);
  for (const T& value : values) PutValue(value, out);
}

// Preconditions: the set was checked. One value of the type.
void TakeValue(Fields& in, std::string& text) {
  std::string_view bytes;
  in.TakeText(bytes);
  text = bytes;
}
void TakeValue(Fields& in, std::int64_t& number) {
  std::uint64_t bits = 0;
  in.Take(bits);
  number = std::bit_cast<std::int64_t>(bits);
}
void TakeValue(Fields& in, double& number) {
  std::uint64_t bits = 0;
  in.Take(bits);
  number = std::bit_cast<double>(bits);
}
void TakeValue(Fields& in, bool& truth) {
  std::uint8_t byte = 0;
  in.Take(byte);
  truth = byte != 0;
}

template <typename T>
AttributeValue TakeValues(const Entry& entry, Fields& in) {
  std::vector<T> values;
  for (std::uint32_t i = 0; i < entry.count; ++i) {
    T value{};
    TakeValue(in, value);
    values.push_back(std::move(value));
  }
  if (entry.is_list()) return values;
  return T(values.front());
}

AttributeValue TakeValueOf(const Entry& entry, Fields& in) {
  switch (entry.element()) {
    case kString:
      return TakeValues<std::string>(entry, in);
    case kFloat:
      return TakeValues<double>(entry, in);
    case kBool:
      return TakeValues<bool>(entry, in);
    default:
      return TakeValues<std::int64_t>(entry, in);
  }
}

std::string Quoted(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      out += {'\\',
              'u',
              '0',
              '0',
              kHex[static_cast<std::size_t>(c) >> 4],
              kHex[static_cast<std::size_t>(c) & 15]};
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string Text(const std::string& value) { return Quoted(value); }
std::string Text(std::int64_t value) { return std::to_string(value); }
std::string Text(bool value) { return value ? "true" : "false"; }
std::string Text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}
template <typename T>
std::string Text(const std::vector<T>& values) {
  std::string out = "[";
  for (const T& value : values) out += (out.size() > 1 ? ", " : "") + Text(value);
  return out + ']';
}

}  // namespace

std::string AttributeToString(const AttributeValue& value) {
  return std::visit([](const auto& held) { return Text(held); }, value);
}

Result<Attributes> Attributes::Make(const Values& values) {
  Attributes made;
  for (const auto& [name, value] : values) {
    if (name.size() > kAttributeNameSizeMaxBytes) {
      return internal::InvalidArgument("the name of an attribute has ", name.size(),
                                       " bytes, at most ", kAttributeNameSizeMaxBytes);
    }
    Put(static_cast<std::uint16_t>(name.size()), made.encoded_);
    made.encoded_.append(name);
    Put(TypeOf(value), made.encoded_);
    std::visit([&](const auto& held) { PutValues(held, made.encoded_); }, value);
  }
  if (made.empty()) return made;
  // Lengths that do not fit their fields make a set that is too large.
  const Status status = internal::format::CheckAttributes(made.encoded_);
  if (status.ok()) return made;
  return internal::RuleError(Code::kInvalidArgument, status.place().rule, status.message());
}

Result<Attributes> Attributes::Decode(std::string_view encoded) {
  Attributes decoded;
  if (encoded.empty()) return decoded;
  SEALPOINT_RETURN_IF_ERROR(internal::format::CheckAttributes(encoded));
  decoded.encoded_ = encoded;
  return decoded;
}

Attributes::Values Attributes::values() const {
  Values values;
  for (Fields in(encoded_); !in.at_end();) {
    Entry entry;
    TakeEntry(in, entry);
    values.emplace_hint(values.end(), std::string(entry.name), TakeValueOf(entry, in));
  }
  return values;
}

}  // namespace sealpoint
