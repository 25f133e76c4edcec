// SPDX-License-Identifier: Apache-2.0
//
// The functions of MpiCommunicator. Include this header in exactly one source file of a program.
// The CMake target sealpoint::mpi already contains such a file.
#ifndef SEALPOINT_MPI_COMMUNICATOR_IMPL_H_
#define SEALPOINT_MPI_COMMUNICATOR_IMPL_H_

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/communicator.h"
#include "sealpoint/detail/mpi_communicator_handover.h"
#include "sealpoint/limits.h"
#include "sealpoint/mpi_communicator.h"
#include "sealpoint/status.h"

namespace sealpoint {
namespace detail::mpi {

class CommunicatorImpl final : public MpiCommunicator {
 public:
  static Result<std::unique_ptr<MpiCommunicator>> Create(MPI_Comm parent,
                                                         MpiCommunicatorOptions options);
  ~CommunicatorImpl() override;

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
  Result<std::unique_ptr<BackgroundCommunicator>> DuplicateForBackground() override;

 private:
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

  // Head of the first message in every collective call that moves bytes. As many bytes as fit
  // follow the head. If all bytes fit, no second message is sent. In an MPI collective, the first
  // message has the same size on all ranks.
  struct FirstHead {
    std::uint64_t size = 0;  // size of the whole message in bytes
  };

  // Values used instead of a rank number in an exchange between pairs of ranks.
  static constexpr int kAllRanks = -1;
  static constexpr int kNoRank = -2;

  // One operation in progress, with all memory that MPI may access until the operation completes.
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
    std::uint64_t size_bytes() const;  // bytes to send and to receive
  };

  CommunicatorImpl(MPI_Comm comm, MpiCommunicatorOptions options);

  static Status CheckParent(MPI_Comm parent, const MpiCommunicatorOptions& options);
  static std::string HostName();
  static void KeepForEver(std::unique_ptr<Operation> operation);
  static void Pause(int tests, bool is_moving);

  bool MayCallMpi() const;
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
  Result<std::unique_ptr<Operation>> RunInBackground(std::string_view name,
                                                     std::unique_ptr<Operation> operation,
                                                     Start start);

