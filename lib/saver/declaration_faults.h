// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_DECLARATION_FAULTS_H_
#define SEALPOINT_LIB_SAVER_DECLARATION_FAULTS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// Faults of declarations that one rank found among the names that it owns.
class DeclarationFaults {
 public:
  // Success adds nothing.
  void Add(std::string_view name, const Status& status);

  // Collective. Success if no rank found a fault. Otherwise returns on all ranks the fault with the
  // least name and the number of other faults; the place is the rank that caused it, if any, never
  // the owner that found it.
  Status Agree(Communicator& comm) const;

 private:
  std::uint64_t count_ = 0;
  std::string name_;  // the least of them
  Status first_;
};

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_DECLARATION_FAULTS_H_
