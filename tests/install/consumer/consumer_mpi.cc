// SPDX-License-Identifier: Apache-2.0
#include <sealpoint/mpi_communicator.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const bool created = sealpoint::MpiCommunicator::Create(MPI_COMM_WORLD).ok();
  MPI_Finalize();
  return created ? 0 : 1;
}
