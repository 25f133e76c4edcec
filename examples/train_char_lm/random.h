// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace char_lm {

// Counter-based generator: the n-th number is a pure function of (key, n), so the whole state is
// two integers, any rank can compute any number, and a checkpoint carries the generator as 16
// bytes. The mix is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", 2014).
class CounterRng {
 public:
  CounterRng(std::uint64_t key, std::uint64_t counter) : key_(key), counter_(counter) {}

  // The number at `distance` places after the current position; does not move the position.
  [[nodiscard]] std::uint64_t Peek(std::uint64_t distance) const {
    std::uint64_t z = key_ + (counter_ + distance + 1) * 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }

  // Uniform in [-1, 1) with 24 random bits, so that the conversion to float is exact.
  [[nodiscard]] float PeekSymmetric(std::uint64_t distance) const {
    const auto bits = static_cast<std::int32_t>(Peek(distance) >> 40U);
    return static_cast<float>(bits - (1 << 23)) * 0x1p-23F;
  }

  void Advance(std::uint64_t count) { counter_ += count; }

  [[nodiscard]] std::uint64_t key() const { return key_; }
  [[nodiscard]] std::uint64_t counter() const { return counter_; }

  friend bool operator==(const CounterRng&, const CounterRng&) = default;

 private:
  std::uint64_t key_;
  std::uint64_t counter_;
};

}  // namespace char_lm
