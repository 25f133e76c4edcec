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

// What a stopped thread is about to ask of the kernel.
struct RawCall {
  std::uint64_t number = 0;
  std::array<std::uint64_t, 6> arguments{};
};

struct TracedCall {
  std::string name{};
  std::string path{};    // the file it is about; of two, the new name; empty where there is none
  bool changes = false;  // could change what is stored, or whether it is durable
};

// Nothing for calls that have nothing to do with files. `thread` is stopped.
std::optional<TracedCall> DescribeCall(pid_t thread, const RawCall& call);

// Which calls count: those below a directory, of these names (none: all that change something).
struct CallFilter {
  std::string directory{};
  std::vector<std::string> names{};

  bool Matches(const TracedCall& call) const;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SYSTEM_TRACED_CALL_H_
