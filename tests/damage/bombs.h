// SPDX-License-Identifier: Apache-2.0
//
// Small files that promise much.
#ifndef SEALPOINT_TESTS_DAMAGE_BOMBS_H_
#define SEALPOINT_TESTS_DAMAGE_BOMBS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/damage/storage.h"

namespace sealpoint::testing {

// Named, and made when asked for.
std::vector<std::pair<std::string, std::function<DamagedFiles()>>> Bombs();

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_DAMAGE_BOMBS_H_
