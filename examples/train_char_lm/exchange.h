// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace char_lm {

// What the training needs from the ranks. Both operations are collective: all ranks call them in
// the same order. Counts are numbers of floats per rank, in rank order, without gaps.
class GradientExchange {
 public:
  GradientExchange() = default;
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;
  virtual ~GradientExchange() = default;

  [[nodiscard]] virtual std::size_t rank() const = 0;
  [[nodiscard]] virtual std::size_t size() const = 0;

  // Part r of `send` goes to rank r; part r of `receive` comes from rank r.
  virtual void AllToAll(std::span<const float> send, std::span<const std::size_t> send_counts,
                        std::span<float> receive, std::span<const std::size_t> receive_counts) = 0;

  // `receive` becomes what the ranks sent, one after another. `counts` is the same on all ranks.
  virtual void AllGather(std::span<const float> send, std::span<float> receive,
                         std::span<const std::size_t> counts) = 0;
};

}  // namespace char_lm