  std::size_t FirstRoom() const;
  static void PutFirst(const FirstHead& head, ByteSpan bytes, std::span<std::byte> message);
  static FirstHead HeadOf(ByteSpan message);
  static ByteSpan BytesOf(ByteSpan message);
  ByteSpan MessageOf(std::size_t rank, ByteSpan messages) const;
  std::vector<Bytes> PartsOf(ByteSpan messages) const;
  Numbers SizesOf(ByteSpan messages) const;
  Result<Bytes> GatherFirst(ByteSpan bytes);
  Result<Numbers> ReduceInPairs(const Numbers& values);
  bool Meets(int peers, int rank) const;
  Result<std::vector<Bytes>> ExchangeInPairs(std::vector<Bytes> outgoing, int to, int from);
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
  // Null if the communicator is not for a background thread.
  std::shared_ptr<Handover> handover_;
};

Result<std::unique_ptr<MpiCommunicator>> CommunicatorImpl::Create(MPI_Comm parent,
                                                                  MpiCommunicatorOptions options) {
  if (Status status = CheckParent(parent, options); !status.ok()) return status;
  auto comm = Duplicate(parent, options.deadline);
  if (!comm.ok()) return std::move(comm).error();
  return std::unique_ptr<MpiCommunicator>(new CommunicatorImpl(*comm, options));
}

// Uses MPI_Comm_idup because MPI_Comm_dup would wait forever for a missing rank.
Result<MPI_Comm> CommunicatorImpl::Duplicate(MPI_Comm comm, std::chrono::milliseconds deadline) {
  const auto began = Clock::now();
  auto operation = std::make_unique<Operation>();
  int code = MPI_Comm_idup(comm, &operation->duplicate, operation->request());
  int done = 0;
  for (int tests = 0; code == MPI_SUCCESS; tests = std::min(tests + 1, 1 << 20)) {
    code = MPI_Test(operation->request(), &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || done != 0) break;
    if (IsPast(began, deadline)) {
      KeepForEver(std::move(operation));
      return Status(Code::kTimeout,
                    "MPI_Comm_idup was not over after " + std::to_string(deadline.count()) + " ms");
    }
    Pause(tests, false);
  }
  if (code != MPI_SUCCESS) return MpiError("MPI_Comm_idup", code);
  const MPI_Comm duplicate = operation->duplicate;
  code = MPI_Comm_set_errhandler(duplicate, MPI_ERRORS_RETURN);
  if (code != MPI_SUCCESS) return MpiError("MPI_Comm_set_errhandler", code);
  return duplicate;
}

CommunicatorImpl::CommunicatorImpl(MPI_Comm comm, MpiCommunicatorOptions options)
    : comm_(comm), options_(options), deadline_(options.deadline) {
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
}

CommunicatorImpl::~CommunicatorImpl() {
  // If an operation is in progress, MPI_Comm_free would wait for ranks that have already exited.
  const bool is_quiet = broken_.ok() && !(handover_ && handover_->is_interrupted());
  if (is_quiet && MayCallMpi()) MPI_Comm_free(&comm_);
}

bool CommunicatorImpl::MayCallMpi() const {
  if (getpid() != owner_pid_) return false;  // MPI cannot be used in a child after fork
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized == 0;
}

Status CommunicatorImpl::CheckParent(MPI_Comm parent, const MpiCommunicatorOptions& options) {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized == 0 || finalized != 0) {
    return Status(Code::kInvalidArgument, "MPI is not initialised, or was finalized");
  }
  if (parent == MPI_COMM_NULL) return Status(Code::kInvalidArgument, "MPI_COMM_NULL");
  int is_inter = 0;
  if (const int code = MPI_Comm_test_inter(parent, &is_inter); code != MPI_SUCCESS) {
    return MpiError("MPI_Comm_test_inter", code);
  }
  if (is_inter != 0) return Status(Code::kInvalidArgument, "an inter-communicator");
  const std::size_t greatest = std::numeric_limits<int>::max();
  if (options.message_max_bytes == 0 || options.message_max_bytes > greatest) {
    return Status(Code::kInvalidArgument, "message_max_bytes must be in [1, 2^31)");
  }
  return {};
}

std::string CommunicatorImpl::HostName() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

Status CommunicatorImpl::Break(Status reason) {
  if (broken_.ok()) broken_ = std::move(reason);
  return broken_;
}

Status CommunicatorImpl::CheckRoot(int root) {
  if (!broken_.ok()) return broken_;
  if (root >= 0 && root < size_) return {};
  return Break(Status(
      Code::kComm, "there is no rank " + std::to_string(root) + " among " + std::to_string(size_)));
}

// All steps of one call share the deadline of the call.
void CommunicatorImpl::StartClock() {
  call_began_ = Clock::now();
  if (handover_) handover_->StartClock(deadline_);
}

bool CommunicatorImpl::IsPast(Clock::time_point began, std::chrono::milliseconds deadline) {
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
  return passed >= deadline;
}

void CommunicatorImpl::KeepForEver(std::unique_ptr<Operation> operation) {
  // The list is never destroyed but stays reachable, so that leak checkers do not report it.
  static auto* const kept = new std::vector<std::unique_ptr<Operation>>();
  static auto* const mutex = new std::mutex();  // background threads also add operations
  const std::lock_guard lock(*mutex);
  kept->push_back(std::move(operation));
}

// An MPI library without its own thread transfers bytes only during MPI calls. While the operation
// is probably still transferring bytes, this function therefore only yields the CPU. Later, the
// operation is probably waiting for a late rank. The function then sleeps, longer with each call,
// up to 200 µs.
void CommunicatorImpl::Pause(int tests, bool is_moving) {
  constexpr int kYields = 200;
  constexpr std::int64_t kLongestSleepUs = 200;
  if (is_moving || tests < kYields) {
    sched_yield();
    return;
  }
  const std::int64_t sleep_us = std::min<std::int64_t>(kLongestSleepUs, 5 + (tests - kYields));
  std::this_thread::sleep_for(std::chrono::microseconds(sleep_us));
}

