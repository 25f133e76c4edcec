// SPDX-License-Identifier: Apache-2.0
#include "tests/system/probe_ranks.h"

namespace sealpoint::testing {

std::unique_ptr<Communicator> BeginRank(int /*argc*/, char** /*argv*/) {
  return SelfCommunicator();
}

void EndRanks() {}

int RunOnRank(int /*argc*/, char** /*argv*/, const std::function<int(Communicator&)>& body) {
  return body(*SelfCommunicator());
}

}  // namespace sealpoint::testing
