// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_FUZZ_SUPPORT_FOREIGN_SEEDS_H_
#define SEALPOINT_FUZZ_SUPPORT_FOREIGN_SEEDS_H_

#include <string>
#include <utility>
#include <vector>

namespace sealpoint::fuzz {

// Inputs that fuzz_foreign starts from, with names: small pickles of states and of metadata.
std::vector<std::pair<std::string, std::string>> ForeignSeeds();

}  // namespace sealpoint::fuzz

#endif  // SEALPOINT_FUZZ_SUPPORT_FOREIGN_SEEDS_H_
