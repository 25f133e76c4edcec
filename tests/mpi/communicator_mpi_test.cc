// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sealpoint/mpi_communicator.h"

// What only the MPI adapter does: messages in pieces, deadlines, errors of MPI.

// Calls that exchange messages, of this process; MPI lets a program put itself before them.
static int g_exchange_count = 0;
// Called before each MPI_Isend; what it returns is the code of the call, if that is an error.
static std::function<int()> g_before_send;

extern "C" {
int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request) {
  ++g_exchange_count;
  return PMPI_Ibcast(buffer, count, type, root, comm, request);
}
int MPI_Iallgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                   int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                   MPI_Request* request) {
  ++g_exchange_count;
  return PMPI_Iallgather(send, send_count, send_type, receive, receive_count, receive_type, comm,
                         request);
}
int MPI_Igatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                 const int receive_counts[], const int starts[], MPI_Datatype receive_type,
                 int root, MPI_Comm comm, MPI_Request* request) {
  ++g_exchange_count;
  return PMPI_Igatherv(send, send_count, send_type, receive, receive_counts, starts, receive_type,
                       root, comm, request);
}
int MPI_Iallgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                    const int receive_counts[], const int starts[], MPI_Datatype receive_type,
                    MPI_Comm comm, MPI_Request* request) {
  ++g_exchange_count;
  return PMPI_Iallgatherv(send, send_count, send_type, receive, receive_counts, starts,
                          receive_type, comm, request);
}
int MPI_Ialltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                  int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                  MPI_Request* request) {
  ++g_exchange_count;
  return PMPI_Ialltoall(send, send_count, send_type, receive, receive_count, receive_type, comm,
                        request);
}
int MPI_Isend(const void* bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  ++g_exchange_count;
  if (const int code = g_before_send ? g_before_send() : MPI_SUCCESS; code != MPI_SUCCESS) {
    return code;
  }
  return PMPI_Isend(bytes, count, type, to, tag, comm, request);
}
int MPI_Iallreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op operation,
                   MPI_Comm comm, MPI_Request* request) {
  ++g_exchange_count;
  return PMPI_Iallreduce(send, receive, count, type, operation, comm, request);
}
}

namespace sealpoint {
namespace {

using std::chrono::milliseconds;

std::unique_ptr<MpiCommunicator> CreateWorld(MpiCommunicatorOptions options = {}) {
  auto comm = MpiCommunicator::Create(MPI_COMM_WORLD, options);
  EXPECT_TRUE(comm.ok()) << comm.error().ToString();
  (*comm)->set_deadline(std::chrono::minutes(1));
  return std::move(*comm);
}

// No two bytes next to each other, or at the same place of two messages, are alike.
Bytes Pattern(int from, int to, std::size_t length) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(from * 31 + to * 13));
  }
  return bytes;
}

// Limits below, at and above the lengths of the messages, of which one is empty.
class MpiPieces : public testing::TestWithParam<std::size_t> {
 protected:
  static std::size_t Length(int from, int to) {
    return from == 0 ? 0 : static_cast<std::size_t>(10 * from + to);
  }
  std::unique_ptr<MpiCommunicator> comm_ = CreateWorld({.message_max_bytes = GetParam()});
};

TEST_P(MpiPieces, Broadcast) {
  const int root = comm_->size() - 1;
  Bytes bytes;
  if (comm_->rank() == root) bytes = Pattern(root, 0, 53);
  const Status status = comm_->Broadcast(bytes, root);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(bytes, Pattern(root, 0, 53));
}

TEST_P(MpiPieces, Gather) {
  const int root = comm_->size() - 1;
  const auto parts = comm_->Gather(Pattern(comm_->rank(), 0, Length(comm_->rank(), 0)), root);
  ASSERT_TRUE(parts.ok()) << parts.error().ToString();
  ASSERT_EQ(parts->size(), comm_->rank() == root ? static_cast<std::size_t>(comm_->size()) : 0);
  for (int from = 0; from < static_cast<int>(parts->size()); ++from) {
    EXPECT_EQ((*parts)[static_cast<std::size_t>(from)], Pattern(from, 0, Length(from, 0))) << from;
  }
}

TEST_P(MpiPieces, AllGather) {
  const auto parts = comm_->AllGather(Pattern(comm_->rank(), 0, Length(comm_->rank(), 0)));
  ASSERT_TRUE(parts.ok()) << parts.error().ToString();
  for (int from = 0; from < comm_->size(); ++from) {
    EXPECT_EQ((*parts)[static_cast<std::size_t>(from)], Pattern(from, 0, Length(from, 0))) << from;
  }
}

TEST_P(MpiPieces, AllToAll) {
  const int me = comm_->rank();
  std::vector<Bytes> outgoing;
  for (int to = 0; to < comm_->size(); ++to) outgoing.push_back(Pattern(me, to, Length(me, to)));
  const auto parts = comm_->AllToAll(outgoing);
  ASSERT_TRUE(parts.ok()) << parts.error().ToString();
  for (int from = 0; from < comm_->size(); ++from) {
    EXPECT_EQ((*parts)[static_cast<std::size_t>(from)], Pattern(from, me, Length(from, me)))
        << from;
  }
}

