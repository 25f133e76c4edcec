// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <sealpoint/communicator.h>

int main() {
  int version = 0;
  int subversion = 0;
  return MPI_Get_version(&version, &subversion) == MPI_SUCCESS && version >= 3 ? 0 : 1;
}
