// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAFETENSORS_JSON_READER_H_
#define SEALPOINT_LIB_SAFETENSORS_JSON_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sealpoint/status.h"

namespace sealpoint::internal::safetensors {

// Reads JSON (RFC 8259) from front to back, without a tree of it in memory. Strict: UTF-8 without a
// byte order mark, valid text in strings, nesting of at most `depth_max`. After the first error
// every call fails or yields nothing, and status() returns the error; a caller may check it once,
// at the end.
//
//   for (reader.BeginObject(); reader.NextKey(key);) { … read or skip one value … }
//   reader.End();
//   return reader.status();
class JsonReader {
 public:
  enum class Kind : std::uint8_t { kObject, kArray, kString, kNumber, kLiteral, kNone };
  static constexpr std::size_t kDepthMax = 64;

  // Borrows the text.
  explicit JsonReader(std::string_view text, std::size_t depth_max = kDepthMax)
      : text_(text), depth_max_(depth_max) {}

  // The kind of the next value; kNone if there is none.
  Kind Peek();
  // The next value has to be one of that kind.
  void BeginObject() { Begin('{'); }
  void BeginArray() { Begin('['); }
  // Reads the key of the next member; its value must be read next. False after the last member, and
  // after an error. Callers must detect duplicate keys, because only they keep the keys.
  bool NextKey(std::string& key);
  // True if there is another element, which is to be read then.
  bool NextElement();
  void ReadString(std::string& out);
  // Any number: its text.
  std::string_view ReadNumber();
  // "true", "false" or "null".
  std::string_view ReadLiteral();
  // Any number. Empty if it is not an integer from 0 to 2^62 - 1; that is not an error of the text.
  std::optional<std::uint64_t> ReadSize();
  // Skips a value of any kind. Duplicate keys in it are detected.
  void Skip();
  // Only white space may follow.
  void End();
  // Marks the text as wrong, for a caller who found a key twice.
  void Fail(std::string_view message);

  // Corrupt, with the offset in the text.
  const Status& status() const { return status_; }

 private:
  void Begin(char opening);
  bool NextMember(char closing);
  void SkipSpace();
  bool Take(char expected);
  char Front() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool SkipDigits();
  void TakeEscape(std::string& out);
  char32_t TakeHex();
  void SkipObject();

  std::string_view text_;
  std::size_t depth_max_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  bool is_first_ = false;  // of the members of the object or array that was begun last
  Status status_;
};

}  // namespace sealpoint::internal::safetensors

#endif  // SEALPOINT_LIB_SAFETENSORS_JSON_READER_H_