std::uint64_t CommunicatorImpl::Operation::size_bytes() const {
  std::uint64_t size = send.size() + receive.size();
  for (const Bytes& bytes : outgoing) size += bytes.size();
  for (const Bytes& bytes : incoming) size += bytes.size();
  return size;
}

// Starts an operation and tests it until it completes. The operation owns its memory: after a
// timeout, MPI may still write, although the caller may have freed its own memory.
template <typename Start>
Result<std::unique_ptr<CommunicatorImpl::Operation>> CommunicatorImpl::Run(
    std::string_view name, std::unique_ptr<Operation> operation, Start start) {
  if (!broken_.ok()) return broken_;
  if (handover_) return RunInBackground(name, std::move(operation), start);
  constexpr std::uint64_t kSlowestBytesPerUs = 64;
  const std::uint64_t size = operation->size_bytes();
  const auto moves_until = Clock::now() + std::chrono::microseconds(size / kSlowestBytesPerUs);
  int code = start(*operation);
  bool done = false;
  for (int tests = 0; code == MPI_SUCCESS; tests = std::min(tests + 1, 1 << 20)) {
    code = TestAll(operation->requests, done);
    if (code != MPI_SUCCESS || done) break;
    if (IsPast(call_began_, deadline_)) {
      KeepForEver(std::move(operation));
      return Break(NotOver(name));
    }
    Pause(tests, size > 0 && Clock::now() < moves_until);
  }
  if (code == MPI_SUCCESS) return operation;
  KeepForEver(std::move(operation));
  return Break(MpiError(name, code));
}

Status CommunicatorImpl::NotOver(std::string_view name) const {
  return Status(Code::kTimeout, std::string(name) + " on rank " + std::to_string(rank_) +
                                    " was not over after " + std::to_string(deadline_.count()) +
                                    " ms");
}

// Like Run, but for a background thread.
template <typename Start>
Result<std::unique_ptr<CommunicatorImpl::Operation>> CommunicatorImpl::RunInBackground(
    std::string_view name, std::unique_ptr<Operation> operation, Start start) {
  const Handover::Start begin = [&] { return start(*operation); };
  auto end = handover_->Run(name, begin, operation->requests);
  if (end.status.ok()) return operation;
  if (end.is_under_way) KeepForEver(std::move(operation));
  return Break(end.is_late ? NotOver(name) : std::move(end.status));
}

Status CommunicatorImpl::Barrier() {
  StartClock();
  if (handover_) return AllGather({}).status();
  return Run("MPI_Ibarrier", std::make_unique<Operation>(),
             [this](Operation& op) { return MPI_Ibarrier(comm_, op.request()); })
      .status();
}

// Flips the highest bit of each number and reduces the results as signed numbers. The signed order
// of the results is the unsigned order of the original numbers. MPICH 4.0 (pmodels/mpich#6083)
// computes a wrong maximum of unsigned numbers, because it compares the numbers as signed numbers.
// Open MPI 4.1 (open-mpi/ompi#10525) has the same error for unsigned long.
Result<CommunicatorImpl::Numbers> CommunicatorImpl::AllReduceMax(const Numbers& values) {
  if (!broken_.ok()) return broken_;
  StartClock();
  const std::size_t limit =
      std::max<std::size_t>(1, options_.message_max_bytes / sizeof(std::uint64_t));
  if (handover_) return ReduceInPairs(values);
  const auto flip = [](std::uint64_t number) { return number ^ (std::uint64_t{1} << 63); };
  Numbers greatest;
  greatest.reserve(values.size());
  for (std::size_t done = 0; done < values.size(); done += limit) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(done);
    const auto count = static_cast<std::ptrdiff_t>(std::min(limit, values.size() - done));
    auto operation = std::make_unique<Operation>();
    std::transform(begin, begin + count, std::back_inserter(operation->send_numbers), flip);
    operation->receive_numbers.resize(operation->send_numbers.size());
    auto reduced = Run("MPI_Iallreduce", std::move(operation), [this](Operation& op) {
      return MPI_Iallreduce(op.send_numbers.data(), op.receive_numbers.data(),
                            static_cast<int>(op.send_numbers.size()), MPI_INT64_T, MPI_MAX, comm_,
                            op.request());
    });
    if (!reduced.ok()) return std::move(reduced).error();
    const Numbers& numbers = (*reduced)->receive_numbers;
    std::transform(numbers.begin(), numbers.end(), std::back_inserter(greatest), flip);
  }
  return greatest;
}

