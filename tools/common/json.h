// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_COMMON_JSON_H_
#define SEALPOINT_TOOLS_COMMON_JSON_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "sealpoint/attributes.h"
#include "sealpoint/id.h"
#include "sealpoint/status.h"
#include "tools/common/exit_status.h"

namespace sealpoint::tools {

// Keys in the order in which they were added: stable output.
using Json = nlohmann::ordered_json;

// The first member of each document. It grows when a member is removed or means another thing, and
// not when one is added (docs/reference/tools.md).
inline constexpr int kJsonVersion = 2;

// null for kNoStep and for the zero id.
Json StepToJson(std::uint64_t step);
Json IdToJson(const Id128& id);
// A number that JSON has; else "nan", "inf" or "-inf".
Json DoubleToJson(double value);
// Names and values; numbers as DoubleToJson has them.
Json AttributesToJson(const Attributes& attributes);
// code, message and those parts of the place that are known.
Json StatusToJson(const Status& status);

// Writes one document to standard output part by part, so that its length costs no memory. Two
// spaces of indentation; arrays of numbers and words on one line. The output is ASCII, whatever
// names hold: all else is escaped as JSON has it; bytes that are not UTF-8 (in a path) are
// replaced.
class JsonWriter {
 public:
  JsonWriter() = default;
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  // The document itself, an element of an array, or with a key a member of an object.
  void BeginObject() { Begin({}, '{', '}'); }
  void BeginObject(std::string_view key) { Begin(key, '{', '}'); }
  void BeginArray(std::string_view key) { Begin(key, '[', ']'); }
  // An array on one line.
  void BeginLine(std::string_view key) {
    Begin(key, '[', ']');
    levels_.back().is_line = true;
  }
  // Ends the innermost object or array.
  void End();

  void Element(const Json& value) { Put({}, value); }
  void Field(std::string_view key, const Json& value) { Put(key, value); }

  // Ends the document, which has begun, with the member that each document has last.
  void Finish(ExitStatus status);
  // Likewise after an error, which stands before it; the document may have begun.
  void Fail(const Status& error, ExitStatus status);

 private:
  struct Level {
    char closing;
    bool is_empty = true;
    bool is_line = false;
  };
  void Begin(std::string_view key, char opening, char closing);
  void Put(std::string_view key, const Json& value);
  void Separate(std::string_view key);

  std::vector<Level> levels_;
};

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_COMMON_JSON_H_
