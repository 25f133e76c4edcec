// SPDX-License-Identifier: Apache-2.0
// Verifies a checkpoint, lists its tensors, and prints the first elements of one.
//
//   cc list.c $(pkg-config --cflags --libs sealpoint-c) -o list
//   ./list runs/a/step-000000000100-1f2e3d4c layers.0.weight

#include <inttypes.h>
#include <sealpoint.h>
#include <stdio.h>
#include <string.h>

static sealpoint_string str(const char* text) {
  const sealpoint_string string = {text, strlen(text)};
  return string;
}

// Prints an error and frees it.
static int failed(sealpoint_error* error) {
  fprintf(stderr, "%s\n", sealpoint_error_text(error).data);
  sealpoint_error_free(error);
  return 1;
}

static int print_first(const sealpoint_checkpoint* checkpoint, sealpoint_tensor_info info) {
  static const uint64_t start[SEALPOINT_NDIM_MAX] = {0};
  uint64_t extent[SEALPOINT_NDIM_MAX];  // of the box: one row, at most four elements of it
  float values[4];
  sealpoint_region box;
  sealpoint_destination to;
  sealpoint_error* error;
  sealpoint_init(&box, sizeof box);
  sealpoint_init(&to, sizeof to);
  for (uint32_t i = 0; i < info.ndim; ++i) extent[i] = 1;
  const uint64_t last = info.ndim == 0 ? 1 : info.shape[info.ndim - 1];
  const uint64_t count = last < 4 ? last : 4;
  if (info.ndim > 0) extent[info.ndim - 1] = count;
  box.ndim = info.ndim;
  box.offset = start;
  box.extent = extent;
  to.dtype = SEALPOINT_DTYPE_F32;  // another dtype would be an error, not garbage
  to.data = values;
  to.size_bytes = count * sizeof values[0];
  if (sealpoint_checkpoint_read_tensor(checkpoint, info.name, &box, &to, NULL, &error)) {
    return failed(error);
  }
  for (uint64_t i = 0; i < count; ++i) printf(" %g", values[i]);
  printf("\n");
  return 0;
}

int main(int argc, char** argv) {
  sealpoint_error* error;
  sealpoint_verify_report* report;
  sealpoint_verify_info verified;
  sealpoint_checkpoint* checkpoint;
  sealpoint_tensor_info info;
  if (argc < 2) return fprintf(stderr, "usage: %s CHECKPOINT [TENSOR]\n", argv[0]), 2;
  sealpoint_init(&verified, sizeof verified);
  sealpoint_init(&info, sizeof info);
  if (sealpoint_verify(str(argv[1]), NULL, &report, &error)) return failed(error);
  sealpoint_verify_report_get_info(report, &verified, NULL);
  printf("%s, %" PRIu64 " bytes checked\n", sealpoint_verdict_name(verified.verdict).data,
         verified.bytes_checked);
  sealpoint_verify_report_free(report);

  if (sealpoint_checkpoint_open(str(argv[1]), NULL, &checkpoint, &error)) return failed(error);
  for (uint64_t i = 0; !sealpoint_checkpoint_tensor(checkpoint, i, &info, NULL); ++i) {
    printf("%.*s %s [", (int)info.name.size, info.name.data, sealpoint_dtype_name(info.dtype).data);
    for (uint32_t d = 0; d < info.ndim; ++d) printf("%s%" PRIu64, d ? ", " : "", info.shape[d]);
    printf("]\n");
  }
  int status = 0;
  if (argc > 2) {
    status = sealpoint_checkpoint_find_tensor(checkpoint, str(argv[2]), &info, &error)
                 ? failed(error)
                 : print_first(checkpoint, info);
  }
  sealpoint_checkpoint_free(checkpoint);
  return status;
}
