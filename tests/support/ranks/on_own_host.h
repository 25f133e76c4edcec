// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_RANKS_ON_OWN_HOST_H_
#define SEALPOINT_TESTS_SUPPORT_RANKS_ON_OWN_HOST_H_

#include <string>

#include "tests/support/ranks/forwarding_communicator.h"

namespace sealpoint::testing {

// Each rank on a host of its own: payload goes through the communicator, not through memory that
// ranks of a host share.
class OnOwnHost : public ForwardingCommunicator {
 public:
  explicit OnOwnHost(Communicator& inner)
      : ForwardingCommunicator(inner), host_("host" + std::to_string(inner.rank())) {}
  const std::string& host() const override { return host_; }

 private:
  std::string host_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_RANKS_ON_OWN_HOST_H_
