// SPDX-License-Identifier: Apache-2.0
// Goes through every function of sealpoint.h as a program in C does, in a new directory below
// $TMPDIR that it leaves there. The names of tests to run alone may be given.

#include "check.h"

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } tests[] = {
      {"values", test_values},        {"structs", test_structs}, {"read", test_read},
      {"damage", test_damage},        {"dlpack", test_dlpack},   {"verify", test_verify},
      {"series", test_series},        {"writer", test_writer},   {"threads", test_threads},
      {"saver", test_saver},          {"storage", test_storage}, {"many_ranks", test_many_ranks},
      {"attributes", test_attributes}};
  size_t i;
  int k;
  for (k = 1; k < argc; ++k) {
    if (argv[k][0] != '-') continue;
    fprintf(stderr, "usage: %s [TEST...]\n", argv[0]);
    return 2;
  }
  make_work_dir();
  for (i = 0; i < sizeof tests / sizeof tests[0]; ++i) {
    int named = argc == 1;
    for (k = 1; k < argc; ++k) named = named || strcmp(argv[k], tests[i].name) == 0;
    if (!named) continue;
    printf("%s\n", tests[i].name);
    fflush(stdout);
    tests[i].run();
  }
  printf("%d failures\n", failure_count);
  return failure_count == 0 ? 0 : 1;
}
