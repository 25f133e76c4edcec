// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_MPI_C_H_
#define SEALPOINT_MPI_C_H_

// The MPI adapter of the C API. libsealpoint_c.so links no MPI: the functions of this header are in
// sealpoint_mpi_impl.h, which is C++20 and is compiled once per program, with the program's MPI.
// The CMake target sealpoint::c_mpi compiles this file. docs/guides/c.md shows how to compile it
// without CMake. The rules of sealpoint.h apply.

#include <mpi.h>

#include "sealpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sealpoint_mpi_options {
  uint32_t struct_size;
  // 1: the library's own threads never call MPI, even if MPI_Query_thread returns
  // MPI_THREAD_MULTIPLE on all ranks. Background saves then advance only in calls of the program.
  uint32_t no_background_thread;
  uint64_t message_max_bytes;  // maximum number of bytes per rank in one MPI call; 0: 1 GiB
  int64_t deadline_ms;         // also limits this call; 0: 30 minutes, SEALPOINT_FOREVER: no limit
} sealpoint_mpi_options;

// Collective over the intra-communicator `parent`, of which the communicator uses a duplicate.
// `options` may be NULL, and must be equal on all ranks. Free the communicator and everything
// created from it on all ranks before MPI_Finalize. MPI_THREAD_SINGLE is enough if one thread makes
// all calls. See mpi_communicator.h for details. Errors: InvalidArgument (MPI is not initialized;
// MPI_COMM_NULL; an inter-communicator; options), Comm, Timeout.
int32_t sealpoint_communicator_mpi(MPI_Comm parent, const sealpoint_mpi_options* options,
                                   sealpoint_communicator** out, sealpoint_error** error);
// The same for a communicator of Fortran: an INTEGER, or the field MPI_VAL of a TYPE(MPI_Comm).
int32_t sealpoint_communicator_mpi_f(MPI_Fint parent, const sealpoint_mpi_options* options,
                                     sealpoint_communicator** out, sealpoint_error** error);

#ifdef __cplusplus
}
#endif

#endif  // SEALPOINT_MPI_C_H_
