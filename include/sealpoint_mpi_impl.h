// SPDX-License-Identifier: Apache-2.0
//
// The functions of sealpoint_mpi.h: MpiCommunicator as a table of the C API. Include this header in
// exactly one C++20 source file of a program, which also needs the functions of
// sealpoint/mpi_communicator_impl.h. The CMake target sealpoint::c_mpi already contains such a
// file.
#ifndef SEALPOINT_MPI_C_IMPL_H_
#define SEALPOINT_MPI_C_IMPL_H_

#include "sealpoint/mpi_communicator.h"
// Behind MPI without its bindings for C++.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/communicator.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"
#include "sealpoint_mpi.h"
#include "sealpoint_ranks.h"

namespace sealpoint::detail::mpi_c {

// What `user` of a table points to: the program's communicator, or its duplicate.
struct Ranks {
  std::unique_ptr<Communicator> program;
  std::unique_ptr<BackgroundCommunicator> background;
  Communicator& get() const { return program ? *program : background->communicator(); }
};
inline Ranks& RanksOf(void* user) { return *static_cast<Ranks*>(user); }

inline sealpoint_string TextOf(std::string_view text) { return {text.data(), text.size()}; }

// Runs body(communicator), which returns a Status, as a function of the table.
template <typename Body>
std::int32_t Run(void* user, sealpoint_call* call, const Body& body) noexcept {
  try {
    const Status status = body(RanksOf(user).get());
    if (!status.ok()) sealpoint_call_set_message(call, TextOf(status.message()));
    return static_cast<std::int32_t>(status.code());
  } catch (const std::exception& exception) {
    sealpoint_call_set_message(call, TextOf(exception.what()));
    return SEALPOINT_COMM;
  }
}

inline ByteSpan SpanOf(const sealpoint_bytes& bytes) {
  return {static_cast<const std::byte*>(bytes.data), static_cast<std::size_t>(bytes.size)};
}

// Hands the library the bytes of the ranks from 0 on.
inline Status Give(sealpoint_call* call, const std::vector<Bytes>& received) {
  std::int32_t source = 0;
  for (const Bytes& bytes : received) {
    void* const memory = sealpoint_call_receive(call, source++, bytes.size());
    if (memory == nullptr) return {Code::kComm, "out of memory for a message"};
    if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  }
  return {};
}
inline Status Give(sealpoint_call* call, const Result<std::vector<Bytes>>& received) {
  return received.ok() ? Give(call, *received) : received.error();
}

inline std::int32_t Barrier(void* user, sealpoint_call* call) {
  return Run(user, call, [](Communicator& comm) { return comm.Barrier(); });
}

inline std::int32_t Broadcast(void* user, sealpoint_call* call, sealpoint_bytes bytes,
                              std::int32_t root) {
  return Run(user, call, [&](Communicator& comm) -> Status {
    const ByteSpan sent = SpanOf(bytes);
    std::vector<Bytes> message(1, Bytes(sent.begin(), sent.end()));
    const Status status = comm.Broadcast(message.front(), root);
    return !status.ok() || comm.rank() == root ? status : Give(call, message);
  });
}

inline std::int32_t Gather(void* user, sealpoint_call* call, sealpoint_bytes bytes,
                           std::int32_t root) {
  return Run(user, call,
             [&](Communicator& comm) { return Give(call, comm.Gather(SpanOf(bytes), root)); });
}

inline std::int32_t AllGather(void* user, sealpoint_call* call, sealpoint_bytes bytes) {
  return Run(user, call,
             [&](Communicator& comm) { return Give(call, comm.AllGather(SpanOf(bytes))); });
}

inline std::int32_t AllToAll(void* user, sealpoint_call* call, const sealpoint_bytes* outgoing) {
  return Run(user, call, [&](Communicator& comm) {
    std::vector<Bytes> messages;
    for (int rank = 0; rank < comm.size(); ++rank) {
      const ByteSpan bytes = SpanOf(outgoing[rank]);
      messages.emplace_back(bytes.begin(), bytes.end());
    }
    return Give(call, comm.AllToAll(std::move(messages)));
  });
}

inline std::int32_t AllReduceMax(void* user, sealpoint_call* call, std::uint64_t* values,
                                 std::uint64_t count) {
  return Run(user, call, [&](Communicator& comm) -> Status {
    const auto greatest = comm.AllReduceMax({values, values + count});
    if (!greatest.ok()) return greatest.error();
    if (count > 0) std::memcpy(values, greatest->data(), count * sizeof(*values));
    return {};
  });
}

inline std::chrono::milliseconds DeadlineOf(std::int64_t given_ms) {
  return given_ms < 0 ? kForever : std::chrono::milliseconds(given_ms);
}

inline void SetDeadline(void* user, std::int64_t given_ms) {
  RanksOf(user).get().set_deadline(DeadlineOf(given_ms));
}

inline std::int32_t Progress(void* user) { return RanksOf(user).background->Progress() ? 1 : 0; }

// The library interrupts duplicates alone, and keeps the reason itself.
inline void Interrupt(void* user, std::int32_t code) {
  Ranks& ranks = RanksOf(user);
  if (ranks.background) ranks.background->Interrupt({static_cast<Code>(code), "interrupted"});
}

inline void Release(void* user) { delete &RanksOf(user); }

inline std::int32_t Duplicate(void* user, sealpoint_call* call, sealpoint_communicator_table* out);

// The table of these ranks, which own themselves from now on.
inline sealpoint_communicator_table TableOf(std::unique_ptr<Ranks> ranks) {
  const Communicator& comm = ranks->get();
  sealpoint_communicator_table table;
  sealpoint_init(&table, sizeof table);
  table.rank = comm.rank();
  table.size = comm.size();
  table.host = TextOf(comm.host());
  table.barrier = Barrier;
  table.broadcast = Broadcast;
  table.gather = Gather;
  table.all_gather = AllGather;
  table.all_to_all = AllToAll;
  table.all_reduce_max = AllReduceMax;
  table.set_deadline = SetDeadline;
  table.interrupt = Interrupt;
  table.release = Release;
  if (ranks->background) {
    table.needs_progress = ranks->background->needs_progress() ? 1 : 0;
    table.progress = Progress;
  } else {
    table.duplicate = Duplicate;
  }
  table.user = ranks.release();
  return table;
}

std::int32_t Duplicate(void* user, sealpoint_call* call, sealpoint_communicator_table* out) {
  return Run(user, call, [&](Communicator& comm) -> Status {
    auto duplicate = comm.DuplicateForBackground();
    if (!duplicate.ok()) return duplicate.error();
    auto ranks = std::make_unique<Ranks>();
    ranks->background = std::move(duplicate).value();
    *out = TableOf(std::move(ranks));
    return {};
  });
}

inline Status TakeOptions(const sealpoint_mpi_options* given, MpiCommunicatorOptions& taken) {
  if (given == nullptr) return {};
  // This file and the program are compiled with the same header.
  if (given->struct_size != sizeof *given) {
    return {Code::kInvalidArgument, "struct_size is " + std::to_string(given->struct_size) +
                                        ", expected " + std::to_string(sizeof *given) +
                                        " (set by sealpoint_init)"};
  }
  if (given->message_max_bytes != 0) taken.message_max_bytes = given->message_max_bytes;
  if (given->deadline_ms != 0) taken.deadline = DeadlineOf(given->deadline_ms);
  taken.background_thread_calls_mpi = given->no_background_thread == 0;
  return {};
}

inline Result<std::unique_ptr<Ranks>> Connect(MPI_Comm parent, const sealpoint_mpi_options* given,
                                              const sealpoint_communicator* const* out) {
  if (out == nullptr) return Status(Code::kInvalidArgument, "out is NULL");
  MpiCommunicatorOptions options;
  if (Status status = TakeOptions(given, options); !status.ok()) return status;
  auto comm = MpiCommunicator::Create(parent, options);
  if (!comm.ok()) return comm.error();
  auto ranks = std::make_unique<Ranks>();
  ranks->program = std::move(comm).value();
  return ranks;
}

}  // namespace sealpoint::detail::mpi_c

