// SPDX-License-Identifier: Apache-2.0
//
// Counts the memory of this process: malloc and related functions (which operator new and zstd use)
// and anonymous mappings (the staging pools). Linking allocation_watch.cc replaces those of the C
// library. Does not work under a sanitizer, which has its own allocator.
#ifndef SEALPOINT_TESTS_SUPPORT_PROCESS_ALLOCATION_WATCH_H_
#define SEALPOINT_TESTS_SUPPORT_PROCESS_ALLOCATION_WATCH_H_

#include <cstdint>

namespace sealpoint::testing {

struct AllocationPeak {
  std::uint64_t live_bytes = 0;     // peak above what was allocated at the beginning
  std::uint64_t largest_bytes = 0;  // of a single allocation or mapping
};

bool CanWatchAllocations();
// All threads are counted. One watch at a time.
void BeginAllocationWatch();
AllocationPeak EndAllocationWatch();

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_PROCESS_ALLOCATION_WATCH_H_
