// SPDX-License-Identifier: Apache-2.0
#include "lib/safetensors/json_reader.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/utf8.h"

namespace sealpoint::internal::safetensors {
namespace {

constexpr std::uint64_t kSizeEnd = std::uint64_t{1} << 62;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

void AppendUtf8(std::string& out, char32_t point) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | point >> 6);
  } else {
    if (point < 0x10000) {
      put(0xe0 | point >> 12);
    } else {
      put(0xf0 | point >> 18);
      put(0x80 | (point >> 12 & 0x3f));
    }
    put(0x80 | (point >> 6 & 0x3f));
  }
  put(0x80 | (point & 0x3f));
}

}  // namespace

void JsonReader::Fail(std::string_view message) {
  if (status_.ok()) status_ = MakeError(Code::kCorrupt, message).AtOffset(at_);
  at_ = text_.size();
}

void JsonReader::SkipSpace() {
  at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
}

bool JsonReader::Take(char expected) {
  SkipSpace();
  if (Front() != expected) return false;
  ++at_;
  return true;
}

JsonReader::Kind JsonReader::Peek() {
  SkipSpace();
  const char front = Front();
  if (front == '{') return Kind::kObject;
  if (front == '[') return Kind::kArray;
  if (front == '"') return Kind::kString;
  if (front == '-' || IsDigit(front)) return Kind::kNumber;
  return front == 't' || front == 'f' || front == 'n' ? Kind::kLiteral : Kind::kNone;
}

void JsonReader::Begin(char opening) {
  if (!Take(opening)) return Fail("expected an object or an array");
  if (++depth_ > depth_max_) Fail("values are nested too deeply");
  is_first_ = true;
}

bool JsonReader::NextMember(char closing) {
  if (Take(closing)) {
    --depth_;
    is_first_ = false;
    return false;
  }
  if (!std::exchange(is_first_, false) && !Take(',')) Fail("expected a comma or the end");
  return status_.ok();
}

bool JsonReader::NextKey(std::string& key) {
  if (!NextMember('}')) return false;
  ReadString(key);
  if (!Take(':')) Fail("a key without a colon");
  return status_.ok();
}

bool JsonReader::NextElement() { return NextMember(']'); }

void JsonReader::ReadString(std::string& out) {
  out.clear();
  if (!Take('"')) return Fail("no string begins where one is expected");
  while (status_.ok()) {
    const CodePoint point = DecodeCodePoint(text_.substr(at_));
    // 0 if there is none.
    if (point.value < 0x20) {
      return Fail("a string has no end, is not UTF-8, or has a control character");
    }
    if (point.value == '\\') {
      TakeEscape(out);
      continue;
    }
    at_ += point.size;
    if (point.value == '"') return;
    out.append(text_, at_ - point.size, point.size);
  }
}

void JsonReader::TakeEscape(std::string& out) {
  constexpr std::string_view kNames = "\"\\/bfnrtu";
  constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
  ++at_;
  const std::size_t which = at_ < text_.size() ? kNames.find(text_[at_]) : kNames.npos;
  if (which == kNames.npos) return Fail("a string has an unknown escape");
  ++at_;
  if (which < kValues.size()) return out.push_back(kValues[which]);
  char32_t point = TakeHex();
  if (point >= 0xd800 && point < 0xdc00 && text_.substr(at_, 2) == "\\u") {
    at_ += 2;
    const char32_t low = TakeHex();
    const bool is_pair = low >= 0xdc00 && low < 0xe000;
    point = is_pair ? 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00) : char32_t{0xd800};
  }
  if (point >= 0xd800 && point < 0xe000) return Fail("a string has half of a surrogate pair");
  AppendUtf8(out, point);
}

char32_t JsonReader::TakeHex() {
  char32_t value = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
    const std::size_t digit = at_ < text_.size() ? kDigits.find(text_[at_]) : kDigits.npos;
    if (digit == kDigits.npos) {
      Fail("an escape lacks four hexadecimal digits");
      return 0;
    }
    value = value << 4 | static_cast<char32_t>(digit < 16 ? digit : digit - 6);
  }
  return value;
}

bool JsonReader::SkipDigits() {
  const std::size_t begin = at_;
  while (IsDigit(Front())) ++at_;
  return at_ > begin;
}

std::string_view JsonReader::ReadNumber() {
  SkipSpace();
  const std::size_t begin = at_;
  if (Front() == '-') ++at_;
  const std::size_t first = at_;
  if (!SkipDigits()) Fail("expected a number");
  if (at_ - first > 1 && text_[first] == '0') Fail("a number begins with 0");
  if (Front() == '.') {
    ++at_;
    if (!SkipDigits()) Fail("a number has no digit after its point");
  }
  if (Front() == 'e' || Front() == 'E') {
    ++at_;
    if (Front() == '+' || Front() == '-') ++at_;
    if (!SkipDigits()) Fail("a number has no digit in its exponent");
  }
  return status_.ok() ? text_.substr(begin, at_ - begin) : std::string_view();
}

std::optional<std::uint64_t> JsonReader::ReadSize() {
  std::string_view digits = ReadNumber();
  const bool is_negative = digits.starts_with('-');
  if (is_negative) digits.remove_prefix(1);
  std::optional<std::uint64_t> value = 0;
  for (const char digit : digits) {
    if (!IsDigit(digit)) return std::nullopt;
    if (value) value = CheckedMul<std::uint64_t>(*value, 10);
    if (value) value = CheckedAdd<std::uint64_t>(*value, static_cast<std::uint64_t>(digit - '0'));
  }
  if (digits.empty() || value.value_or(kSizeEnd) >= kSizeEnd) return std::nullopt;
  if (is_negative && *value != 0) return std::nullopt;
  return value;
}

std::string_view JsonReader::ReadLiteral() {
  SkipSpace();
  for (const std::string_view literal : {"true", "false", "null"}) {
    if (text_.substr(at_, literal.size()) != literal) continue;
    at_ += literal.size();
    return literal;
  }
  Fail("expected a value");
  return {};
}

void JsonReader::SkipObject() {
  std::set<std::string> keys;
  std::string key;
  for (BeginObject(); NextKey(key);) {
    if (!keys.insert(key).second) return Fail("duplicate key");
    Skip();
  }
}

void JsonReader::Skip() {  // recursive, to kDepthMax
  std::string ignored;
  switch (Peek()) {
    case Kind::kObject:
      return SkipObject();
    case Kind::kArray:
      for (BeginArray(); NextElement();) Skip();
      return;
    case Kind::kString:
      return ReadString(ignored);
    case Kind::kNumber:
      static_cast<void>(ReadSize());
      return;
    case Kind::kLiteral:
      static_cast<void>(ReadLiteral());
      return;
    case Kind::kNone:
      break;
  }
  Fail("expected a value");
}

void JsonReader::End() {
  SkipSpace();
  if (at_ < text_.size()) Fail("unexpected text after the value");
}

}  // namespace sealpoint::internal::safetensors