extern "C" {

int32_t sealpoint_communicator_mpi(MPI_Comm parent, const sealpoint_mpi_options* options,
                                   sealpoint_communicator** out, sealpoint_error** error) {
  using namespace sealpoint::detail::mpi_c;  // NOLINT: this file's own
  if (out != nullptr) *out = nullptr;
  try {
    auto ranks = Connect(parent, options, out);
    if (!ranks.ok()) {
      const sealpoint::Status& status = ranks.error();
      return sealpoint_error_create(static_cast<std::int32_t>(status.code()),
                                    TextOf(status.message()), error);
    }
    const sealpoint_communicator_table table = TableOf(std::move(ranks).value());
    const std::int32_t code = sealpoint_communicator_create(&table, out, error);
    if (code != SEALPOINT_OK) Release(table.user);
    return code;
  } catch (const std::exception& exception) {
    return sealpoint_error_create(SEALPOINT_INTERNAL, TextOf(exception.what()), error);
  }
}

int32_t sealpoint_communicator_mpi_f(MPI_Fint parent, const sealpoint_mpi_options* options,
                                     sealpoint_communicator** out, sealpoint_error** error) {
  return sealpoint_communicator_mpi(MPI_Comm_f2c(parent), options, out, error);
}

}  // extern "C"

#endif  // SEALPOINT_MPI_C_IMPL_H_
