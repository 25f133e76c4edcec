// SPDX-License-Identifier: Apache-2.0
#include "python/src/communicator.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>

#include "python/src/gil.h"
#include "python/src/module.h"
#include "python/src/status.h"
#include "python/src/values.h"
#include "sealpoint/detail/agreement.h"

namespace sealpoint::python {
namespace {

// What the caller's code raised; other ranks may be anywhere now.
Status FailureOf(const nb::python_error& error) {
  const Status status = StatusOf(error.value());
  if (status.code() == Code::kTimeout || status.code() == Code::kComm) return status;
  return {Code::kComm, status.message()};
}

// Runs call() with the GIL. Returns Result<its type>, or Status if it has none.
template <typename Call>
auto WithGil(const Call& call) {
  using Value = decltype(call());
  using Outcome = std::conditional_t<std::is_void_v<Value>, Status, Result<Value>>;
  const GilAcquire acquired;
  std::optional<Outcome> outcome;
  try {
    if constexpr (std::is_void_v<Value>) {
      call();
      outcome.emplace();
    } else {
      outcome.emplace(call());
    }
  } catch (const nb::python_error& error) {
    outcome.emplace(FailureOf(error));
  } catch (const std::exception& error) {  // a result of another type
    outcome.emplace(Status(Code::kComm, error.what()));
  }
  return *std::move(outcome);
}

// Memory of the library, readable by Python during one call.
nb::object ViewOf(ByteSpan bytes) {
  static char none = 0;
  auto* data =
      bytes.empty() ? &none : const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
  PyObject* view = PyMemoryView_FromMemory(data, static_cast<Py_ssize_t>(bytes.size()), PyBUF_READ);
  if (view == nullptr) nb::raise_python_error();
  return nb::steal(view);
}

// A copy of what has the buffer protocol.
Bytes CopyOf(nb::handle object) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(object.ptr(), &buffer, PyBUF_SIMPLE) != 0) nb::raise_python_error();
  const auto* data = static_cast<const std::byte*>(buffer.buf);
  Bytes bytes(data, data + buffer.len);
  PyBuffer_Release(&buffer);
  return bytes;
}

// One message per rank.
std::vector<Bytes> MessagesOf(const nb::object& list, int count) {
  std::vector<Bytes> messages;
  messages.reserve(static_cast<std::size_t>(count));
  for (const nb::handle message : list) messages.push_back(CopyOf(message));
  if (messages.size() == static_cast<std::size_t>(count)) return messages;
  throw std::invalid_argument("communicator returned " + std::to_string(messages.size()) +
                              " messages, expected " + std::to_string(count));
}

class InBackground final : public BackgroundCommunicator {
 public:
  explicit InBackground(std::unique_ptr<PythonCommunicator> communicator)
      : communicator_(std::move(communicator)) {}
  Communicator& communicator() override { return *communicator_; }
  bool Progress() override { return false; }
  bool needs_progress() const override { return false; }
  void Interrupt(const Status& why) override { communicator_->Interrupt(why); }

 private:
  const std::unique_ptr<PythonCommunicator> communicator_;
};

}  // namespace

PythonCommunicator::PythonCommunicator(nb::object communicator)
    : object_(std::move(communicator)),
      rank_(nb::cast<int>(object_.attr("rank"))),
      size_(nb::cast<int>(object_.attr("size"))),
      host_(nb::cast<std::string>(object_.attr("host"))) {}

PythonCommunicator::~PythonCommunicator() {
  if (!nb::is_alive()) {
    static_cast<void>(object_.release());
    return;
  }
  const GilAcquire acquired;
  object_.reset();
}

void PythonCommunicator::set_deadline(std::chrono::milliseconds deadline) {
  static_cast<void>(WithGil([&] {
    const bool is_limited = deadline != kForever;
    const double seconds = std::chrono::duration<double>(deadline).count();
    object_.attr("set_deadline")(is_limited ? nb::cast(seconds) : nb::none());
  }));
}

Status PythonCommunicator::Barrier() {
  return WithGil([&] { object_.attr("barrier")(); });
}

