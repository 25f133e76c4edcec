// SPDX-License-Identifier: Apache-2.0
#include "check.h"

static void count_violation(void* user, const sealpoint_error* violation) {
  CHECK(sealpoint_error_code(violation) == SEALPOINT_CORRUPT);
  ++*(int*)user;
}

static int32_t end_it(void* user, const sealpoint_progress* progress) {
  (void)user;
  CHECK(equals(progress->phase, "verify") && progress->step == SEALPOINT_NO_STEP);
  return 1;
}

void test_verify(void) {
  sealpoint_error* error = NULL;
  sealpoint_verify_report* report = NULL;
  sealpoint_verify_options options;
  sealpoint_verify_info info;
  const sealpoint_error* violation;
  uint64_t offset = 0;
  int heard = 0;
  FILE* foreign;
  sealpoint_string directory = in_work_dir("verify");
  sealpoint_init(&options, sizeof options);
  sealpoint_init(&info, sizeof info);
  write_checkpoint(directory, NULL);
  foreign = fopen(in_work_dir("verify/README").data, "w");
  if (foreign != NULL) fclose(foreign);

  CHECK_OK(sealpoint_verify(directory, NULL, &report, &error));
  CHECK_OK(sealpoint_verify_report_get_info(report, &info, &error));
  CHECK(info.verdict == SEALPOINT_VERDICT_COMMITTED && info.violation_count == 0);
  CHECK(info.step == 7 && info.sequence == 1 && info.tensor_count == 4 && info.object_count == 1);
  CHECK(info.blob_count == 1 && info.chunk_count == 4 && info.bytes_checked > 0);
  CHECK(info.note_count == 1 && sealpoint_verify_report_note(report, 0).size > 0);
  CHECK(sealpoint_verify_report_note(report, 1).size == 0);
  CHECK(sealpoint_verify_report_violation(report, 0) == NULL);
  sealpoint_verify_report_free(report);

  damage(directory, ".blob", 128);  // where the first chunk is
  options.level = SEALPOINT_VERIFY_STRUCTURE;
  options.threads = 2;
  options.on_violation = count_violation;
  options.user = &heard;
  CHECK_OK(sealpoint_verify(directory, &options, &report, &error));
  CHECK_OK(sealpoint_verify_report_get_info(report, &info, &error));
  CHECK(info.verdict == SEALPOINT_VERDICT_COMMITTED && heard == 0);
  sealpoint_verify_report_free(report);
  options.level = SEALPOINT_VERIFY_DEFAULT;
  options.buffered_io = 1;
  CHECK_OK(sealpoint_verify(directory, &options, &report, &error));
  CHECK_OK(sealpoint_verify_report_get_info(report, &info, &error));
  CHECK(info.verdict == SEALPOINT_VERDICT_CORRUPT && info.violation_count == 1 && heard == 1);
  CHECK(info.listed_violation_count == 1);
  violation = sealpoint_verify_report_violation(report, 0);
  CHECK(sealpoint_error_code(violation) == SEALPOINT_CORRUPT);
  CHECK(sealpoint_error_offset(violation, &offset) == 1 && offset == 128);
  CHECK(sealpoint_error_rule(violation).size > 0);
  CHECK(sealpoint_verify_report_violation(report, 1) == NULL);
  sealpoint_verify_report_free(report);

  options.on_progress = end_it;
  CHECK_ERROR(SEALPOINT_CANCELLED, "it returned another number than 0",
              sealpoint_verify(directory, &options, &report, &error));
  CHECK(report == NULL);
  options.level = 4;
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "level is 4, expected at most 3",
              sealpoint_verify(directory, &options, &report, &error));
  CHECK_OK(sealpoint_verify(in_work_dir("nothing"), NULL, &report, &error));
  CHECK_OK(sealpoint_verify_report_get_info(report, &info, &error));
  CHECK(info.verdict == SEALPOINT_VERDICT_UNREADABLE);
  sealpoint_verify_report_free(report);
  sealpoint_verify_report_free(NULL);
  CHECK(sealpoint_verify_report_violation(NULL, 0) == NULL);
  CHECK(sealpoint_verify_report_note(NULL, 0).size == 0);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_verify_report_get_info(NULL, &info, &error));
}

// Commits step `step` into the series and returns its attempt.
static sealpoint_id add_step(const char* series, uint64_t step, const sealpoint_id* parent,
                             uint64_t parent_sequence) {
  sealpoint_error* error = NULL;
  sealpoint_commit_options options;
  char name[SEALPOINT_DIRECTORY_NAME_SIZE], path[128];
  sealpoint_init(&options, sizeof options);
  CHECK_OK(sealpoint_id_random(&options.attempt, &error));
  options.has_step = 1;
  options.step = step;
  if (parent != NULL) options.parent = *parent;
  options.parent_sequence = parent_sequence;
  CHECK_OK(sealpoint_series_directory_name(step, &options.attempt, name, sizeof name, &error));
  snprintf(path, sizeof path, "%s/%s", series, name);
  write_checkpoint(in_work_dir(path), &options);
  return options.attempt;
}

