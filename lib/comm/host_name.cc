// SPDX-License-Identifier: Apache-2.0
#include "lib/comm/host_name.h"

#include <unistd.h>

#include <array>

namespace sealpoint::internal::comm {

std::string HostName() {
  std::array<char, 256> name = {};
  // One byte less than the array has: a name that was cut need not be terminated.
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

}  // namespace sealpoint::internal::comm
