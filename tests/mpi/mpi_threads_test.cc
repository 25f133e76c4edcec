// SPDX-License-Identifier: Apache-2.0
//
// By the profiling interface of MPI: this program runs with MPI_THREAD_SINGLE, and the thread of
// every call is looked at.
#include <gtest/gtest.h>
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "sealpoint/mpi_communicator.h"
#include "tests/support/state/save_job.h"

namespace {

std::thread::id main_thread;
std::atomic<int> calls{0};
std::atomic<int> calls_elsewhere{0};
std::atomic<int> sends{0};  // of what does not fit into the first message of an AllToAll

void NoteCall() {
  ++calls;
  if (std::this_thread::get_id() != main_thread) ++calls_elsewhere;
}

}  // namespace

extern "C" {

int MPI_Init_thread(int* argc, char*** argv, int /*required*/, int* provided) {
  main_thread = std::this_thread::get_id();
  *provided = MPI_THREAD_SINGLE;
  return PMPI_Init(argc, argv);
}

// Each operation of the adapter is tested until it is done.
int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  NoteCall();
  return PMPI_Test(request, flag, status);
}

int MPI_Iallreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  NoteCall();
  return PMPI_Iallreduce(send, receive, count, type, op, comm, request);
}

int MPI_Isend(const void* bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  NoteCall();
  ++sends;
  return PMPI_Isend(bytes, count, type, to, tag, comm, request);
}

int MPI_Irecv(void* bytes, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
  NoteCall();
  return PMPI_Irecv(bytes, count, type, from, tag, comm, request);
}

}  // extern "C"

namespace sealpoint::testing {
namespace {

TEST(MpiThreads, ASaveInTheBackgroundCallsMpiOnTheCallersThreadAlone) {
  int level = MPI_THREAD_MULTIPLE;
  MPI_Query_thread(&level);
  EXPECT_EQ(level, MPI_THREAD_SINGLE);
  OnJobs([](SaveJob& job) {
    const int calls_before = calls;
    const Declaration declaration = UsualDeclaration(job.comm);
    ASSERT_TRUE(job.Save(declaration, "in_the_foreground").ok());
    const auto rank = static_cast<std::uint64_t>(job.rank());
    const auto size = static_cast<std::uint64_t>(job.size());
    Declaration slice;
    slice
        .Add({.tensor = ByteTensor("s", size * 1000),
              .region = Slice(rank * 1000, rank * 1000 + 1000)})
        .value();
    const Bytes bytes(1000);
    Sources sources(slice);
    ASSERT_TRUE(sources.Bind("s", MemoryView::Host(bytes)).ok());
    const auto pending =
        job.saver->SaveAsync(SaveTarget::Directory(job.path("ckpt")), {}, sources).value();
    while (pending->Poll() == SaveState::kRunning) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(pending->Wait().ok());
    EXPECT_GT(calls, calls_before);
    EXPECT_EQ(calls_elsewhere, 0);
  });
}

// Several requests at a time, on a thread that must not make them.
TEST(MpiThreads, LongMessagesInTheBackgroundGoByTheCallersThread) {
  auto comm = MpiCommunicator::Create(MPI_COMM_WORLD).value();
  const auto background = comm->DuplicateForBackground().value();
  const auto size = static_cast<std::size_t>(comm->size());
  const int sends_before = sends;
  std::atomic<bool> is_over = false;
  Result<std::vector<Bytes>> incoming = std::vector<Bytes>();
  std::thread thread([&] {
    std::vector<Bytes> outgoing(size, Bytes(100'000, static_cast<std::byte>(comm->rank())));
    incoming = background->communicator().AllToAll(std::move(outgoing));
    is_over = true;
  });
  while (!is_over) background->Progress();
  thread.join();
  ASSERT_TRUE(incoming.ok()) << incoming.error().ToString();
  for (std::size_t from = 0; from < size; ++from) {
    EXPECT_EQ((*incoming)[from], Bytes(100'000, static_cast<std::byte>(from)));
  }
  EXPECT_EQ(sends - sends_before, 2 * (comm->size() - 1));  // the first part, and the rest
  EXPECT_EQ(calls_elsewhere, 0);
}

}  // namespace
}  // namespace sealpoint::testing
