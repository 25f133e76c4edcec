// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_WIRE_H_
#define SEALPOINT_LIB_BASE_WIRE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/id.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// Values as bytes between the ranks of one job, never in a file: numbers as 8 little-endian bytes,
// texts and lists behind their count. Equal values have equal bytes. Appended to the end of `out`.
class WireWriter {
 public:
  explicit WireWriter(Bytes& out) : out_(out) {}

  void Put(std::uint64_t number);
  // One behind the other, without their count.
  void PutAll(std::span<const std::uint64_t> numbers);
  void Put(std::string_view text);
  void Put(const Id128& id);
  void Put(const std::vector<std::uint64_t>& numbers);
  // As stretches of equal steps, where that is shorter: ranks along an axis of a mesh, cuts at
  // equal distances. Read by Sequence.
  void PutSequence(std::span<const std::uint64_t> numbers);

 private:
  Bytes& out_;
};

// What a reader says of bytes that no rank of this version sends.
Status MalformedMessage();

// Reads them in the same order. Errors: Comm, where the bytes are not what a rank of this version
// sends; nothing is allocated for a count that the bytes cannot hold.
class WireReader {
 public:
  explicit WireReader(ByteSpan bytes) : bytes_(bytes) {}

  bool at_end() const { return at_ == bytes_.size(); }
  Result<std::uint64_t> Number();
  Result<std::string> Text();
  // The same without a copy.
  Result<ByteSpan> Span();
  Result<Id128> Id();
  Result<std::vector<std::uint64_t>> Numbers();
  // Errors: also Comm where there are more than `count_max`: a stretch needs no bytes per number.
  Result<std::vector<std::uint64_t>> Sequence(std::uint64_t count_max);

 private:
  ByteSpan bytes_;
  std::size_t at_ = 0;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_WIRE_H_
