// SPDX-License-Identifier: Apache-2.0
#include "lib/base/wire.h"

#include <array>

#include "lib/base/checked_math.h"
#include "lib/base/endian.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

// The bit of a number's byte that says that more bytes follow.
constexpr std::uint64_t kMore = 0x80;
constexpr unsigned kBitsPerByte = 7;
constexpr unsigned kNumberBits = 64;

// Numbers first, first + step, first + 2 * step, …, modulo 2^64.
struct Stretch {
  std::uint64_t first = 0;
  std::uint64_t step = 0;
  std::uint64_t count = 0;
};
constexpr std::size_t kNumbersPerStretch = 3;

std::vector<Stretch> CutIntoStretches(std::span<const std::uint64_t> numbers) {
  std::vector<Stretch> stretches;
  for (std::size_t i = 0; i < numbers.size();) {
    const std::uint64_t step = i + 1 < numbers.size() ? numbers[i + 1] - numbers[i] : 0;
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] - numbers[end - 1] == step) ++end;
    stretches.push_back({.first = numbers[i], .step = step, .count = end - i});
    i = end;
  }
  return stretches;
}

}  // namespace

Status MalformedMessage() { return MakeError(Code::kComm, "malformed message from another rank"); }

void WireWriter::Put(std::uint64_t number) {
  for (; number >= kMore; number >>= kBitsPerByte) {
    out_.push_back(static_cast<std::byte>(number | kMore));
  }
  out_.push_back(static_cast<std::byte>(number));
}

void WireWriter::PutAll(std::span<const std::uint64_t> numbers) {
  for (const std::uint64_t number : numbers) Put(number);
}

void WireWriter::Put(std::string_view text) {
  Put(std::uint64_t{text.size()});
  const ByteSpan bytes = AsBytes(text);
  out_.insert(out_.end(), bytes.begin(), bytes.end());
}

void WireWriter::Put(const Id128& id) { out_.insert(out_.end(), id.bytes.begin(), id.bytes.end()); }

void WireWriter::Put(const std::vector<std::uint64_t>& numbers) {
  Put(std::uint64_t{numbers.size()});
  PutAll(numbers);
}

void WireWriter::PutSequence(std::span<const std::uint64_t> numbers) {
  std::vector<Stretch> stretches = CutIntoStretches(numbers);
  if (kNumbersPerStretch * stretches.size() >= numbers.size()) stretches.clear();
  Put(std::uint64_t{numbers.size()});
  Put(std::uint64_t{stretches.size()});  // 0 means that the numbers themselves follow
  if (stretches.empty()) return PutAll(numbers);
  for (const Stretch& stretch : stretches) {
    PutAll(std::array{stretch.first, stretch.step, stretch.count});
  }
}

Result<std::uint64_t> WireReader::Number() {
  std::uint64_t number = 0;
  for (unsigned shift = 0; at_ < bytes_.size(); shift += kBitsPerByte) {
    const auto byte = std::to_integer<std::uint64_t>(bytes_[at_++]);
    const std::uint64_t bits = byte & (kMore - 1);
    if (shift >= kNumberBits || bits << shift >> shift != bits) break;
    number |= bits << shift;
    if (byte < kMore) return number;
  }
  return MalformedMessage();
}

Result<ByteSpan> WireReader::Span() {
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t size, Number());
  if (!RangeFits(at_, size, bytes_.size())) return MalformedMessage();
  const ByteSpan span = bytes_.subspan(at_, size);
  at_ += size;
  return span;
}

Result<std::string> WireReader::Text() {
  SEALPOINT_ASSIGN_OR_RETURN(const ByteSpan span, Span());
  return std::string(AsText(span));
}

Status WireReader::ReadId(Id128& id) {
  if (!RangeFits(at_, sizeof(Id128::bytes), bytes_.size())) return MalformedMessage();
  id = LoadId<Id128>(bytes_, at_);
  at_ += sizeof(id.bytes);
  return {};
}

Result<std::vector<std::uint64_t>> WireReader::Numbers() {
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t count, Number());
  if (count > bytes_.size() - at_) return MalformedMessage();
  std::vector<std::uint64_t> numbers(count);
  for (std::uint64_t& number : numbers) {
    SEALPOINT_ASSIGN_OR_RETURN(number, Number());
  }
  return numbers;
}

Result<std::vector<std::uint64_t>> WireReader::Sequence(std::uint64_t count_max) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t count, Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t stretches, Number());
  const bool is_plain = stretches == 0;
  // A stretch represents any count of numbers, so the length of the message bounds nothing here:
  // without `count_max` three numbers of a damaged message could ask for any amount of memory.
  if (count > count_max) return MalformedMessage();
  if (is_plain && count > bytes_.size() - at_) return MalformedMessage();
  std::vector<std::uint64_t> numbers;
  numbers.reserve(count);
  while (numbers.size() < count) {
    Stretch stretch{.first = 0, .step = 0, .count = 1};
    SEALPOINT_ASSIGN_OR_RETURN(stretch.first, Number());
    if (!is_plain) {
      SEALPOINT_ASSIGN_OR_RETURN(stretch.step, Number());
      SEALPOINT_ASSIGN_OR_RETURN(stretch.count, Number());
    }
    if (stretch.count == 0 || stretch.count > count - numbers.size()) return MalformedMessage();
    for (std::uint64_t i = 0; i < stretch.count; ++i) {
      numbers.push_back(stretch.first + i * stretch.step);
    }
  }
  return numbers;
}

}  // namespace sealpoint::internal
