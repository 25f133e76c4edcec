// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <vector>

#include "exchange.h"

namespace char_lm {

// GradientExchange over a communicator that outlives it. MPI's errors abort the job, as its default
// is.
class MpiExchange final : public GradientExchange {
 public:
  explicit MpiExchange(MPI_Comm communicator);

  [[nodiscard]] std::size_t rank() const override { return rank_; }
  [[nodiscard]] std::size_t size() const override { return size_; }
  void AllToAll(std::span<const float> send, std::span<const std::size_t> send_counts,
                std::span<float> receive, std::span<const std::size_t> receive_counts) override;
  void AllGather(std::span<const float> send, std::span<float> receive,
                 std::span<const std::size_t> counts) override;

 private:
  MPI_Comm communicator_;
  std::size_t rank_ = 0;
  std::size_t size_ = 1;
};

}  // namespace char_lm
