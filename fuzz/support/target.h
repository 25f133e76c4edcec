// SPDX-License-Identifier: Apache-2.0
//
// Shared by all fuzz targets. A target checks one input in LLVMFuzzerTestOneInput and calls Require
// for everything that must hold.
#ifndef SEALPOINT_FUZZ_SUPPORT_TARGET_H_
#define SEALPOINT_FUZZ_SUPPORT_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "sealpoint/bytes.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace sealpoint::fuzz {

inline ByteSpan AsInput(const std::uint8_t* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

// Prints the reason and aborts, which libFuzzer reports as a finding.
void Require(bool condition, const std::string& reason);
// Requires that a decoding error names a rule of spec/ and blames the bytes: no content of a file
// may be reported as the caller's fault, as an internal error, or without a rule.
void RequireAnswer(const Status& error);

// Takes bytes from the front of an input; zeros once it has ended.
class InputReader {
 public:
  explicit InputReader(ByteSpan input) : rest_(input) {}
  bool empty() const { return rest_.empty(); }
  std::uint8_t Take8();
  std::uint32_t Take32();
  std::uint64_t Take64();
  bool TakeBool() { return Take8() % 2 == 1; }
  // A number below `count`, which is at least 1. Takes one byte of input if that is enough.
  std::uint64_t TakeBelow(std::uint64_t count);
  // In [min, max].
  std::uint64_t TakeIn(std::uint64_t min, std::uint64_t max) {
    return min + TakeBelow(max - min + 1);
  }
  // A damaged version of a number: one near it, one at an edge, or any.
  std::uint64_t TakeNumber(std::uint64_t old);
  // The next bytes as an input of their own.
  InputReader TakePart(std::size_t size);
  ByteSpan rest() const { return rest_; }

 private:
  ByteSpan rest_;
};

}  // namespace sealpoint::fuzz

#endif  // SEALPOINT_FUZZ_SUPPORT_TARGET_H_
