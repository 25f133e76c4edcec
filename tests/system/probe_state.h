// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SYSTEM_PROBE_STATE_H_
#define SEALPOINT_TESTS_SYSTEM_PROBE_STATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/declaration.h"

namespace sealpoint::testing {

// The state of one rank at one step: rows of "w", a replica of "shared", an object, an empty
// tensor. The bytes follow from name and step, so that any later process can check them.
class ProbeState {
 public:
  // Each rank has `row_count` rows of 1 KiB.
  ProbeState(int rank, int size, std::uint64_t row_count, std::uint64_t step);
  ProbeState(const ProbeState&) = delete;
  ProbeState& operator=(const ProbeState&) = delete;

  const Sources& sources() const { return *sources_; }

 private:
  Declaration declaration_;
  std::vector<Bytes> memory_;
  std::unique_ptr<Sources> sources_;
};

// "" if every tensor and object of the checkpoint is the one of its step, else what is wrong.
std::string FindWrongBytes(const std::string& directory);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SYSTEM_PROBE_STATE_H_
