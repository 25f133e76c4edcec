// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMM_HOST_NAME_H_
#define SEALPOINT_LIB_COMM_HOST_NAME_H_

#include <string>

namespace sealpoint::internal::comm {

// The name of this machine; "unknown" if the system does not report it.
std::string HostName();

}  // namespace sealpoint::internal::comm

#endif  // SEALPOINT_LIB_COMM_HOST_NAME_H_