void test_series(void) {
  sealpoint_error* error = NULL;
  sealpoint_series* series = NULL;
  sealpoint_series_entry entry;
  sealpoint_id first, second;
  char name[SEALPOINT_DIRECTORY_NAME_SIZE];
  sealpoint_string path = in_work_dir("series");
  sealpoint_init(&entry, sizeof entry);
  CHECK_OK(sealpoint_series_list(path, &series, &error));
  CHECK(sealpoint_series_count(series) == 0);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_series_get_entry(series, 0, &entry, &error));
  sealpoint_series_free(series);
  CHECK_CODE(SEALPOINT_NOT_FOUND, sealpoint_series_newest(path, 0, &series, &error));

  first = add_step("series", 10, NULL, 0);
  second = add_step("series", 20, &first, 1);
  CHECK_OK(sealpoint_create_directories(in_work_dir("series/step-000000000030-00000000"), &error));
  CHECK_OK(sealpoint_series_list(path, &series, &error));
  CHECK(sealpoint_series_count(series) == 3);
  CHECK_OK(sealpoint_series_get_entry(series, 0, &entry, &error));
  CHECK(entry.step == 20 && entry.sequence == 2 && entry.verdict == SEALPOINT_VERDICT_COMMITTED);
  CHECK(memcmp(&entry.attempt, &second, sizeof second) == 0);
  CHECK(memcmp(&entry.parent, &first, sizeof first) == 0);
  CHECK(entry.problem == NULL && entry.size_bytes > 4096 && entry.is_void == 0);
  CHECK(entry.is_kept == 0 && entry.path.size == path.size + 1 + entry.name.size);
  CHECK_OK(sealpoint_series_get_entry(series, 2, &entry, &error));
  CHECK(entry.verdict == SEALPOINT_VERDICT_UNCOMMITTED);
  CHECK(sealpoint_error_code(entry.problem) == SEALPOINT_UNCOMMITTED);
  sealpoint_series_free(series);

  CHECK_OK(sealpoint_series_newest(path, 0, &series, &error));
  CHECK_OK(sealpoint_series_get_entry(series, 0, &entry, &error));
  CHECK(sealpoint_series_count(series) == 1 && entry.step == 20);
  damage(entry.path, ".index", 100);
  sealpoint_series_free(series);
  CHECK_CODE(SEALPOINT_CORRUPT, sealpoint_series_newest(path, 0, &series, &error));
  CHECK_OK(sealpoint_series_newest(path, 1, &series, &error));
  CHECK(sealpoint_series_count(series) == 2);
  CHECK_OK(sealpoint_series_get_entry(series, 0, &entry, &error));
  CHECK(entry.step == 10);
  CHECK_OK(sealpoint_series_get_entry(series, 1, &entry, &error));
  CHECK(entry.step == 20 && sealpoint_error_code(entry.problem) == SEALPOINT_CORRUPT);
  sealpoint_series_free(series);

  CHECK_CODE(SEALPOINT_IO, sealpoint_series_list(str("/proc/self/status"), &series, &error));
  CHECK(series == NULL);
  CHECK_OK(sealpoint_series_directory_name(UINT64_MAX - 1, &first, name, sizeof name, &error));
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "out_size is 8, expected at least 27",
              sealpoint_series_directory_name(1, &first, name, 8, &error));
  sealpoint_series_free(NULL);
  CHECK(sealpoint_series_count(NULL) == 0);
}

void test_storage(void) {
  sealpoint_error* error = NULL;
  sealpoint_checkpoint* checkpoint = NULL;
  sealpoint_s3_options options;
  sealpoint_string bucket = str("s3://bucket/run");
  CHECK_CODE(SEALPOINT_UNSUPPORTED, sealpoint_checkpoint_open(bucket, NULL, &checkpoint, &error));
  CHECK_CODE(SEALPOINT_UNSUPPORTED, sealpoint_create_directories(bucket, &error));
  CHECK_CODE(SEALPOINT_NOT_FOUND, sealpoint_create_directories(str("/proc/self/no"), &error));
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_register_s3((const sealpoint_s3_options*)memset(&options, 0, sizeof options),
                                   &error));
  sealpoint_init(&options, sizeof options);
  options.endpoint = str("http://127.0.0.1:1");  // where nobody listens
  options.region = str("us-east-1");
  options.no_retries = 1;
  if (sealpoint_register_s3(&options, &error) == SEALPOINT_UNSUPPORTED) {
    CHECK(has_text(error, "built without S3"));
    sealpoint_error_free(error);
    return;
  }
  CHECK(error == NULL);
  {
    // With credentials it is the connection that fails; without, their absence.
    const int32_t code = sealpoint_checkpoint_open(bucket, NULL, &checkpoint, &error);
    CHECK(code == SEALPOINT_IO || code == SEALPOINT_INVALID_ARGUMENT);
    sealpoint_error_free(error);
  }
}
