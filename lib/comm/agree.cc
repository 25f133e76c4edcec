// SPDX-License-Identifier: Apache-2.0
#include "lib/comm/agree.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/comm/status_codec.h"

namespace sealpoint {
namespace internal::comm {
namespace {

// The last byte of a broadcast result says what precedes it.
constexpr std::byte kIsValue{1};
constexpr std::byte kIsError{2};

// The error that was sent; Comm if the bytes do not encode one.
Status DecodeError(ByteSpan bytes, int root) {
  std::optional<Status> status = DecodeStatus(bytes);
  if (status && !status->ok()) return *std::move(status);
  return MakeError(Code::kComm, "message of rank ", root, " is not an error report");
}

}  // namespace

bool IsCommFailure(const Status& status) {
  return status.code() == Code::kComm || status.code() == Code::kTimeout;
}

Status OwnFailure(const Status& failure) {
  if (!IsCommFailure(failure)) return failure;
  return MakeError(Code::kCancelled, failure.message()).AtPath(failure.place().path);
}

Status DescribeCommFailure(const Communicator& comm, Status status, std::string_view during) {
  if (!IsCommFailure(status)) return status;
  return std::move(status).Prefixed(during).AtRank(comm.rank(), comm.host());
}

// The root broadcasts even if it has an error. Returning early instead would leave the other ranks
// in the broadcast, or, worse, let them pair it with the next collective of the root and take those
// bytes for theirs.
Result<Bytes> BroadcastResult(Communicator& comm, int root, Result<Bytes> at_root) {
  Bytes message;
  if (comm.rank() == root) message = EncodeResult(comm, std::move(at_root));
  SEALPOINT_RETURN_IF_ERROR(comm.Broadcast(message, root));
  return DecodeResult(std::move(message), root);
}

Bytes EncodeResult(const Communicator& comm, Result<Bytes> result) {
  const bool is_value = result.ok();
  Bytes message =
      is_value ? std::move(result).value()
               : EncodeStatus(Status(std::move(result).error().AtRank(comm.rank(), comm.host())));
  message.push_back(is_value ? kIsValue : kIsError);
  return message;
}

Result<Bytes> DecodeResult(Bytes message, int rank) {
  if (message.empty()) return DecodeError(message, rank);
  const std::byte kind = message.back();
  message.pop_back();
  if (kind == kIsValue) return message;
  return DecodeError(message, rank);
}

Gathered AgreeAndGather(Communicator& comm, const Status& local_status, const Bytes& bytes) {
  auto messages = comm.AllGather(
      EncodeResult(comm, local_status.ok() ? Result<Bytes>(bytes) : Result<Bytes>(local_status)));
  if (!messages.ok()) return {.agreement = {.broken = std::move(messages).error()}};
  Gathered gathered;
  for (Bytes& message : *messages) {
    auto result = DecodeResult(std::move(message), static_cast<int>(gathered.all.size()));
    if (!result.ok()) return {.agreement = {.status = std::move(result).error()}};
    gathered.all.push_back(std::move(result).value());
  }
  return gathered;
}

// Two rounds, and not one gather of all errors, so that the usual case, success everywhere, costs
// one small all-reduce at any number of ranks. All ranks compute the same maximum and hence the
// same root, so that all take part in the broadcast or none does.
Agreement Agree(Communicator& comm, const Status& local_status, std::span<std::uint64_t> maxima) {
  const auto size = static_cast<std::uint64_t>(comm.size());
  const auto rank = static_cast<std::uint64_t>(comm.rank());
  // The lowest rank that failed contributes the greatest number; zero means success.
  std::vector<std::uint64_t> numbers = {local_status.ok() ? 0 : size - rank};
  numbers.insert(numbers.end(), maxima.begin(), maxima.end());
  Result<std::vector<std::uint64_t>> worst = comm.AllReduceMax(numbers);
  if (!worst.ok()) return {.broken = std::move(worst).error()};
  if (worst->size() != numbers.size() || worst->front() > size) {
    std::string found = StrCat(worst->size(), " numbers");
    if (worst->size() == 1) found = StrCat(worst->front());
    return {.broken = MakeError(Code::kComm, "all-reduce of one number gave ", found,
                                ", expected one of at most ", size)};
  }
  std::copy(worst->begin() + 1, worst->end(), maxima.begin());
  if (worst->front() == 0) return {};

  const int root = static_cast<int>(size - worst->front());
  Bytes report;
  if (comm.rank() == root) {
    report = EncodeStatus(Status(Status(local_status).AtRank(comm.rank(), comm.host())));
  }
  Status sent = comm.Broadcast(report, root);
  if (!sent.ok()) return {.broken = std::move(sent)};
  return {.status = DecodeError(report, root)};
}

}  // namespace internal::comm

// Every rank must come here, whatever its own outcome: this is the only way in which a rank that
// failed may leave a sequence of collectives. A rank that returns before it leaves the others
// waiting until their deadline, and a rank that goes on after a failure here is no longer in step
// with them. If the communicator itself fails, ranks may return different errors; each then prefers
// its own one, which is nearer to the cause.
Status AgreeOnStatus(Communicator& comm, const Status& local_status) {
  internal::comm::Agreement agreement = internal::comm::Agree(comm, local_status);
  if (agreement.broken.ok()) return std::move(agreement.status);
  return local_status.ok() ? std::move(agreement.broken) : local_status;
}

}  // namespace sealpoint
