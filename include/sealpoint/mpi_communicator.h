// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_MPI_COMMUNICATOR_H_
#define SEALPOINT_MPI_COMMUNICATOR_H_

// Leaves out the C++ bindings of MPI. MPI 3.0 removed these bindings, and compiling them takes
// longer than compiling the rest of this header. A program that needs the bindings must include
// <mpi.h> before this header.
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
  // Maximum number of bytes per rank in one MPI call. At most 2^31-1, because counts in MPI 3.1 are
  // of type int. A longer message is sent with several MPI calls. AllToAll starts all of these
  // calls before it waits for the first call to complete. Must be the same on all ranks.
  std::size_t message_max_bytes = std::size_t{1} << 30;
  // Initial deadline (see set_deadline). This deadline also limits the duration of Create.
  std::chrono::milliseconds deadline = kDefaultDeadline;
  // This option takes effect if, on all ranks, it is true and MPI_Query_thread returns
  // MPI_THREAD_MULTIPLE. A thread of the library then makes the MPI calls of background saves, and
  // these saves finish without calls to PendingSave::Poll. If the option has no effect, the
  // library's own threads never call MPI. Set the option to false if MPI_THREAD_MULTIPLE is slow or
  // unreliable in your MPI.
  bool background_thread_calls_mpi = true;
};

// A Communicator that uses MPI (3.1 or later). The library itself does not link MPI. The functions
// of this class are in sealpoint/mpi_communicator_impl.h, which is compiled once per program, with
// the program's MPI. The CMake target sealpoint::mpi compiles this file. A program built without
// this target must include mpi_communicator_impl.h in exactly one of its source files.
//
// An MpiCommunicator uses a duplicate of the program's communicator, so that its messages never mix
// with the program's messages. Every call starts non-blocking operations and tests them until they
// complete, so that deadlines are possible. All operations are MPI collectives, with two
// exceptions. In AllToAll, data that does not fit into the first message is sent point to point,
// directly from the caller's memory. A communicator from DuplicateForBackground sends all messages
// point to point.
//
// After a call has returned Timeout or Comm, every later call returns the same error. MPI cannot
// cancel the operation that failed. The requests and memory of this operation therefore stay
// allocated until the process ends, and the duplicated communicator is not freed. If Broadcast
// fails, the content of its `bytes` is unspecified.
//
// Thread safety: one call at a time. MPI_THREAD_FUNNELED is enough if the main thread makes all
// calls. If other threads make calls, use MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE, depending
// on the program's own MPI calls. At a level below MPI_THREAD_MULTIPLE, the library's own threads
// never call MPI, not even during background saves. A program that called MPI_Init
// (MPI_THREAD_SINGLE) may therefore save and load as well: its process has several threads, but
// only one of them calls MPI. With MPI_THREAD_MULTIPLE, one thread of the saver calls MPI during
// background saves (MpiCommunicatorOptions::background_thread_calls_mpi). If the program calls
// MPI_Finalize during such a save, the thread makes no further MPI call, and the save fails (Comm).
class MpiCommunicator : public Communicator {
 public:
  // Collective over the intra-communicator `parent`. The caller still owns `parent`. MPI must be
  // initialized. Errors: InvalidArgument, Comm, Timeout.
  static Result<std::unique_ptr<MpiCommunicator>> Create(MPI_Comm parent,
                                                         MpiCommunicatorOptions options = {});

  // The destructor is collective, like MPI_Comm_free. The destructor of a communicator from
  // DuplicateForBackground is collective, too. Both destructors do nothing after an error, after
  // MPI was finalized, or in a child process after fork.

 protected:
  MpiCommunicator() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_MPI_COMMUNICATOR_H_
