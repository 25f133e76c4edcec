// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_C_CHECK_H_
#define SEALPOINT_TESTS_C_CHECK_H_

// What the tests in C share. A failed check is printed and counted; the test goes on.

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "sealpoint.h"

extern int failure_count;  // of all tests; threads only add to it when something is wrong
extern char work_dir[256];

void fail(const char* file, int line, const char* what, const sealpoint_error* error);

#define CHECK(condition)                                          \
  do {                                                            \
    if (!(condition)) fail(__FILE__, __LINE__, #condition, NULL); \
  } while (0)

// The call uses `error`, a variable of the test, which is freed here.
#define CHECK_CODE(code, call)                                             \
  do {                                                                     \
    const int32_t code_of_call = (call);                                   \
    if (code_of_call != (code) || sealpoint_error_code(error) != (code)) { \
      fail(__FILE__, __LINE__, #call, error);                              \
    }                                                                      \
    sealpoint_error_free(error);                                           \
    error = NULL;                                                          \
  } while (0)
#define CHECK_OK(call) CHECK_CODE(SEALPOINT_OK, call)

// And the words: `text` is part of the line for people.
#define CHECK_ERROR(code, text, call)                         \
  do {                                                        \
    const int32_t code_of_call = (call);                      \
    if (code_of_call != (code) || !has_text(error, (text))) { \
      fail(__FILE__, __LINE__, #call, error);                 \
    }                                                         \
    sealpoint_error_free(error);                              \
    error = NULL;                                             \
  } while (0)
int has_text(const sealpoint_error* error, const char* text);

sealpoint_string str(const char* text);
int equals(sealpoint_string a, const char* b);
// Sets work_dir to a new directory below $TMPDIR, or ends the program.
void make_work_dir(void);
// work_dir/name, in one of a few buffers that take turns.
sealpoint_string in_work_dir(const char* name);

// A committed checkpoint of step 7 in a new directory: "w" f32 [6, 4] = 0, 1, 2, …; "x.bias" i64
// [3] = 7, 8, 9; "empty" f32 [0, 2]; "s" f64 []; the object "rng" = "seed". One blob per process.
void write_checkpoint(sealpoint_string directory, const sealpoint_commit_options* options);
// Changes one byte of the file in `directory` whose name ends so.
void damage(sealpoint_string directory, const char* ending, long offset_from_start);

void test_values(void);
void test_structs(void);
void test_read(void);
void test_damage(void);
void test_dlpack(void);
void test_verify(void);
void test_series(void);
void test_writer(void);
void test_threads(void);
void test_saver(void);
void test_storage(void);
void test_many_ranks(void);
void test_attributes(void);

#endif  // SEALPOINT_TESTS_C_CHECK_H_
