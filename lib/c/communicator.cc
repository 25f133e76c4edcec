// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/communicator.h"

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "lib/c/ranks.h"

struct sealpoint_call {
  std::int32_t source_count = 0;
  std::map<std::int32_t, sealpoint::Bytes> received;  // by source
  std::string message;
};

namespace sealpoint::c_api {
namespace {

Status CheckTable(const sealpoint_communicator_table& table) {
  if (table.size < 1 || table.rank < 0 || table.rank >= table.size) {
    return {Code::kInvalidArgument, "rank is " + std::to_string(table.rank) + " of " +
                                        std::to_string(table.size) +
                                        ", expected at least 0 and below the size"};
  }
  const bool is_whole = table.barrier != nullptr && table.broadcast != nullptr &&
                        table.gather != nullptr && table.all_gather != nullptr &&
                        table.all_to_all != nullptr && table.all_reduce_max != nullptr &&
                        table.set_deadline != nullptr &&
                        (table.duplicate == nullptr || table.interrupt != nullptr);
  if (!is_whole) {
    return {Code::kInvalidArgument, "a required function of the communicator is NULL"};
  }
  if (table.needs_progress == 0 || table.progress != nullptr) return {};
  return {Code::kInvalidArgument, "needs_progress is set, but the function progress is NULL"};
}

// Functions of the program as a Communicator.
class Table final : public Communicator {
 public:
  Table(const sealpoint_communicator_table& table, std::string host)
      : table_(table), host_(std::move(host)) {}
  ~Table() override {
    if (table_.release != nullptr) table_.release(table_.user);
  }

  int rank() const override { return table_.rank; }
  int size() const override { return table_.size; }
  const std::string& host() const override { return host_; }
  void set_deadline(std::chrono::milliseconds deadline) override {
    table_.set_deadline(table_.user, deadline == kForever ? SEALPOINT_FOREVER : deadline.count());
  }

  Status Barrier() override {
    return Call(0, [&](sealpoint_call* call) { return table_.barrier(table_.user, call); })
        .status();
  }
  Status Broadcast(Bytes& bytes, int root) override {
    const bool sends = table_.rank == root;
    auto received = Call(sends ? 0 : 1, [&](sealpoint_call* call) {
      const sealpoint_bytes sent = sends ? Out(ByteSpan(bytes)) : sealpoint_bytes{nullptr, 0};
      return table_.broadcast(table_.user, call, sent, root);
    });
    if (received.ok() && !sends) bytes = std::move(received->front());
    return received.status();
  }
  Result<std::vector<Bytes>> Gather(ByteSpan bytes, int root) override {
    return Call(table_.rank == root ? table_.size : 0, [&](sealpoint_call* call) {
      return table_.gather(table_.user, call, Out(bytes), root);
    });
  }
  Result<std::vector<Bytes>> AllGather(ByteSpan bytes) override {
    return Call(table_.size, [&](sealpoint_call* call) {
      return table_.all_gather(table_.user, call, Out(bytes));
    });
  }
  Result<std::vector<Bytes>> AllToAll(std::vector<Bytes> outgoing) override {
    std::vector<sealpoint_bytes> views;
    for (const Bytes& bytes : outgoing) views.push_back(Out(ByteSpan(bytes)));
    return Call(table_.size, [&](sealpoint_call* call) {
      return table_.all_to_all(table_.user, call, views.data());
    });
  }
  Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) override {
    std::vector<std::uint64_t> greatest = values;
    const auto done = Call(0, [&](sealpoint_call* call) {
      return table_.all_reduce_max(table_.user, call, greatest.data(), greatest.size());
    });
    if (!done.ok()) return done.error();
    return greatest;
  }
  Result<std::unique_ptr<BackgroundCommunicator>> DuplicateForBackground() override;

  bool Progress() {
    if (table_.progress == nullptr) return false;
    const std::int32_t has_moved = table_.progress(table_.user);
    return has_moved != 0;
  }
  bool needs_progress() const { return table_.needs_progress != 0; }
  void Interrupt(const Status& reason) {
    {
      const std::lock_guard lock(mutex_);
      if (!interrupted_) interrupted_ = reason;
    }
    table_.interrupt(table_.user, static_cast<std::int32_t>(reason.code()));
  }

 private:
  // What `function` received from each of `source_count` ranks.
  Result<std::vector<Bytes>> Call(int source_count,
                                  const std::function<std::int32_t(sealpoint_call*)>& function) {
    sealpoint_call call;
    call.source_count = source_count;
    const std::int32_t code = function(&call);
    if (code != SEALPOINT_OK) return Failure(code, std::move(call.message));
    std::vector<Bytes> received;
    for (std::int32_t source = 0; source < source_count; ++source) {
      const auto found = call.received.find(source);
      if (found == call.received.end()) {
        return Status(Code::kComm, "the program's communicator received nothing from rank " +
                                       std::to_string(source));
      }
      received.push_back(std::move(found->second));
    }
    return received;
  }

  Status Failure(std::int32_t code, std::string message) {
    const std::lock_guard lock(mutex_);
    if (interrupted_) return *interrupted_;
    if (message.empty()) {
      message = "the program's communicator failed with code " + std::to_string(code);
    }
    return {code == SEALPOINT_TIMEOUT ? Code::kTimeout : Code::kComm, std::move(message)};
  }

