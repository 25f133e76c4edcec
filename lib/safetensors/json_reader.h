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
// byte order mark, strings that are text, nesting of at most `depth_max`. After the first error
// every call fails or yields nothing, and status() says what it was; a caller may look at it once,
// at the end.
//
//   for (reader.BeginObject(); reader.NextKey(key);) { … read or skip one value … }
//   reader.End(); return reader.status();
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
  // The key of the next member, whose value is to be read then. False behind the last one, or after
  // an error. That no key comes twice is seen to by the caller, who keeps them.
  bool NextKey(std::string& key);
  // True if there is another element, which is to be read then.
  bool NextElement();
  void ReadString(std::string& out);
  // Any number: its text.
  std::string_view ReadNumber();
  // "true", "false" or "null".
  std::string_view ReadLiteral();
  // Any number. Nothing if it is no integer from 0 to 2^62 - 1: that is not an error of the text.
  std::optional<std::uint64_t> ReadSize();
  // A value of any kind. That no key comes twice is checked.
  void Skip();
  // Nothing but white space may follow.
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
