// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_STORAGE_PLACE_H_
#define SEALPOINT_TESTS_SUPPORT_STORAGE_PLACE_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

// Where a suite runs: as usual or, if SEALPOINT_TEST_PLACE is "objects", once more in an object
// store in memory, as another entry of ctest.

namespace sealpoint::testing {

inline bool IsInObjects() {
  const char* const place = std::getenv("SEALPOINT_TEST_PLACE");
  return place != nullptr && std::string_view(place) == "objects";
}

inline std::string InPlace(const std::string& path) {
  return IsInObjects() ? "mem://bucket/" + path : path;
}

// Why the running case makes no sense in an object store, by a table of names and reasons; empty if
// it does, or if this is none.
inline std::string WhyNotHere(const std::map<std::string, std::string>& not_in_objects) {
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  const auto found = not_in_objects.find(std::string(test->test_suite_name()) + "." + test->name());
  return IsInObjects() && found != not_in_objects.end() ? found->second : "";
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_STORAGE_PLACE_H_