TEST_P(MpiPieces, AllReduceMax) {
  std::vector<std::uint64_t> numbers(20);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = i * 100 + static_cast<std::uint64_t>(comm_->rank());
  }
  const auto greatest = comm_->AllReduceMax(numbers);
  ASSERT_TRUE(greatest.ok()) << greatest.error().ToString();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(greatest->at(i), i * 100 + static_cast<std::uint64_t>(comm_->size() - 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Limits, MpiPieces, testing::Values(1, 7, 10, 53, 1000));

// A save in the background makes one step per call of Poll and exchange.
TEST(MpiCommunicator, SmallMessagesNeedOneExchange) {
  const auto comm = CreateWorld();
  const auto exchanges_of = [](const auto& call) {
    const int before = g_exchange_count;
    call();
    return g_exchange_count - before;
  };
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{1000}}) {
    SCOPED_TRACE(length);
    const int rank = comm->rank();
    Bytes bytes = Pattern(rank, 0, length);
    EXPECT_EQ(exchanges_of([&] { EXPECT_TRUE(comm->Broadcast(bytes, 0).ok()); }), 1);
    EXPECT_EQ(bytes, Pattern(0, 0, length));
    EXPECT_EQ(exchanges_of([&] { EXPECT_TRUE(comm->Gather(bytes, 0).ok()); }), 1);
    EXPECT_EQ(exchanges_of([&] { EXPECT_TRUE(comm->AllGather(bytes).ok()); }), 1);
    const std::vector<Bytes> outgoing(static_cast<std::size_t>(comm->size()), bytes);
    EXPECT_EQ(exchanges_of([&] { EXPECT_TRUE(comm->AllToAll(outgoing).ok()); }), 1);
  }
}

// Lengths around the room of a first message, on one rank alone.
TEST(MpiCommunicator, MessagesOfAnyLengthArriveWhole) {
  const auto comm = CreateWorld();
  const int rank = comm->rank();
  const int size = comm->size();
  const auto length_of = [](int from, std::size_t longest) {
    return from == 0 ? longest : static_cast<std::size_t>(from);
  };
  for (const std::size_t longest : {4095U, 4096U, 4097U, 8192U, 100'000U}) {
    SCOPED_TRACE(longest);
    const Bytes own = Pattern(rank, 0, length_of(rank, longest));
    const auto all = comm->AllGather(own).value();
    const auto gathered = comm->Gather(own, 0).value();
    Bytes told = own;
    ASSERT_TRUE(comm->Broadcast(told, 0).ok());
    EXPECT_EQ(told, Pattern(0, 0, longest));
    std::vector<Bytes> outgoing;
    for (int to = 0; to < size; ++to) outgoing.push_back(Pattern(rank, to, length_of(to, longest)));
    const auto incoming = comm->AllToAll(outgoing).value();
    for (int from = 0; from < size; ++from) {
      const auto at = static_cast<std::size_t>(from);
      EXPECT_EQ(all[at], Pattern(from, 0, length_of(from, longest)));
      if (rank == 0) EXPECT_EQ(gathered[at], all[at]);
      EXPECT_EQ(incoming[at], Pattern(from, rank, length_of(rank, longest)));
    }
  }
}

TEST(MpiCommunicator, LimitOutsideTheRangeOfIntIsRefused) {
  EXPECT_EQ(MpiCommunicator::Create(MPI_COMM_WORLD, {.message_max_bytes = 0}).error().code(),
            Code::kInvalidArgument);
  const std::size_t too_much = std::size_t{1} << 31;
  EXPECT_EQ(MpiCommunicator::Create(MPI_COMM_WORLD, {.message_max_bytes = too_much}).error().code(),
            Code::kInvalidArgument);
}

TEST(MpiCommunicator, NullCommunicatorIsRefused) {
  EXPECT_EQ(MpiCommunicator::Create(MPI_COMM_NULL).error().code(), Code::kInvalidArgument);
}

TEST(MpiCommunicator, MessagesDoNotMeetThoseOfTheParent) {
  const auto comm = CreateWorld();
  // A collective of the program is under way on the parent while ours runs.
  MPI_Request request = MPI_REQUEST_NULL;
  int value = comm->rank() == 0 ? 42 : 0;
  MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
  const auto greatest = comm->AllReduceMax({7});
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  ASSERT_TRUE(greatest.ok());
  EXPECT_EQ(greatest->front(), 7u);
  EXPECT_EQ(value, 42);
}

TEST(MpiCommunicator, RootThatIsNotThereIsRefused) {
  const auto comm = CreateWorld();
  Bytes bytes;
  EXPECT_EQ(comm->Broadcast(bytes, comm->size()).code(), Code::kComm);
  EXPECT_EQ(comm->Barrier().code(), Code::kComm);
}

TEST(MpiCommunicator, TooFewMessagesAreFoundOnAllRanks) {
  const auto comm = CreateWorld();
  const bool wrong = comm->rank() == comm->size() - 1;
  const auto count = static_cast<std::size_t>(comm->size());
  const auto result = comm->AllToAll(std::vector<Bytes>(wrong ? count - 1 : count));
  EXPECT_EQ(result.error().code(), Code::kComm);
}

// The others do not wait for the last rank longer than they said, not even to make a communicator.
TEST(MpiCommunicator, MakingOneHasADeadline) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) GTEST_SKIP() << "needs somebody to wait for";
  if (rank == size - 1) {
    std::this_thread::sleep_for(milliseconds(400));
    EXPECT_TRUE(MpiCommunicator::Create(MPI_COMM_WORLD).ok()) << "the others began";
  } else {
    const auto begin = std::chrono::steady_clock::now();
    const auto comm = MpiCommunicator::Create(MPI_COMM_WORLD, {.deadline = milliseconds(50)});
    EXPECT_EQ(comm.error().code(), Code::kTimeout);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(390));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// The last rank comes too late; the memory of the others' calls is gone by then.
