// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_CONFORMANCE_LOAD_ALL_H_
#define SEALPOINT_TESTS_CONFORMANCE_LOAD_ALL_H_

#include "sealpoint/checkpoint.h"
#include "tests/conformance/corpus.h"

namespace sealpoint::testing {

// Loads all tensors in one read, then each object. The first error, or what was loaded.
Result<CorpusContent> LoadAll(const Checkpoint& checkpoint);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CONFORMANCE_LOAD_ALL_H_
