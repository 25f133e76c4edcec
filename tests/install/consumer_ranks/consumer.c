// SPDX-License-Identifier: Apache-2.0
#include <sealpoint_mpi.h>
#include <sealpoint_ranks.h>

int main(int argc, char** argv) {
  sealpoint_communicator* communicator;
  sealpoint_error* error;
  int32_t code;
  MPI_Init(&argc, &argv);
  code = sealpoint_communicator_mpi(MPI_COMM_WORLD, NULL, &communicator, &error);
  if (code == SEALPOINT_OK) code = sealpoint_communicator_agree(communicator, NULL, &error);
  sealpoint_communicator_free(communicator);
  MPI_Finalize();
  return code;
}
