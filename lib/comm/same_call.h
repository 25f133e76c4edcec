// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMM_SAME_CALL_H_
#define SEALPOINT_LIB_COMM_SAME_CALL_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::comm {

// Properties that all ranks must have in common when they begin a collective call.
struct CollectiveCall {
  struct Argument {
    std::string_view name;
    std::string value;  // as text, for the message
  };
  std::string_view kind;                // "save", "load", …
  std::vector<Argument> arguments;      // the first ones identify the save or load
  std::string_view rule{};              // that is broken if an argument differs; empty: none
  std::size_t named_arguments_max = 1;  // number of arguments named together with the kind
};

// Numbers that the ranks reduce to the maximum in the same message.
inline constexpr std::size_t kCallFlagCount = 4;
using CallFlags = std::array<std::uint64_t, kCallFlagCount>;

// The first exchange of a collective call of the library: one AllReduceMax, of as many numbers
// whichever call it is, so that calls that do not match meet in it and end here. All ranks call it.
// `has_failed`: this rank only takes part so that the others hear of its error, which a flag
// announces; its arguments, which may be the error, are not compared.
//
// Returns the maxima of the flags. Errors, the same on all ranks, which stay in step with each
// other: InvalidArgument (the ranks make different calls, or pass different arguments; names ranks
// and values; costs an AllGather). Besides: Comm, Timeout.
Result<CallFlags> BeginCall(Communicator& comm, const CollectiveCall& call,
                            const CallFlags& flags = {}, bool has_failed = false);

// BeginCall for a call that has no flags to reduce. `failure`: of this rank, with which the call
// then fails on all ranks. No exchange where the caller of the library has compared the call
// already (Communicator::calls_are_compared).
Status CheckSameCall(Communicator& comm, const CollectiveCall& call, const Status& failure = {});

}  // namespace sealpoint::internal::comm

#endif  // SEALPOINT_LIB_COMM_SAME_CALL_H_