// A background thread must not call MPI during MPI_Finalize. MPI_Finalize first deletes the
// attributes of MPI_COMM_SELF (MPI 3.1, section 8.7.1). When the attribute of this class is
// deleted, its callback interrupts the background thread.
class CommunicatorImpl::InBackground final : public BackgroundCommunicator {
 public:
  InBackground(std::unique_ptr<CommunicatorImpl> communicator, bool is_multiple)
      : communicator_(std::move(communicator)) {
    communicator_->handover_ = std::make_shared<Handover>(is_multiple);
    if (!is_multiple) return;
    at_finalize_ = communicator_->handover_.get();
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &OnDelete, &key_, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, key_, &at_finalize_);
  }
  ~InBackground() override {
    if (!communicator_->MayCallMpi() || key_ == MPI_KEYVAL_INVALID) return;
    at_finalize_ = nullptr;
    MPI_Comm_delete_attr(MPI_COMM_SELF, key_);
    MPI_Comm_free_keyval(&key_);
  }

  Communicator& communicator() override { return *communicator_; }
  bool Progress() override { return communicator_->handover_->Progress(); }
  bool needs_progress() const override { return !communicator_->handover_->is_multiple(); }
  void Interrupt(const Status& reason) override { communicator_->handover_->Interrupt(reason); }

 private:
  static int OnDelete(MPI_Comm /*self*/, int /*key*/, void* value, void* /*state*/) {
    Handover* const handover = *static_cast<Handover**>(value);
    if (handover != nullptr) handover->Interrupt(Status(Code::kComm, "MPI was finalized"));
    return MPI_SUCCESS;
  }

  const std::unique_ptr<CommunicatorImpl> communicator_;
  Handover* at_finalize_ = nullptr;  // null while the attribute is deleted for another reason
  int key_ = MPI_KEYVAL_INVALID;
};

Result<std::unique_ptr<BackgroundCommunicator>> CommunicatorImpl::DuplicateForBackground() {
  int level = MPI_THREAD_SINGLE;
  if (broken_.ok()) MPI_Query_thread(&level);
  const bool may_call = level == MPI_THREAD_MULTIPLE && options_.background_thread_calls_mpi;
  const auto refusals = AllReduceMax({may_call ? 0U : 1U});
  if (!refusals.ok()) return refusals.error();
  auto comm = Duplicate(comm_, deadline_);
  if (!comm.ok()) return Break(std::move(comm).error());
  std::unique_ptr<CommunicatorImpl> duplicate(new CommunicatorImpl(*comm, options_));
  duplicate->set_deadline(deadline_);
  return std::unique_ptr<BackgroundCommunicator>(
      std::make_unique<InBackground>(std::move(duplicate), refusals->front() == 0));
}

}  // namespace detail::mpi

Result<std::unique_ptr<MpiCommunicator>> MpiCommunicator::Create(MPI_Comm parent,
                                                                 MpiCommunicatorOptions options) {
  return detail::mpi::CommunicatorImpl::Create(parent, options);
}

}  // namespace sealpoint

#include "sealpoint/detail/mpi_communicator_messages.h"

#endif  // SEALPOINT_MPI_COMMUNICATOR_IMPL_H_
