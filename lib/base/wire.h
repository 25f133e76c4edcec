// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_WIRE_H_
#define SEALPOINT_LIB_BASE_WIRE_H_

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/id.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// Encodes values for messages between the ranks of one job, never for files: numbers as LEB128, 7
// bits per byte and the least significant first; strings and lists after their count. Equal values
// have equal bytes, which callers rely on when they compare or hash encoded values. Appends to
// `out`.
class WireWriter {
 public:
  explicit WireWriter(Bytes& out) : out_(out) {}

  void Put(std::uint64_t number);
  // The numbers without their count.
  void PutAll(std::span<const std::uint64_t> numbers);
  void Put(std::string_view text);
  void Put(const Id128& id);
  void Put(const std::vector<std::uint64_t>& numbers);
  // Encoded as runs of equal steps if that is shorter, as for ranks along an axis of a mesh and for
  // equidistant cuts. Read by Sequence.
  void PutSequence(std::span<const std::uint64_t> numbers);

 private:
  Bytes& out_;
};

// The error for bytes that no rank of this version sends.
Status MalformedMessage();

// Reads values in the order in which they were written. Errors: Comm if the bytes were not sent by
// a rank of this version. Never allocates for a count larger than the remaining bytes allow.
class WireReader {
 public:
  explicit WireReader(ByteSpan bytes) : bytes_(bytes) {}

  bool at_end() const { return at_ == bytes_.size(); }
  Result<std::uint64_t> Number();
  Result<std::string> Text();
  // The bytes of a string, without a copy.
  Result<ByteSpan> Span();
  template <std::derived_from<Id128> T>
  Result<T> Id() {
    T id;
    if (Status status = ReadId(id); !status.ok()) return status;
    return id;
  }
  Result<std::vector<std::uint64_t>> Numbers();
  // Errors: also Comm if there are more than `count_max` numbers. A run takes no bytes per number,
  // so the length of the message does not limit them.
  Result<std::vector<std::uint64_t>> Sequence(std::uint64_t count_max);

 private:
  Status ReadId(Id128& id);

  ByteSpan bytes_;
  std::size_t at_ = 0;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_WIRE_H_
