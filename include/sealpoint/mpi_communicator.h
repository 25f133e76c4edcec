// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_MPI_COMMUNICATOR_H_
#define SEALPOINT_MPI_COMMUNICATOR_H_

#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/communicator.h"
#include "sealpoint/deadline.h"
#include "sealpoint/status.h"

namespace sealpoint {

struct MpiCommunicatorOptions {
  // Maximum number of bytes per rank in one MPI call, at most 2^31-1, because MPI 3.1 counts in
  // int. Longer messages use several calls; those of AllToAll are all started at once. Must be the
  // same on all ranks.
  std::size_t message_max_bytes = std::size_t{1} << 30;
  // Initial deadline (see set_deadline); it also applies to Create.
  std::chrono::milliseconds deadline = kDefaultDeadline;
};

// A Communicator on MPI (3.1 or later). It is header-only and compiled with the MPI of the
// including program; the library does not link MPI.
//
// It uses a duplicate of the communicator, so that its messages never mix with those of the
// program. Every call consists of non-blocking operations that are tested until they complete,
// which makes deadlines possible, and yields the processor between tests. All operations are
// collectives, except for data that exceeds the first message of AllToAll: this is sent directly
// from the caller's memory to its destination, pair by pair of ranks.
//
// After Timeout or Comm every call returns that error again. MPI cannot cancel the operation in
// progress: its requests and memory stay allocated until the process ends, and the duplicate is not
// freed. After an error the content of the `bytes` of Broadcast is unspecified.
//
// Thread safety: one call at a time. MPI_THREAD_FUNNELED is enough if the main thread makes all
// calls; otherwise use MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE, depending on the program's own
// calls. The library's own threads never call MPI, not even during background saves. Programs that
// called MPI_Init (MPI_THREAD_SINGLE) may therefore save and load too: the process then has several
// threads, but only one that calls MPI.
class MpiCommunicator final : public Communicator {
 public:
  // Collective over `parent`, an intra-communicator that remains the caller's. MPI must be
  // initialised. Errors: InvalidArgument, Comm, Timeout.
  static Result<std::unique_ptr<MpiCommunicator>> Create(MPI_Comm parent,
                                                         MpiCommunicatorOptions options = {});

  // Collective, like MPI_Comm_free. Does nothing after an error, after MPI was finalized, and in a
  // child after fork.
  ~MpiCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& host() const override { return host_; }
  void set_deadline(std::chrono::milliseconds deadline) override { deadline_ = deadline; }

  Status Barrier() override;
  Status Broadcast(Bytes& bytes, int root) override;
  Result<std::vector<Bytes>> Gather(ByteSpan bytes, int root) override;
  Result<std::vector<Bytes>> AllGather(ByteSpan bytes) override;
  Result<std::vector<Bytes>> AllToAll(std::vector<Bytes> outgoing) override;
  Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) override;
  // Progress makes all MPI calls of the duplicate, on the thread that calls it. Its destructor is
  // also collective.
  Result<std::unique_ptr<BackgroundCommunicator>> DuplicateForBackground() override;

 private:
  class Handover;
  class InBackground;
  using Clock = std::chrono::steady_clock;
  using Numbers = std::vector<std::uint64_t>;

  // Number of bytes from each rank in one MPI call, and their positions in memory.
  struct Layout {
    std::vector<int> counts;
    std::vector<int> starts;
    std::size_t TotalBytes() const {
      return static_cast<std::size_t>(starts.back()) + static_cast<std::size_t>(counts.back());
    }
  };

  // A collective starts with a message of the same size on all ranks: this head, followed by as
  // many bytes as fit. Small messages need no second message.
  struct FirstHead {
    std::uint64_t size = 0;  // of all bytes
  };

  // One operation in progress, with all memory that MPI may access until it completes.
  struct Operation {
    std::vector<MPI_Request> requests = {MPI_REQUEST_NULL};
    Bytes send;
    Bytes receive;
    std::vector<Bytes> outgoing;  // by rank
    std::vector<Bytes> incoming;
    Numbers send_numbers;
    Numbers receive_numbers;
    Layout receive_layout;
    MPI_Comm duplicate = MPI_COMM_NULL;

    MPI_Request* request() { return requests.data(); }
    std::uint64_t size_bytes() const;  // sent and received
  };

  MpiCommunicator(MPI_Comm comm, MpiCommunicatorOptions options);

  static Status CheckParent(MPI_Comm parent, const MpiCommunicatorOptions& options);
  static Status MpiError(std::string_view operation, int code);
  static std::string HostName();
  static void KeepForEver(std::unique_ptr<Operation> operation);
  static void Pause(int tests, bool is_moving);

  std::size_t ranks() const { return static_cast<std::size_t>(size_); }
  Status CheckRoot(int root);
  Status Break(Status reason);
  static Result<MPI_Comm> Duplicate(MPI_Comm comm, std::chrono::milliseconds deadline);
  void StartClock();
  static bool IsPast(Clock::time_point began, std::chrono::milliseconds deadline);
  Status NotOver(std::string_view name) const;
  template <typename Start>
  Result<std::unique_ptr<Operation>> Run(std::string_view name,
                                         std::unique_ptr<Operation> operation, Start start);
  template <typename Start>
  Result<std::unique_ptr<Operation>> RunElsewhere(std::string_view name,
                                                  std::unique_ptr<Operation> operation,
                                                  Start start);

  // Calls MPI_Test for each request; sets `done` if all are complete. Returns the first error code.
  static int TestAll(std::span<MPI_Request> requests, bool& done);
  std::size_t FirstRoom() const;
  static void PutFirst(const FirstHead& head, ByteSpan bytes, std::span<std::byte> message);
  static FirstHead HeadOf(ByteSpan message);
  static ByteSpan BytesOf(ByteSpan message);
  ByteSpan MessageOf(std::size_t rank, ByteSpan messages) const;
  std::vector<Bytes> PartsOf(ByteSpan messages) const;
  Numbers SizesOf(ByteSpan messages) const;
  Result<Bytes> GatherFirst(ByteSpan bytes);
  Status BroadcastBytes(Bytes& bytes, int root, std::size_t begin);
  Result<std::vector<Bytes>> GatherInSegments(ByteSpan bytes, int root, bool to_all);
  Result<std::vector<Bytes>> ExchangeRest(std::vector<Bytes> outgoing, std::vector<Bytes> incoming,
                                          const Numbers& receive_sizes);
  std::size_t CountRest(const Bytes& bytes) const;
  int StartRest(Operation& operation) const;

  std::uint64_t SegmentLength(std::uint64_t total) const;
  static std::uint64_t SegmentSize(std::uint64_t size, std::uint64_t done, std::uint64_t segment);
  static Layout LayOut(const Numbers& sizes, std::uint64_t done, std::uint64_t segment);
  static void Append(std::vector<Bytes>& parts, const Bytes& received, const Layout& layout);

  MPI_Comm comm_;
  const MpiCommunicatorOptions options_;
  const pid_t owner_pid_ = getpid();
  int rank_ = 0;
  int size_ = 0;
  const std::string host_ = HostName();
  std::chrono::milliseconds deadline_;
  Clock::time_point call_began_;
  Status broken_;
  // null if calls are made by the calling thread
  std::shared_ptr<Handover> handover_;
};

}  // namespace sealpoint

#include "sealpoint/detail/mpi_communicator_handover.h"
#include "sealpoint/detail/mpi_communicator_impl.h"
#include "sealpoint/detail/mpi_communicator_messages.h"

#endif  // SEALPOINT_MPI_COMMUNICATOR_H_
