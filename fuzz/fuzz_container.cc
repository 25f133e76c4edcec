// SPDX-License-Identifier: Apache-2.0
//
// Proves what fuzz_open proves, with every digest, length and pin around the damage right: of
// records, group lists, manifests, trailers, headers, index and marker of a whole checkpoint.
#include "fuzz/support/check_directory.h"
#include "fuzz/support/container.h"
#include "fuzz/support/target.h"

// The input names a checkpoint and a list of changes; see fuzz/support/container.h.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sealpoint;
  fuzz::CheckDirectory(fuzz::MakeContainer(fuzz::AsInput(data, size)));
  return 0;
}
