// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_FAULTS_FAULT_KINDS_H_
#define SEALPOINT_TESTS_FAULTS_FAULT_KINDS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/storage/failing_storage.h"

// Every way in which every operation of a storage can fail, and the loop over all of them: the
// first, the second, ... operation of its kind fails, until a run ends without an injected fault.

namespace sealpoint::testing {

// Each error that each operation of writing, committing and removing can report, once and from then
// on; an error of an operation that was done all the same; a write that stores a part. The last one
// is a storage that dies: from one operation on all fail.
std::vector<StorageFault> SaveFaults();
// The same for reading: open, stat, list and read; a read that fills in a part.
std::vector<StorageFault> ReadFaults();

// "the 3rd write fails with NoSpace (injected), 100 bytes of it done, and all later ones"
std::string Describe(const StorageFault& fault);

struct FaultCounts {
  std::uint64_t operations = 0;  // places at which some fault was injected
  std::uint64_t faults = 0;      // runs in which a fault was injected
};

// Calls run(fault) with fault.nth = 1, 2, ... for each fault, until it returns false: no operation
// was left to fail. Ends at the first failed expectation.
FaultCounts ForEachPlace(const std::vector<StorageFault>& faults,
                         const std::function<bool(const StorageFault&)>& run);

// "" if no file was written, synced or closed after one of these operations failed on it, and none
// was closed twice (R-CMT-13); else the offence.
std::string FindUseAfterFailure(const std::vector<StorageCall>& calls);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_FAULTS_FAULT_KINDS_H_