Status PythonCommunicator::Broadcast(Bytes& bytes, int root) {
  const auto received = WithGil([&] {
    const nb::object sent = rank_ == root ? ViewOf(bytes) : nb::none();
    const nb::object result = object_.attr("broadcast")(sent, root);
    return rank_ == root ? Bytes() : CopyOf(result);
  });
  if (!received.ok()) return received.error();
  if (rank_ != root) bytes = *received;
  return {};
}

Result<std::vector<Bytes>> PythonCommunicator::Gather(ByteSpan bytes, int root) {
  return WithGil([&] {
    const nb::object result = object_.attr("gather")(ViewOf(bytes), root);
    return rank_ == root ? MessagesOf(result, size_) : std::vector<Bytes>();
  });
}

Result<std::vector<Bytes>> PythonCommunicator::AllGather(ByteSpan bytes) {
  return WithGil([&] { return MessagesOf(object_.attr("all_gather")(ViewOf(bytes)), size_); });
}

Result<std::vector<Bytes>> PythonCommunicator::AllToAll(std::vector<Bytes> outgoing) {
  return WithGil([&] {
    nb::list messages;
    for (const Bytes& bytes : outgoing) messages.append(ViewOf(bytes));
    return MessagesOf(object_.attr("all_to_all")(messages), size_);
  });
}

Result<std::vector<std::uint64_t>> PythonCommunicator::AllReduceMax(
    const std::vector<std::uint64_t>& values) {
  return WithGil([&] {
    auto greatest = nb::cast<std::vector<std::uint64_t>>(object_.attr("all_reduce_max")(values));
    if (greatest.size() == values.size()) return greatest;
    throw std::invalid_argument("all_reduce_max returned " + std::to_string(greatest.size()) +
                                " numbers, expected " + std::to_string(values.size()));
  });
}

Result<std::unique_ptr<BackgroundCommunicator>> PythonCommunicator::DuplicateForBackground() {
  return WithGil([&]() -> std::unique_ptr<BackgroundCommunicator> {
    return std::make_unique<InBackground>(
        std::make_unique<PythonCommunicator>(object_.attr("duplicate_for_background")()));
  });
}

void PythonCommunicator::Interrupt(const Status& why) {
  if (!nb::is_alive()) return;
  static_cast<void>(WithGil([&] { object_.attr("interrupt")(Text(why.ToString())); }));
}

std::function<void()> PythonCommunicator::InterruptedBySignal() {
  return [this] { Interrupt(Status(Code::kComm, "a signal handler raised an exception")); };
}

void BindCommunicator(nb::module_& m) {
  m.def(
      "encode_call",
      [](const std::string& text, std::vector<std::pair<std::string, std::string>> arguments,
         const std::string& host) {
        return BytesOf(detail::EncodeCall({text, std::move(arguments)}, host));
      },
      nb::arg("text"), nb::arg("arguments"), nb::arg("host"),
      "Encodes the call of a rank as a message. Messages of equal calls differ only in the host.");
  m.def(
      "compare_calls",
      [](const std::vector<nb::bytes>& calls) {
        std::vector<Bytes> messages;
        for (const nb::bytes& call : calls) messages.push_back(CopyOf(call));
        Check(detail::CompareCalls(messages));
      },
      nb::arg("calls"),
      "Raises InvalidArgumentError if the call of a rank differs from that of rank 0.");
  m.def(
      "encode_error",
      [](nb::handle error, int rank, const std::string& host) {
        return BytesOf(detail::EncodeError(Status(StatusOf(error).AtRank(rank, host))));
      },
      nb::arg("error"), nb::arg("rank"), nb::arg("host"),
      nb::sig("def encode_error(error: BaseException, rank: int, host: str) -> bytes"),
      "Encodes the error of a rank as a message for the others. Keeps the rank that the error "
      "names.");
  m.def(
      "decode_error",
      [](const nb::bytes& bytes) { return ErrorOf(detail::DecodeError(SpanOf(bytes))); },
      nb::arg("message"), nb::sig("def decode_error(message: bytes) -> BaseException"));
}

}  // namespace sealpoint::python