  const sealpoint_communicator_table table_;
  const std::string host_;
  std::mutex mutex_;
  std::optional<Status> interrupted_;
};

Result<std::unique_ptr<Table>> TableOf(const sealpoint_communicator_table& given) {
  SEALPOINT_C_TRY(CheckTable(given));
  std::string host;
  SEALPOINT_C_TRY(Take(given.host, "host", host));
  return std::make_unique<Table>(given, std::move(host));
}

class Duplicate final : public BackgroundCommunicator {
 public:
  explicit Duplicate(std::unique_ptr<Table> table) : table_(std::move(table)) {}
  Communicator& communicator() override { return *table_; }
  bool Progress() override { return table_->Progress(); }
  bool needs_progress() const override { return table_->needs_progress(); }
  void Interrupt(const Status& reason) override { table_->Interrupt(reason); }

 private:
  const std::unique_ptr<Table> table_;
};

Result<std::unique_ptr<BackgroundCommunicator>> Table::DuplicateForBackground() {
  if (table_.duplicate == nullptr) return Communicator::DuplicateForBackground();
  sealpoint_communicator_table made;
  sealpoint_init(&made, sizeof(made));
  const auto done =
      Call(0, [&](sealpoint_call* call) { return table_.duplicate(table_.user, call, &made); });
  if (!done.ok()) return done.error();
  const auto refuse = [&](const std::string& why) -> Status {
    if (made.release != nullptr) made.release(made.user);
    return {Code::kComm, why};
  };
  // A duplicate is interrupted when its saver gives up; one that cannot be would hang it.
  if (made.interrupt == nullptr) {
    return refuse("the duplicate of the communicator has no function interrupt");
  }
  auto table = TableOf(made);
  if (!table.ok()) return refuse(table.error().message());
  std::unique_ptr<BackgroundCommunicator> duplicate =
      std::make_unique<Duplicate>(std::move(table).value());
  return duplicate;
}

std::unique_ptr<sealpoint_communicator> HandleOf(std::unique_ptr<Communicator> communicator) {
  auto handle = std::make_unique<sealpoint_communicator>();
  handle->communicator = std::move(communicator);
  return handle;
}

}  // namespace
}  // namespace sealpoint::c_api

using sealpoint::Status;
using sealpoint::c_api::Guarded;
using sealpoint::c_api::HandleOf;
using sealpoint::c_api::Make;
using sealpoint::c_api::NotNull;
using MadeHandle = sealpoint::Result<std::unique_ptr<sealpoint_communicator>>;

extern "C" {

void* sealpoint_call_receive(sealpoint_call* call, int32_t source, uint64_t size_bytes) {
  if (call == nullptr || source < 0 || source >= call->source_count) return nullptr;
  if (call->received.contains(source)) return nullptr;
  try {
    sealpoint::Bytes bytes(size_bytes);
    static std::byte none{};  // NULL would mean a failure
    void* const memory = bytes.empty() ? &none : bytes.data();
    call->received.emplace(source, std::move(bytes));  // which moves no byte
    return memory;
  } catch (const std::exception&) {
    return nullptr;
  }
}

void sealpoint_call_set_message(sealpoint_call* call, sealpoint_string message) {
  if (call == nullptr || message.data == nullptr) return;
  static_cast<void>(Guarded(nullptr, [&]() -> Status {
    return sealpoint::c_api::Take(message, "message", call->message);
  }));
}

int32_t sealpoint_communicator_create(const sealpoint_communicator_table* table,
                                      sealpoint_communicator** out, sealpoint_error** error) {
  return Make(out, error, [&]() -> MadeHandle {
    SEALPOINT_C_TRY(NotNull(table, "table"));
    sealpoint_communicator_table taken;
    SEALPOINT_C_TRY(sealpoint::c_api::Take(table, taken));
    auto handle = std::make_unique<sealpoint_communicator>();
    auto made = sealpoint::c_api::TableOf(taken);
    if (!made.ok()) return made.error();
    handle->communicator = std::move(made).value();
    return handle;
  });
}

int32_t sealpoint_communicator_self(sealpoint_communicator** out, sealpoint_error** error) {
  return Make(out, error, []() -> MadeHandle { return HandleOf(sealpoint::SelfCommunicator()); });
}

int32_t sealpoint_communicator_threads(int32_t size, sealpoint_communicator** out,
                                       sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(out, "out"));
    if (size < 1) {
      return {sealpoint::Code::kInvalidArgument,
              "size is " + std::to_string(size) + ", expected at least 1"};
    }
    std::vector<std::unique_ptr<sealpoint_communicator>> handles;
    for (auto& communicator : sealpoint::ThreadCommunicators(size)) {
      handles.push_back(HandleOf(std::move(communicator)));
    }
    for (std::size_t rank = 0; rank < handles.size(); ++rank) out[rank] = handles[rank].release();
    return {};
  });
}

int32_t sealpoint_communicator_agree(const sealpoint_communicator* communicator,
                                     const sealpoint_error* local, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(communicator, "communicator"));
    return sealpoint::AgreeOnStatus(*communicator->communicator,
                                    local == nullptr ? Status() : local->status);
  });
}

void sealpoint_communicator_free(sealpoint_communicator* communicator) { delete communicator; }

}  // extern "C"
