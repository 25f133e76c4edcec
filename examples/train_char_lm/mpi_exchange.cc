// SPDX-License-Identifier: Apache-2.0
#include "mpi_exchange.h"

namespace char_lm {
namespace {

// Counts and displacements in the int of MPI 3; a model of this size stays far below 2^31 floats.
struct IntLayout {
  explicit IntLayout(std::span<const std::size_t> sizes) {
    int end = 0;
    for (const std::size_t size : sizes) {
      counts.push_back(static_cast<int>(size));
      displacements.push_back(end);
      end += counts.back();
    }
  }
  std::vector<int> counts;
  std::vector<int> displacements;
};

}  // namespace

MpiExchange::MpiExchange(MPI_Comm communicator) : communicator_(communicator) {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  rank_ = static_cast<std::size_t>(rank);
  size_ = static_cast<std::size_t>(size);
}

void MpiExchange::AllToAll(std::span<const float> send, std::span<const std::size_t> send_counts,
                           std::span<float> receive, std::span<const std::size_t> receive_counts) {
  const IntLayout out(send_counts);
  const IntLayout in(receive_counts);
  MPI_Alltoallv(send.data(), out.counts.data(), out.displacements.data(), MPI_FLOAT, receive.data(),
                in.counts.data(), in.displacements.data(), MPI_FLOAT, communicator_);
}

void MpiExchange::AllGather(std::span<const float> send, std::span<float> receive,
                            std::span<const std::size_t> counts) {
  const IntLayout in(counts);
  MPI_Allgatherv(send.data(), static_cast<int>(send.size()), MPI_FLOAT, receive.data(),
                 in.counts.data(), in.displacements.data(), MPI_FLOAT, communicator_);
}

}  // namespace char_lm
