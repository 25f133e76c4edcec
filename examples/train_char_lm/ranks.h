// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "exchange.h"
#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace char_lm {

// The processes that train together: those that mpirun started (ranks_mpi.cc), or this one alone
// (ranks_alone.cc); which of both is a matter of linking.
class Ranks {
 public:
  // Once in a process.
  static std::unique_ptr<Ranks> Start(int& argc, char**& argv);

  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  // After everything that it made.
  virtual ~Ranks() = default;

  virtual GradientExchange& exchange() = 0;
  virtual sealpoint::Result<std::unique_ptr<sealpoint::Communicator>> MakeCommunicator() = 0;
  // Ends all of them: others may be waiting for this one.
  virtual void Abort(int status) = 0;
};

}  // namespace char_lm
