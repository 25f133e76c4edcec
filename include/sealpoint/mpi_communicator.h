// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_MPI_COMMUNICATOR_H_
#define SEALPOINT_MPI_COMMUNICATOR_H_

// MPI 3.0 removed the C++ bindings of MPI, and reading them takes longer than reading the rest of
// this header. A program that needs them includes <mpi.h> before this header.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <memory>

#include "sealpoint/communicator.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"

namespace sealpoint {

struct MpiCommunicatorOptions {
  // Maximum number of bytes per rank in one MPI call. At most 2^31-1, because MPI 3.1 counts in
  // int. A longer message is sent with several MPI calls; AllToAll starts all of them before it
  // waits for the first one. Must be the same on all ranks.
  std::size_t message_max_bytes = std::size_t{1} << 30;
  // Initial deadline (see set_deadline). It also limits the duration of Create.
  std::chrono::milliseconds deadline = kDefaultDeadline;
  // If MPI_Query_thread returns MPI_THREAD_MULTIPLE on all ranks, a thread of the library makes the
  // MPI calls of background saves, which then end without PendingSave::Poll. If false on any rank,
  // or at a lower level, the library's own threads never call MPI. Reason to set it to false: an
  // MPI whose MPI_THREAD_MULTIPLE is slow or unreliable.
  bool background_thread_calls_mpi = true;
};

// A Communicator that uses MPI (3.1 or later). The library itself does not link MPI: its functions
// are in sealpoint/mpi_communicator_impl.h, which is compiled once per program, with the program's
// MPI. The CMake target sealpoint::mpi does so. A program built without this target includes
// mpi_communicator_impl.h in exactly one of its source files.
//
// An MpiCommunicator uses a duplicate of the program's communicator, so that its messages never mix
// with the program's messages. Every call starts non-blocking operations and tests them until they
// complete, which makes deadlines possible. All operations are MPI collectives, with one exception:
// in AllToAll, data that does not fit into the first message is sent point to point, directly from
// the caller's memory.
//
// After a call has returned Timeout or Comm, every later call returns the same error. MPI cannot
// cancel the operation that failed, so its requests and memory stay allocated until the process
// ends, and the duplicated communicator is not freed. If Broadcast fails, the content of its
// `bytes` is unspecified.
//
// Thread safety: one call at a time. MPI_THREAD_FUNNELED is enough if the main thread makes all
// calls. If other threads make calls, use MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE, depending
// on the program's own MPI calls. Below MPI_THREAD_MULTIPLE the library's own threads never call
// MPI, not even during background saves. A program that called MPI_Init (MPI_THREAD_SINGLE) may
// therefore also save and load: although its process has several threads, only one of them calls
// MPI. With MPI_THREAD_MULTIPLE one thread of the saver calls MPI while a background save is under
// way (MpiCommunicatorOptions::background_thread_calls_mpi). If MPI_Finalize is called meanwhile,
// the thread makes no further MPI call, and the save fails (Comm).
class MpiCommunicator : public Communicator {
 public:
  // Collective over the intra-communicator `parent`, which still belongs to the caller. MPI must be
  // initialised. Errors: InvalidArgument, Comm, Timeout.
  static Result<std::unique_ptr<MpiCommunicator>> Create(MPI_Comm parent,
                                                         MpiCommunicatorOptions options = {});

  // The destructor is collective, like MPI_Comm_free; so is that of a communicator that
  // DuplicateForBackground returned. It does nothing after an error, after MPI was finalized, or in
  // a child process after fork.

 protected:
  MpiCommunicator() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_MPI_COMMUNICATOR_H_
