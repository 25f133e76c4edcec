// SPDX-License-Identifier: Apache-2.0
//
// Proves that no damage of a whole checkpoint makes opening, verifying or loading crash, take
// memory without bound or blame anything but the bytes, and that what verification calls committed
// loads.
#include "fuzz/support/check_directory.h"
#include "fuzz/support/damage.h"
#include "fuzz/support/target.h"

// The input names a checkpoint and a list of damages; see fuzz/support/damage.h.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sealpoint;
  fuzz::CheckDirectory(fuzz::MakeDamaged(fuzz::AsInput(data, size)));
  return 0;
}
