// SPDX-License-Identifier: Apache-2.0
#include <sealpoint.h>
#include <stdio.h>

int main(void) {
  sealpoint_checkpoint* checkpoint;
  sealpoint_error* error;
  const sealpoint_string nowhere = {"nowhere", 7};
  const int32_t code = sealpoint_checkpoint_open(nowhere, NULL, &checkpoint, &error);
  printf("%s\n", sealpoint_error_text(error).data);
  sealpoint_error_free(error);
  return code == SEALPOINT_NOT_FOUND && sealpoint_abi_version() == SEALPOINT_ABI_VERSION ? 0 : 1;
}
