// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMM_AGREE_H_
#define SEALPOINT_LIB_COMM_AGREE_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::comm {

// True if the communicator failed (Comm, Timeout), so that the ranks may no longer be in step.
// After that no collective is safe: it may pair with another one of a rank that is ahead or behind.
bool IsCommFailure(const Status& status);

// The error with which a rank takes part in a call that it makes fail. Comm and Timeout become
// Cancelled: they are of a communicator whose ranks may be anywhere, and these ranks are here.
Status OwnFailure(const Status& failure);

// Adds the operation in progress, such as "save of step 7 to runs/a, phase agree", and this rank to
// a failure of the communicator. Returns other statuses unchanged.
Status DescribeCommFailure(const Communicator& comm, Status status, std::string_view during);

// One Broadcast of either a value or the error that `root` has instead. `at_root` is read on the
// root only. Every rank gets the same result; an error has the root's rank and host as its place.
// All ranks must call it.
Result<Bytes> BroadcastResult(Communicator& comm, int root, Result<Bytes> at_root);

// AgreeOnStatus with the two kinds of failure apart.
struct Agreement {
  Status status{};  // that of all ranks, if the communicator did not fail
  Status broken{};  // failure of the communicator, regardless of the local status
};
// Each rank also passes as many numbers in `maxima`; they become the greatest of all ranks.
Agreement Agree(Communicator& comm, const Status& local_status,
                std::span<std::uint64_t> maxima = {});

// Agree and AllGather in one exchange.
struct Gathered {
  Agreement agreement{};
  std::vector<Bytes> all{};  // by rank, if all ranks succeeded
};
Gathered AgreeAndGather(Communicator& comm, const Status& local_status, const Bytes& bytes);

// The message of `comm`'s rank for another rank, which decodes it: a value, or an error with this
// rank as its place. Comm if the bytes of `rank` encode neither.
Bytes EncodeResult(const Communicator& comm, Result<Bytes> result);
Result<Bytes> DecodeResult(Bytes message, int rank);

}  // namespace sealpoint::internal::comm

#endif  // SEALPOINT_LIB_COMM_AGREE_H_
