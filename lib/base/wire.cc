// SPDX-License-Identifier: Apache-2.0
#include "lib/base/wire.h"

#include "lib/base/checked_math.h"
#include "lib/base/endian.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

Status Malformed() { return MakeError(Code::kComm, "a rank sent a malformed message"); }

}  // namespace

void WireWriter::Put(std::uint64_t number) {
  out_.resize(out_.size() + sizeof(number));
  StoreLe(out_, out_.size() - sizeof(number), number);
}

void WireWriter::Put(std::string_view text) {
  Put(std::uint64_t{text.size()});
  const ByteSpan bytes = AsBytes(text);
  out_.insert(out_.end(), bytes.begin(), bytes.end());
}

void WireWriter::Put(const Id128& id) { out_.insert(out_.end(), id.bytes.begin(), id.bytes.end()); }

void WireWriter::Put(const std::vector<std::uint64_t>& numbers) {
  Put(std::uint64_t{numbers.size()});
  for (const std::uint64_t number : numbers) Put(number);
}

Result<std::uint64_t> WireReader::Number() {
  if (!RangeFits(at_, sizeof(std::uint64_t), bytes_.size())) return Malformed();
  const auto number = LoadLe<std::uint64_t>(bytes_, at_);
  at_ += sizeof(number);
  return number;
}

Result<std::string> WireReader::Text() {
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t size, Number());
  if (!RangeFits(at_, size, bytes_.size())) return Malformed();
  std::string text(AsText(bytes_.subspan(at_, size)));
  at_ += size;
  return text;
}

Result<Id128> WireReader::Id() {
  if (!RangeFits(at_, sizeof(Id128::bytes), bytes_.size())) return Malformed();
  const Id128 id = LoadId(bytes_, at_);
  at_ += sizeof(id.bytes);
  return id;
}

Result<std::vector<std::uint64_t>> WireReader::Numbers() {
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t count, Number());
  if (count > (bytes_.size() - at_) / sizeof(std::uint64_t)) return Malformed();
  std::vector<std::uint64_t> numbers(count);
  for (std::uint64_t& number : numbers) {
    SEALPOINT_ASSIGN_OR_RETURN(number, Number());
  }
  return numbers;
}

}  // namespace sealpoint::internal
