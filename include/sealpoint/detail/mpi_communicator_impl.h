// SPDX-License-Identifier: Apache-2.0
//
// The functions of MpiCommunicator; included by mpi_communicator.h alone.
#ifndef SEALPOINT_DETAIL_MPI_COMMUNICATOR_IMPL_H_
#define SEALPOINT_DETAIL_MPI_COMMUNICATOR_IMPL_H_

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "sealpoint/mpi_communicator.h"

namespace sealpoint {

inline Result<std::unique_ptr<MpiCommunicator>> MpiCommunicator::Create(
    MPI_Comm parent, MpiCommunicatorOptions options) {
  if (Status status = CheckParent(parent, options); !status.ok()) return status;
  auto comm = Duplicate(parent, options.deadline);
  if (!comm.ok()) return std::move(comm).error();
  return std::unique_ptr<MpiCommunicator>(new MpiCommunicator(*comm, options));
}

// Uses MPI_Comm_idup because MPI_Comm_dup would wait forever for a missing rank.
inline Result<MPI_Comm> MpiCommunicator::Duplicate(MPI_Comm comm,
                                                   std::chrono::milliseconds deadline) {
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

inline MpiCommunicator::MpiCommunicator(MPI_Comm comm, MpiCommunicatorOptions options)
    : comm_(comm), options_(options), deadline_(options.deadline) {
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
}

inline MpiCommunicator::~MpiCommunicator() {
  if (getpid() != owner_pid_) return;  // MPI is not usable in a child after fork
  int finalized = 0;
  MPI_Finalized(&finalized);
  // With an operation in progress, MPI_Comm_free would wait for ranks that left.
  const bool is_quiet = broken_.ok() && !(handover_ && handover_->is_interrupted());
  if (finalized == 0 && is_quiet) MPI_Comm_free(&comm_);
}

inline Status MpiCommunicator::CheckParent(MPI_Comm parent, const MpiCommunicatorOptions& options) {
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

inline std::string MpiCommunicator::HostName() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

inline Status MpiCommunicator::Break(Status reason) {
  if (broken_.ok()) broken_ = std::move(reason);
  return broken_;
}

inline Status MpiCommunicator::CheckRoot(int root) {
  if (!broken_.ok()) return broken_;
  if (root >= 0 && root < size_) return {};
  return Break(Status(
      Code::kComm, "there is no rank " + std::to_string(root) + " among " + std::to_string(size_)));
}

// All steps of one call share its deadline.
inline void MpiCommunicator::StartClock() {
  call_began_ = Clock::now();
  if (handover_) handover_->StartClock(deadline_);
}

inline bool MpiCommunicator::IsPast(Clock::time_point began, std::chrono::milliseconds deadline) {
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
  return passed >= deadline;
}

inline void MpiCommunicator::KeepForEver(std::unique_ptr<Operation> operation) {
  // Never destroyed but reachable, so that leak checkers do not report it.
  static auto* const kept = new std::vector<std::unique_ptr<Operation>>();
  static auto* const mutex = new std::mutex();  // background threads also add operations
  const std::lock_guard lock(*mutex);
  kept->push_back(std::move(operation));
}

// MPI without its own thread transfers bytes only during calls. For the expected duration of this
// operation's transfer, the processor is therefore only yielded. After that the wait is for another
// rank, and the thread sleeps for increasing times up to 200 µs.
inline void MpiCommunicator::Pause(int tests, bool is_moving) {
  constexpr int kYields = 200;
  constexpr std::int64_t kLongestSleepUs = 200;
  if (is_moving || tests < kYields) {
    sched_yield();
    return;
  }
  const std::int64_t sleep_us = std::min<std::int64_t>(kLongestSleepUs, 5 + (tests - kYields));
  std::this_thread::sleep_for(std::chrono::microseconds(sleep_us));
}

inline std::uint64_t MpiCommunicator::Operation::size_bytes() const {
  std::uint64_t size = send.size() + receive.size();
  for (const Bytes& bytes : outgoing) size += bytes.size();
  for (const Bytes& bytes : incoming) size += bytes.size();
  return size;
}

// Not MPI_Testall: it may not report an error while another request is pending, and it identifies
// the failed request only through individual statuses.
inline int MpiCommunicator::TestAll(std::span<MPI_Request> requests, bool& done) {
  done = true;
  for (MPI_Request& request : requests) {
    int is_over = 1;  // also for a null request
    const int code = MPI_Test(&request, &is_over, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return code;
    done = done && is_over != 0;
  }
  return MPI_SUCCESS;
}

// Starts an operation and tests it until it completes. The operation owns its memory, because after
// a timeout the caller may free its own memory while MPI still writes.
template <typename Start>
Result<std::unique_ptr<MpiCommunicator::Operation>> MpiCommunicator::Run(
    std::string_view name, std::unique_ptr<Operation> operation, Start start) {
  if (!broken_.ok()) return broken_;
  if (handover_) return RunElsewhere(name, std::move(operation), start);
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

inline Status MpiCommunicator::NotOver(std::string_view name) const {
  return Status(Code::kTimeout, std::string(name) + " on rank " + std::to_string(rank_) +
                                    " was not over after " + std::to_string(deadline_.count()) +
                                    " ms");
}

// Like Run, on a thread that must not call MPI.
template <typename Start>
Result<std::unique_ptr<MpiCommunicator::Operation>> MpiCommunicator::RunElsewhere(
    std::string_view name, std::unique_ptr<Operation> operation, Start start) {
  const Handover::Start begin = [&] { return start(*operation); };
  auto end = handover_->Run(name, begin, operation->requests);
  if (end.status.ok()) return operation;
  if (end.is_under_way) KeepForEver(std::move(operation));
  return Break(end.is_late ? NotOver(name) : std::move(end.status));
}

inline Status MpiCommunicator::Barrier() {
  StartClock();
  return Run("MPI_Ibarrier", std::make_unique<Operation>(),
             [this](Operation& op) { return MPI_Ibarrier(comm_, op.request()); })
      .status();
}

// Reduces signed numbers with the highest bit flipped, which preserves the order. The maximum of
// unsigned numbers is wrong in MPICH 4.0 (pmodels/mpich#6083) and, for unsigned long, in Open MPI
// 4.1 (open-mpi/ompi#10525), because they compare as signed.
inline Result<MpiCommunicator::Numbers> MpiCommunicator::AllReduceMax(const Numbers& values) {
  if (!broken_.ok()) return broken_;
  StartClock();
  const std::size_t limit =
      std::max<std::size_t>(1, options_.message_max_bytes / sizeof(std::uint64_t));
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

class MpiCommunicator::InBackground final : public BackgroundCommunicator {
 public:
  explicit InBackground(std::unique_ptr<MpiCommunicator> communicator)
      : communicator_(std::move(communicator)) {
    communicator_->handover_ = std::make_shared<Handover>();
  }

  Communicator& communicator() override { return *communicator_; }
  bool Progress() override { return communicator_->handover_->Progress(); }
  void Interrupt(const Status& reason) override { communicator_->handover_->Interrupt(reason); }

 private:
  const std::unique_ptr<MpiCommunicator> communicator_;
};

inline Result<std::unique_ptr<BackgroundCommunicator>> MpiCommunicator::DuplicateForBackground() {
  if (!broken_.ok()) return broken_;
  auto comm = Duplicate(comm_, deadline_);
  if (!comm.ok()) return Break(std::move(comm).error());
  std::unique_ptr<MpiCommunicator> duplicate(new MpiCommunicator(*comm, options_));
  duplicate->set_deadline(deadline_);
  return std::unique_ptr<BackgroundCommunicator>(
      std::make_unique<InBackground>(std::move(duplicate)));
}

}  // namespace sealpoint

#endif  // SEALPOINT_DETAIL_MPI_COMMUNICATOR_IMPL_H_
