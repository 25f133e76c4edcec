// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <mpi.h>

#include <iostream>
#include <sstream>

// The main of a test of several MPI ranks. Rank 0 prints as usual, the others print their failures
// only; a failure on any rank is the exit status of all.

namespace {

class FailurePrinter final : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}

  void OnTestStart(const testing::TestInfo& info) override { info_ = &info; }

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::ostringstream line;  // one write, since all ranks share the terminal
    line << "[rank " << rank_ << "] ";
    if (info_ != nullptr) line << info_->test_suite_name() << "." << info_->name() << " ";
    line << (result.file_name() != nullptr ? result.file_name() : "unknown file") << ":"
         << result.line_number() << ": " << result.message() << "\n";
    std::cerr << line.str() << std::flush;
  }

 private:
  const int rank_;
  const testing::TestInfo* info_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  testing::InitGoogleTest(&argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter(rank));
  }
  const int mine = RUN_ALL_TESTS();
  int worst = 1;
  MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && mine == 0 && worst != 0) std::cerr << "another rank failed\n";
  MPI_Finalize();
  return worst;
}
