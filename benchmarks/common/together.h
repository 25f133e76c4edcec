// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_BENCHMARKS_COMMON_TOGETHER_H_
#define SEALPOINT_BENCHMARKS_COMMON_TOGETHER_H_

#include <cstdlib>

#include "benchmarks/common/paired.h"
#include "sealpoint/communicator.h"

namespace sealpoint::bench {

// The seconds between two barriers, which are those of the slowest rank.
template <typename Body>
double TimeTogether(Communicator& comm, const Body& body) {
  if (!comm.Barrier().ok()) std::abort();
  const Stopwatch watch;
  body();
  if (!comm.Barrier().ok()) std::abort();
  return watch.seconds();
}

}  // namespace sealpoint::bench

#endif  // SEALPOINT_BENCHMARKS_COMMON_TOGETHER_H_
