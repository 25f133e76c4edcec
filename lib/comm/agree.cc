// SPDX-License-Identifier: Apache-2.0
#include "lib/comm/agree.h"

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

Status DescribeCommFailure(const Communicator& comm, Status status, std::string_view during) {
  if (!IsCommFailure(status)) return status;
  return std::move(status).Prefixed(during).AtRank(comm.rank(), comm.host());
}

// The root broadcasts even if it has an error. Returning early instead would leave the other ranks
// in the broadcast, or, worse, let them pair it with the next collective of the root and take those
// bytes for theirs.
Result<Bytes> BroadcastResult(Communicator& comm, int root, Result<Bytes> at_root) {
  const bool is_root = comm.rank() == root;
  Bytes message;
  if (is_root && at_root.ok()) {
    message = std::move(at_root).value();
    message.push_back(kIsValue);
  } else if (is_root) {
    message = EncodeStatus(Status(std::move(at_root).error().AtRank(root, comm.host())));
    message.push_back(kIsError);
  }
  SEALPOINT_RETURN_IF_ERROR(comm.Broadcast(message, root));
  if (message.empty()) return DecodeError(message, root);
  const std::byte kind = message.back();
  message.pop_back();
  if (kind == kIsValue) return message;
  return DecodeError(message, root);
}

// Two rounds, and not one gather of all errors, so that the usual case, success everywhere, costs
// one small all-reduce at any number of ranks. All ranks compute the same maximum and hence the
// same root, so that all take part in the broadcast or none does.
Agreement Agree(Communicator& comm, const Status& local_status) {
  const auto size = static_cast<std::uint64_t>(comm.size());
  const auto rank = static_cast<std::uint64_t>(comm.rank());
  // The lowest rank that failed contributes the greatest number; zero means success.
  Result<std::vector<std::uint64_t>> worst =
      comm.AllReduceMax({local_status.ok() ? 0 : size - rank});
  if (!worst.ok()) return {.broken = std::move(worst).error()};
  if (worst->size() != 1 || worst->front() > size) {
    std::string found = StrCat(worst->size(), " numbers");
    if (worst->size() == 1) found = StrCat(worst->front());
    return {.broken = MakeError(Code::kComm, "all-reduce of one number gave ", found,
                                ", expected one of at most ", size)};
  }
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
