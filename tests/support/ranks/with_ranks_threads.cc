// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "tests/support/ranks/with_ranks.h"

namespace sealpoint::testing {

std::vector<int> RankCounts() {
#ifdef SEALPOINT_TEST_SANITIZED
  return {1, 3};  // each costs as many times more as there are ranks
#else
  // Saves in the background are tested with more ranks over MPI.
  if (std::getenv("SEALPOINT_TEST_SAVES") != nullptr) return {1, 3};
  return {1, 2, 3, 4, 8};
#endif
}

void WithRanks(int size, const std::function<void(Communicator&)>& body) {
  std::vector<std::thread> threads;
  for (std::unique_ptr<Communicator>& communicator : ThreadCommunicators(size)) {
    communicator->set_deadline(std::chrono::minutes(1));
    // The thread owns its communicator, so that a rank that returns early is seen to have left.
    threads.emplace_back([&body, mine = std::move(communicator)]() mutable {
      body(*mine);
      mine.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace sealpoint::testing
