// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_ARRIVAL_CHECK_H_
#define SEALPOINT_READERS_COLLECTIVE_ARRIVAL_CHECK_H_

#include <memory>
#include <vector>

#include "lib/device/device_runtime.h"
#include "lib/metadata/metadata.h"
#include "readers/load/contract.h"
#include "sealpoint/communicator.h"
#include "sealpoint/fingerprint.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::collective {

// Compares the destinations of all ranks with the stored fingerprints. The fingerprints of the
// regions of a tensor add up to the stored one if the ranks request each element once; equal
// regions are replicas, which count once and are compared with each other. Rank (i mod size) adds
// up tensor i. Borrows all arguments.
class ArrivalCheck {
 public:
  ArrivalCheck(Communicator& comm, const metadata::Metadata& index,
               const load::ResolvedRequest& local_request)
      : comm_(comm), index_(index), local_request_(local_request) {}

  // Whether this rank's items can be compared. Local. Errors: Unsupported (a tensor without a
  // stored fingerprint, steps, a conversion).
  Status CheckItems() const;
  // Whether the regions of all ranks add up to whole tensors. Collective. Errors, the same on all
  // ranks: Unsupported, Comm, Timeout.
  Status CheckRegions() const;
  // Compares the memory, on this number of threads. Collective. Errors, the same on all ranks:
  // Corrupt, Device, Comm, Timeout.
  Status CheckMemory(int threads, const std::shared_ptr<device::DeviceRuntime>& devices) const;

 private:
  enum class Stage { kRegions, kMemory };
  // Sends the regions of this rank to the owners of their tensors, which examine them.
  // `fingerprints`: of the destinations, in the order of the items; empty in the stage kRegions.
  Status Exchange(Stage stage, const std::vector<Fingerprint>& fingerprints) const;

  Communicator& comm_;
  const metadata::Metadata& index_;
  const load::ResolvedRequest& local_request_;
};

}  // namespace sealpoint::internal::collective

#endif  // SEALPOINT_READERS_COLLECTIVE_ARRIVAL_CHECK_H_