class MpiDeadline : public testing::TestWithParam<bool> {
 protected:
  static Result<std::vector<Bytes>> Call(MpiCommunicator& comm) {
    if (GetParam()) return comm.AllGather(Bytes(100'000));
    return comm.AllToAll(std::vector<Bytes>(static_cast<std::size_t>(comm.size()), Bytes(100'000)));
  }
};

TEST_P(MpiDeadline, EndsTheWaitAndTheLateRankHarmsNobody) {
  const auto comm = CreateWorld();
  if (comm->size() == 1) GTEST_SKIP() << "needs somebody to wait for";
  const bool is_late = comm->rank() == comm->size() - 1;
  if (is_late) {
    comm->set_deadline(milliseconds(500));
    std::this_thread::sleep_for(milliseconds(400));
    const auto late = Call(*comm);
    EXPECT_TRUE(late.ok() || late.error().code() == Code::kTimeout) << late.error().ToString();
  } else {
    comm->set_deadline(milliseconds(50));
    const auto begin = std::chrono::steady_clock::now();
    const auto result = Call(*comm);
    EXPECT_EQ(result.error().code(), Code::kTimeout);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(50));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(390));
    EXPECT_EQ(comm->Barrier(), result.error()) << "stays broken";
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// Now all know the sizes, and the last rank begins to send too late. What the others gave up stays
// where MPI sends it from: the late rank gets the right bytes.
TEST(MpiCommunicator, AnExchangeThatWasGivenUpKeepsItsMemory) {
  const auto comm = CreateWorld();
  if (comm->size() == 1) GTEST_SKIP() << "needs somebody to wait for";
  constexpr std::size_t kLength = 1'000'000;
  const int rank = comm->rank();
  const bool is_late = rank == comm->size() - 1;
  std::vector<Bytes> outgoing;
  for (int to = 0; to < comm->size(); ++to) outgoing.push_back(Pattern(rank, to, kLength));
  if (is_late) {
    bool has_slept = false;
    g_before_send = [&] {
      if (!std::exchange(has_slept, true)) std::this_thread::sleep_for(milliseconds(1600));
      return MPI_SUCCESS;
    };
    const auto incoming = comm->AllToAll(std::move(outgoing));
    ASSERT_TRUE(incoming.ok()) << incoming.error().ToString();
    for (int from = 0; from < comm->size(); ++from) {
      EXPECT_EQ((*incoming)[static_cast<std::size_t>(from)], Pattern(from, rank, kLength)) << from;
    }
  } else {
    // Long enough that the sizes arrive on a busy machine, too: who gives up before sends nothing.
    comm->set_deadline(milliseconds(1000));
    EXPECT_EQ(comm->AllToAll(std::move(outgoing)).error().code(), Code::kTimeout);
    // Memory that was freed would be used again.
    const std::vector<Bytes> others(4 * static_cast<std::size_t>(comm->size()), Bytes(kLength));
    EXPECT_EQ(comm->Barrier().code(), Code::kTimeout) << "stays broken";
  }
  g_before_send = nullptr;
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(MpiCommunicator, ASendThatFailsIsAnErrorWithItsCause) {
  const auto comm = CreateWorld();
  if (comm->size() == 1) GTEST_SKIP() << "needs somebody to send to";
  comm->set_deadline(milliseconds(200));
  const bool fails = comm->rank() == 0;
  if (fails) g_before_send = [] { return MPI_ERR_OTHER; };
  const auto result =
      comm->AllToAll(std::vector<Bytes>(static_cast<std::size_t>(comm->size()), Bytes(100'000)));
  g_before_send = nullptr;
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), fails ? Code::kComm : Code::kTimeout);
  if (fails) {
    EXPECT_NE(result.error().message().find("MPI_Isend"), std::string::npos);
    EXPECT_NE(result.error().message().find(std::to_string(MPI_ERR_OTHER)), std::string::npos);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

INSTANTIATE_TEST_SUITE_P(Calls, MpiDeadline, testing::Bool(), [](const auto& instance) {
  return instance.param ? "AllGather" : "AllToAll";
});

}  // namespace
}  // namespace sealpoint
