// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>

#include "sealpoint/mpi_communicator.h"
#include "tests/support/ranks/with_ranks.h"

namespace sealpoint::testing {
namespace {

struct JobPlace {
  int rank = 0;
  int size = 0;
};

JobPlace PlaceInJob() {
  JobPlace place;
  MPI_Comm_rank(MPI_COMM_WORLD, &place.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &place.size);
  return place;
}

}  // namespace

std::vector<int> RankCounts() { return {PlaceInJob().size}; }

void WithRanks(int size, const std::function<void(Communicator&)>& body) {
  const JobPlace place = PlaceInJob();
  if (place.size < size) GTEST_SKIP() << size << " ranks are needed, " << place.size << " are here";
  const bool takes_part = place.rank < size;
  MPI_Comm group = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, place.rank, &group);
  if (takes_part) {
    auto communicator = MpiCommunicator::Create(group);
    ASSERT_TRUE(communicator.ok()) << communicator.error().ToString();
    (*communicator)->set_deadline(std::chrono::minutes(1));
    body(**communicator);
    communicator->reset();
    MPI_Comm_free(&group);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace sealpoint::testing
