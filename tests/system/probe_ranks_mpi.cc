// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "sealpoint/mpi_communicator.h"
#include "tests/system/probe_ranks.h"

namespace {

pid_t rank_pid = 0;  // of the process that is the rank

}  // namespace

// By the profiling interface of MPI: a forked child of a rank makes no such call.
extern "C" int MPI_Comm_free(MPI_Comm* comm) {
  if (getpid() != rank_pid) {
    std::fputs("a child after fork called MPI_Comm_free\n", stderr);
    std::_Exit(1);
  }
  return PMPI_Comm_free(comm);
}

namespace sealpoint::testing {

std::unique_ptr<Communicator> BeginRank(int argc, char** argv) {
  rank_pid = getpid();
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  return MpiCommunicator::Create(MPI_COMM_WORLD).value();
}

void EndRanks() { MPI_Finalize(); }

int RunOnRank(int argc, char** argv, const std::function<int(Communicator&)>& body) {
  auto comm = BeginRank(argc, argv);
  const int status = body(*comm);
  // After a rank was lost the others cannot finalize; the launcher ends all of them.
  if (status != 0) std::_Exit(status);
  comm.reset();
  EndRanks();
  return status;
}

}  // namespace sealpoint::testing
