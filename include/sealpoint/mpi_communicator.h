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
  // Bytes that one MPI call may move per rank, at most 2^31-1, since MPI 3.1 counts in int. Longer
  // messages go in several calls, those of AllToAll all at a time. The same on all ranks.
  std::size_t message_max_bytes = std::size_t{1} << 30;
  // The deadline to begin with (set_deadline), which also bounds Create.
  std::chrono::milliseconds deadline = kDefaultDeadline;
};

// A Communicator on MPI (3.1 or later). It is header-only: compiled with the MPI of the
// program that includes this file; the library links no MPI.
//
// It works on a duplicate, so that its messages never meet those of the program. Every call is made
// of non-blocking operations that are tested until done, which is what allows for a deadline, and
// gives the processor away between the tests. They are collectives, but for what does not fit into
// the first message of AllToAll: that goes straight from the caller's memory to its place, pair by
// pair of ranks.
//
// After Timeout or Comm no call does anything but return that error again. The operation that was
// under way cannot be cancelled in MPI: its requests and its memory stay alive until the process
// ends, and the duplicate is not freed. The content of the `bytes` of a Broadcast is then
// unspecified.
//
// Threads: one call at a time; MPI_THREAD_FUNNELED is enough if all calls are made by the main
// thread, else MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE, as the program's own calls demand. No
// thread of the library's own ever calls MPI, also during saves in the background. So a program
// that called MPI_Init, which gives MPI_THREAD_SINGLE, may save and load as well: that level's
// promise of a process with one thread is broken, but not towards MPI.
class MpiCommunicator final : public Communicator {
 public:
  // Collective over `parent`, an intra-communicator that stays the caller's. MPI must be
  // initialised. Errors: InvalidArgument, Comm, Timeout.
  static Result<std::unique_ptr<MpiCommunicator>> Create(MPI_Comm parent,
                                                         MpiCommunicatorOptions options = {});

  // Collective, as MPI_Comm_free is; after an error, when MPI was finalized, and in a child after
  // fork it does nothing.
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
  // The duplicate's MPI calls are all made in its Progress, on the thread that calls it. Its
  // destructor is collective as well.
  Result<std::unique_ptr<BackgroundCommunicator>> DuplicateForBackground() override;

 private:
  class Handover;
  class InBackground;
  using Clock = std::chrono::steady_clock;
  using Numbers = std::vector<std::uint64_t>;

  // How many bytes come from each rank in one MPI call, and where they go in memory.
  struct Layout {
    std::vector<int> counts;
    std::vector<int> starts;
    std::size_t TotalBytes() const {
      return static_cast<std::size_t>(starts.back()) + static_cast<std::size_t>(counts.back());
    }
  };

  // A collective begins with a message of the same size on all ranks: this head, and as much of
  // the bytes as there is room for. Small messages need no second one.
  struct FirstHead {
    std::uint64_t size = 0;  // of all bytes
  };

  // One operation under way, with all memory that MPI may touch until it is done.
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
    std::uint64_t size_bytes() const;  // that are sent and received
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

  // MPI_Test of each of them; sets `done` if all are. Returns the first code that is an error.
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
  // Absent: calls are made by the thread that calls.
  std::shared_ptr<Handover> handover_;
};

}  // namespace sealpoint

#include "sealpoint/detail/mpi_communicator_handover.h"
#include "sealpoint/detail/mpi_communicator_impl.h"
#include "sealpoint/detail/mpi_communicator_messages.h"

#endif  // SEALPOINT_MPI_COMMUNICATOR_H_
