// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SYSTEM_TRACED_CALL_H_
#define SEALPOINT_TESTS_SYSTEM_TRACED_CALL_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sealpoint::testing {

// The system call that a stopped thread is about to make.
struct RawCall {
  std::uint64_t number = 0;
  std::array<std::uint64_t, 6> arguments{};
};

struct TracedCall {
  std::string name{};
  std::string path{};    // the file it is about; of two, the new name; empty if there is none
  bool changes = false;  // could change what is stored, or whether it is durable
};

// Returns nothing for calls that do not concern files. Precondition: `thread` is stopped.
std::optional<TracedCall> DescribeCall(pid_t thread, const RawCall& call);

// The calls that count: those below a directory and with one of these names (none: all calls that
// change something).
struct CallFilter {
  std::string directory{};
  std::vector<std::string> names{};

  bool Matches(const TracedCall& call) const;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SYSTEM_TRACED_CALL_H_
