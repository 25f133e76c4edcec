// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void test_values(void) {
  sealpoint_error* error = NULL;
  sealpoint_id id, again;
  char text[SEALPOINT_ID_TEXT_SIZE + 1] = {0};
  sealpoint_string far = {"x", UINT64_MAX};
  int32_t code;

  CHECK(sealpoint_abi_version() == SEALPOINT_ABI_VERSION);
  CHECK(sealpoint_version().size >= 5);
  CHECK(equals(sealpoint_code_name(SEALPOINT_CORRUPT), "Corrupt"));
  CHECK(equals(sealpoint_code_name(-1), "Unknown"));
  for (code = 0; code <= SEALPOINT_INTERNAL; ++code) {
    CHECK(!equals(sealpoint_code_name(code), "Unknown"));
  }
  CHECK(equals(sealpoint_code_name(SEALPOINT_INTERNAL), "Internal"));
  CHECK(equals(sealpoint_dtype_name(SEALPOINT_DTYPE_BF16), "bf16"));
  CHECK(equals(sealpoint_dtype_name(SEALPOINT_DTYPE_COMPLEX32), "c32"));
  CHECK(equals(sealpoint_dtype_name(65536 + SEALPOINT_DTYPE_BF16), "unknown"));
  CHECK(sealpoint_dtype_size_bytes(SEALPOINT_DTYPE_COMPLEX128) == 16);
  CHECK(sealpoint_dtype_size_bytes(65536 + SEALPOINT_DTYPE_BF16) == 0);
  CHECK(sealpoint_dtype_of_name(str("f32")) == SEALPOINT_DTYPE_F32);
  CHECK(sealpoint_dtype_of_name(str("float")) == SEALPOINT_DTYPE_NONE);
  CHECK(equals(sealpoint_verdict_name(SEALPOINT_VERDICT_CORRUPT), "corrupt"));
  CHECK(equals(sealpoint_verdict_name(99), "unknown"));

  CHECK_OK(sealpoint_id_random(&id, &error));
  sealpoint_id_to_text(&id, text);
  CHECK(strlen(text) == SEALPOINT_ID_TEXT_SIZE);
  CHECK_OK(sealpoint_id_from_text(str(text), &again, &error));
  CHECK(memcmp(&id, &again, sizeof id) == 0);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_id_from_text(str("12"), &again, &error));
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "more than memory",
              sealpoint_id_from_text(far, &again, &error));
  far.data = NULL;
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "NULL", sealpoint_id_from_text(far, &again, &error));
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_id_random(NULL, &error));

#ifndef SANITIZED  // under which such a request ends the program
  {
    // More than there is: no exception gets out, and the error needs no memory.
    sealpoint_checkpoint* checkpoint = NULL;
    far.data = text;
    far.size = (uint64_t)1 << 50;
    CHECK_ERROR(SEALPOINT_INTERNAL, "out of memory",
                sealpoint_checkpoint_open(far, NULL, &checkpoint, &error));
    CHECK(checkpoint == NULL);
  }
#endif

  // No error object is an error that is not heard of, and an object of nothing is empty.
  CHECK(sealpoint_id_random(NULL, NULL) == SEALPOINT_INVALID_ARGUMENT);
  CHECK(sealpoint_error_code(NULL) == SEALPOINT_OK);
  CHECK(sealpoint_error_text(NULL).size == 0 && sealpoint_error_message(NULL).size == 0);
  CHECK(sealpoint_error_offset(NULL, NULL) == 0 && sealpoint_error_rank(NULL, NULL) == 0);
  CHECK(sealpoint_error_outcome_is_unknown(NULL) == 0);
  sealpoint_error_free(NULL);
  sealpoint_buffer_free(NULL);
  CHECK(sealpoint_buffer_bytes(NULL).size == 0);
  sealpoint_init(NULL, 8);
  sealpoint_id_to_text(NULL, text);

  // What was in the variable before is not looked at.
  error = (sealpoint_error*)&code;
  CHECK(sealpoint_id_random(&id, &error) == SEALPOINT_OK && error == NULL);
}

// A program that was compiled with a later header: a struct that goes on.
static void test_longer_struct(void) {
  struct {
    sealpoint_open_options now;
    uint64_t later;
  } options;
  struct {
    sealpoint_checkpoint_info now;
    uint64_t later;
  } info;
  sealpoint_error* error = NULL;
  sealpoint_checkpoint* checkpoint = NULL;
  sealpoint_string directory = in_work_dir("structs");
  sealpoint_init(&options, sizeof options);
  CHECK_OK(sealpoint_checkpoint_open(directory, &options.now, &checkpoint, &error));
  memset(&info, 0xff, sizeof info);
  info.now.struct_size = sizeof info;
  CHECK_OK(sealpoint_checkpoint_get_info(checkpoint, &info.now, &error));
  CHECK(info.now.struct_size == sizeof info && info.now.step == 7 && info.later == 0);
  sealpoint_checkpoint_free(checkpoint);
  options.later = 1;
  CHECK_ERROR(SEALPOINT_UNSUPPORTED, "does not support",
              sealpoint_checkpoint_open(directory, &options.now, &checkpoint, &error));
  CHECK(checkpoint == NULL);
  options.later = 0;
  options.now.reserved = 1;
  CHECK_CODE(SEALPOINT_UNSUPPORTED,
             sealpoint_checkpoint_open(directory, &options.now, &checkpoint, &error));
}

void test_structs(void) {
  sealpoint_error* error = NULL;
  sealpoint_checkpoint* checkpoint = NULL;
  sealpoint_open_options options;
  sealpoint_checkpoint_info info;
  sealpoint_string directory = in_work_dir("structs");
  write_checkpoint(directory, NULL);
  test_longer_struct();

  memset(&options, 0, sizeof options);  // never initialised
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "struct_size is 0, expected at least 24",
              sealpoint_checkpoint_open(directory, &options, &checkpoint, &error));
  memset(&options, 0xcd, sizeof options);  // as memory that was used before
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "struct_size is 3452816845",
              sealpoint_checkpoint_open(directory, &options, &checkpoint, &error));
  sealpoint_init(&options, sizeof options);
  options.memory_budget_bytes = 1;
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_checkpoint_open(directory, &options, &checkpoint, &error));
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_checkpoint_open(directory, NULL, NULL, &error));
  options.memory_budget_bytes = 1 << 20;
  options.skip_file_check = 1;
  options.direct_io = 3;
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "direct_io is 3, expected 0, 1 or 2",
              sealpoint_checkpoint_open(directory, &options, &checkpoint, &error));
  options.direct_io = 1;
  CHECK_OK(sealpoint_checkpoint_open(directory, &options, &checkpoint, &error));
  memset(&info, 0, sizeof info);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_checkpoint_get_info(checkpoint, &info, &error));
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_checkpoint_get_info(checkpoint, NULL, &error));
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_checkpoint_get_info(NULL, &info, &error));
  sealpoint_checkpoint_free(checkpoint);
}
