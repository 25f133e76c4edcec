// SPDX-License-Identifier: Apache-2.0
#include "fuzz/support/target.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace sealpoint::fuzz {

void Require(bool condition, const std::string& reason) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: %s\n", reason.c_str());
  std::abort();
}

void RequireAnswer(const Status& error) {
  const Code code = error.code();
  Require(code == Code::kCorrupt || code == Code::kUnsupported || code == Code::kLimitExceeded ||
              code == Code::kIncomplete || code == Code::kUncommitted ||
              code == Code::kNotACheckpoint,
          "not an error of the bytes: " + error.ToString());
  Require(error.place().rule.starts_with("R-"), "no rule: " + error.ToString());
}

std::uint8_t InputReader::Take8() {
  if (rest_.empty()) return 0;
  const auto value = static_cast<std::uint8_t>(rest_.front());
  rest_ = rest_.subspan(1);
  return value;
}

std::uint32_t InputReader::Take32() {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= static_cast<std::uint32_t>(Take8()) << (8 * i);
  return value;
}

std::uint64_t InputReader::Take64() {
  const std::uint64_t low = Take32();
  return low | static_cast<std::uint64_t>(Take32()) << 32;
}

std::uint64_t InputReader::TakeBelow(std::uint64_t count) {
  return (count <= 256 ? Take8() : Take32()) % count;
}

std::uint64_t InputReader::TakeNumber(std::uint64_t old) {
  // Where 32 and 64 bits wrap, and the sizes and counts that the format knows.
  constexpr std::uint64_t kEdges[] = {0,
                                      1,
                                      2,
                                      3,
                                      32,
                                      63,
                                      64,
                                      65,
                                      127,
                                      128,
                                      255,
                                      256,
                                      4095,
                                      4096,
                                      4097,
                                      65535,
                                      65536,
                                      1u << 20,
                                      1u << 22,
                                      1u << 27,
                                      (1u << 27) + 1,
                                      1u << 31,
                                      ~0u,
                                      std::uint64_t{1} << 32,
                                      std::uint64_t{1} << 50,
                                      std::uint64_t{1} << 58,
                                      std::uint64_t{1} << 63,
                                      ~std::uint64_t{0} - 63,
                                      ~std::uint64_t{0} - 1,
                                      ~std::uint64_t{0}};
  switch (const unsigned kind = Take8(); kind % 8) {
    case 0:
      return old + 1;
    case 1:
      return old - 1;
    case 2:
      return old + Take8();
    case 3:
      return old - Take8();
    case 4:
      return old * 2;
    case 5:
      return old ^ std::uint64_t{1} << Take8() % 64;
    case 6:
      return kEdges[TakeBelow(std::size(kEdges))];
    default:
      return kind < 128 ? Take32() : Take64();
  }
}

InputReader InputReader::TakePart(std::size_t size) {
  const ByteSpan part = rest_.first(std::min(size, rest_.size()));
  rest_ = rest_.subspan(part.size());
  return InputReader(part);
}

}  // namespace sealpoint::fuzz
