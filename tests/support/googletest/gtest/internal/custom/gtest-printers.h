// SPDX-License-Identifier: Apache-2.0
//
// GoogleTest includes the file of this name itself, so that it is the place for printers that all
// sources of a test must agree on. A Status is printed as text instead of its bytes.
#ifndef SEALPOINT_TESTS_SUPPORT_GOOGLETEST_GTEST_INTERNAL_CUSTOM_GTEST_PRINTERS_H_
#define SEALPOINT_TESTS_SUPPORT_GOOGLETEST_GTEST_INTERNAL_CUSTOM_GTEST_PRINTERS_H_

#include <ostream>

#include "sealpoint/status.h"

namespace sealpoint {

inline void PrintTo(const Status& status, std::ostream* out) { *out << status.ToString(); }

}  // namespace sealpoint

#endif  // SEALPOINT_TESTS_SUPPORT_GOOGLETEST_GTEST_INTERNAL_CUSTOM_GTEST_PRINTERS_H_
