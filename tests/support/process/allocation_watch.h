// SPDX-License-Identifier: Apache-2.0
//
// Counts the memory of this process: malloc and its kin (with them operator new and zstd) and
// anonymous mappings (the staging pools). Linking allocation_watch.cc puts them in the place of the
// C library's. Not under a sanitizer, which brings an allocator of its own.
#ifndef SEALPOINT_TESTS_SUPPORT_PROCESS_ALLOCATION_WATCH_H_
#define SEALPOINT_TESTS_SUPPORT_PROCESS_ALLOCATION_WATCH_H_

#include <cstdint>

namespace sealpoint::testing {

struct AllocationPeak {
  std::uint64_t live_bytes = 0;     // at the most, above what was there at the beginning
  std::uint64_t largest_bytes = 0;  // of a single allocation or mapping
};

bool CanWatchAllocations();
// All threads are counted. One watch at a time.
void BeginAllocationWatch();
AllocationPeak EndAllocationWatch();

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_PROCESS_ALLOCATION_WATCH_H_
