// SPDX-License-Identifier: Apache-2.0
#include "check.h"

static sealpoint_destination destination_of(void* data, uint64_t size) {
  sealpoint_destination destination;
  sealpoint_init(&destination, sizeof destination);
  destination.data = data;
  destination.size_bytes = size;
  return destination;
}

static sealpoint_region box_of(const uint64_t* offset, const uint64_t* extent, uint32_t ndim) {
  sealpoint_region region;
  sealpoint_init(&region, sizeof region);
  region.ndim = ndim;
  region.offset = offset;
  region.extent = extent;
  return region;
}

static void check_names(const sealpoint_checkpoint* checkpoint) {
  static const char* const names[] = {"empty", "s", "w", "x.bias"};
  sealpoint_error* error = NULL;
  sealpoint_tensor_info info;
  sealpoint_string patterns[2];
  uint64_t numbers[4] = {9, 9, 9, 9}, count = 0, i;
  sealpoint_init(&info, sizeof info);
  for (i = 0; i < 4; ++i) {
    CHECK_OK(sealpoint_checkpoint_tensor(checkpoint, i, &info, &error));
    CHECK(equals(info.name, names[i]) && info.index == i);
  }
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "number 4 of the tensors, of which there are 4",
              sealpoint_checkpoint_tensor(checkpoint, 4, &info, &error));
  CHECK_OK(sealpoint_checkpoint_find_tensor(checkpoint, str("w"), &info, &error));
  CHECK(info.index == 2 && info.ndim == 2 && info.shape[0] == 6 && info.shape[1] == 4);
  CHECK(info.dtype == SEALPOINT_DTYPE_F32 && info.element_size == 4 && info.raw_bytes == 96);
  CHECK(info.chunk_size_bytes == 4 << 20 && info.shard_count == 1);
  CHECK_ERROR(SEALPOINT_NOT_FOUND, "tensor ww",
              sealpoint_checkpoint_find_tensor(checkpoint, str("ww"), &info, &error));
  CHECK_CODE(SEALPOINT_NOT_FOUND,
             sealpoint_checkpoint_find_tensor(checkpoint, str(""), &info, &error));
  CHECK_CODE(SEALPOINT_NOT_FOUND,
             sealpoint_checkpoint_find_tensor(checkpoint, str("zz"), &info, &error));

  patterns[0] = str("x.*");
  patterns[1] = str("?");
  CHECK_OK(sealpoint_checkpoint_match_tensors(checkpoint, patterns, 2, numbers, 4, &count, &error));
  CHECK(count == 3 && numbers[0] == 1 && numbers[1] == 2 && numbers[2] == 3 && numbers[3] == 9);
  numbers[1] = 9;
  CHECK_OK(sealpoint_checkpoint_match_tensors(checkpoint, patterns, 2, numbers, 1, &count, &error));
  CHECK(count == 3 && numbers[1] == 9);
  CHECK_OK(sealpoint_checkpoint_match_tensors(checkpoint, patterns, 2, NULL, 0, &count, &error));
  CHECK(count == 3);
  patterns[0] = str("none*");
  CHECK_CODE(SEALPOINT_NOT_FOUND, sealpoint_checkpoint_match_tensors(checkpoint, patterns, 1,
                                                                     numbers, 4, &count, &error));
  patterns[0] = str("w\\");
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_checkpoint_match_tensors(
                                             checkpoint, patterns, 1, numbers, 4, &count, &error));
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_checkpoint_match_tensors(checkpoint, NULL, 1, numbers, 4, &count, &error));
}

static void check_objects(const sealpoint_checkpoint* checkpoint) {
  sealpoint_error* error = NULL;
  sealpoint_object_info info;
  sealpoint_buffer* buffer = NULL;
  sealpoint_init(&info, sizeof info);
  CHECK_OK(sealpoint_checkpoint_object(checkpoint, 0, &info, &error));
  CHECK(equals(info.name, "rng") && equals(info.media_type, "text/plain") && info.size_bytes == 4);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_checkpoint_object(checkpoint, 1, &info, &error));
  CHECK_OK(sealpoint_checkpoint_find_object(checkpoint, str("rng"), &info, &error));
  CHECK_ERROR(SEALPOINT_NOT_FOUND, "object rn",
              sealpoint_checkpoint_find_object(checkpoint, str("rn"), &info, &error));
  CHECK_CODE(SEALPOINT_NOT_FOUND,
             sealpoint_checkpoint_find_object(checkpoint, str("zz"), &info, &error));
  CHECK_OK(sealpoint_checkpoint_read_object(checkpoint, str("rng"), &buffer, &error));
  CHECK(sealpoint_buffer_bytes(buffer).size == 4);
  CHECK(memcmp(sealpoint_buffer_bytes(buffer).data, "seed", 4) == 0);
  sealpoint_buffer_free(buffer);
  CHECK_CODE(SEALPOINT_NOT_FOUND,
             sealpoint_checkpoint_read_object(checkpoint, str("no"), &buffer, &error));
  CHECK(buffer == NULL);
}

static void check_origin(const sealpoint_checkpoint* checkpoint) {
  sealpoint_error* error = NULL;
  sealpoint_checkpoint_info info;
  sealpoint_string key, value;
  uint32_t size = 0;
  sealpoint_init(&info, sizeof info);
  CHECK_OK(sealpoint_checkpoint_get_info(checkpoint, &info, &error));
  CHECK(info.step == 41 && info.sequence == 6 && info.parent.bytes[0] == 1);
  CHECK(info.tensor_count == 4 && info.object_count == 1 && info.blob_count == 1);
  CHECK(info.raw_bytes == 96 + 24 + 8 + 4 && info.created_unix_ns > 0);
  CHECK(info.mesh_axis_count == 1 && info.provenance_count >= 1);
  CHECK_OK(sealpoint_checkpoint_mesh_axis(checkpoint, 0, &key, &size, &error));
  CHECK(equals(key, "data") && size == 3);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_checkpoint_mesh_axis(checkpoint, 1, &key, &size, &error));
  {
    uint64_t i, found = 0;
    for (i = 0; i < info.provenance_count; ++i) {
      CHECK_OK(sealpoint_checkpoint_provenance(checkpoint, i, &key, &value, &error));
      found += equals(key, "made_by") && equals(value, "a program in C");
    }
    CHECK(found == 1);
    CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
               sealpoint_checkpoint_provenance(checkpoint, i, &key, &value, &error));
  }
}

static void check_regions(const sealpoint_checkpoint* checkpoint) {
  static const uint64_t offset[] = {1, 1}, extent[] = {2, 3}, beyond[] = {5, 1};
  static const uint64_t huge[] = {UINT64_MAX, UINT64_MAX}, many[40] = {0};
  sealpoint_error* error = NULL;
  float w[24] = {0}, part[6] = {0}, wide[4][8];
  int64_t strides[] = {4, 8};  // of a transposed array of two columns
  sealpoint_destination destination = destination_of(w, sizeof w);
  sealpoint_region region = box_of(offset, extent, 2);
  int i;

  CHECK_OK(
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), NULL, &destination, NULL, &error));
  for (i = 0; i < 24; ++i) CHECK(w[i] == (float)i);
  destination = destination_of(part, sizeof part);
  destination.dtype = SEALPOINT_DTYPE_F32;
  CHECK_OK(
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), &region, &destination, NULL, &error));
  CHECK(part[0] == 5 && part[2] == 7 && part[3] == 9 && part[5] == 11);

  // A run of the box: its elements 2 to 4.
  region.run_begin = 2;
  region.run_end = 5;
  destination.size_bytes = 12;
  CHECK_OK(
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), &region, &destination, NULL, &error));
  CHECK(part[0] == 7 && part[1] == 9 && part[2] == 10);
  region.run_begin = 6;
  CHECK_ERROR(
      SEALPOINT_INVALID_ARGUMENT, "run_begin is 6, expected at most run_end, 5",
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), &region, &destination, NULL, &error));

  // Strided, from the second row of wide memory on, with the untouched parts kept.
  memset(wide, 0xff, sizeof wide);
  region = box_of(offset, extent, 2);
  destination = destination_of(wide, sizeof wide);
  strides[0] = 32;
  strides[1] = 4;
  destination.strides_bytes = strides;
  destination.stride_count = 2;
  destination.origin_bytes = 40;
  CHECK_OK(
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), &region, &destination, NULL, &error));
  CHECK(wide[1][2] == 5 && wide[1][4] == 7 && wide[2][2] == 9 && wide[2][4] == 11);
  CHECK(wide[1][1] != wide[1][1] && wide[2][5] != wide[2][5]);  // NaN, as before
  destination.stride_count = 0;
  CHECK_ERROR(
      SEALPOINT_INVALID_ARGUMENT, "stride_count is 0",
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), &region, &destination, NULL, &error));
  destination.stride_count = 40;
  CHECK_CODE(
      SEALPOINT_INVALID_ARGUMENT,
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), &region, &destination, NULL, &error));

  // Wrong in other ways; nothing is written.
  destination = destination_of(part, sizeof part);
  region = box_of(beyond, extent, 2);
  CHECK_ERROR(
      SEALPOINT_INVALID_ARGUMENT, "tensor w",
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), &region, &destination, NULL, &error));
  region = box_of(many, huge, 2);
  CHECK_CODE(
      SEALPOINT_LIMIT_EXCEEDED,
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), &region, &destination, NULL, &error));
  region = box_of(many, many, 40);
  CHECK_ERROR(
      SEALPOINT_INVALID_ARGUMENT, "is 40, expected at most 32",
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), &region, &destination, NULL, &error));
  region = box_of(NULL, extent, 2);
  CHECK_CODE(
      SEALPOINT_INVALID_ARGUMENT,
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), &region, &destination, NULL, &error));
  region = box_of(offset, extent, 2);
  destination.size_bytes = 20;
  CHECK_ERROR(
      SEALPOINT_INVALID_ARGUMENT, "24",
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), &region, &destination, NULL, &error));
  destination = destination_of(NULL, sizeof part);
  CHECK_CODE(
      SEALPOINT_INVALID_ARGUMENT,
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), &region, &destination, NULL, &error));
  destination = destination_of(part, sizeof part);
  destination.dtype = SEALPOINT_DTYPE_INT32;
  CHECK_ERROR(
      SEALPOINT_INVALID_ARGUMENT, "f32",
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), &region, &destination, NULL, &error));
  destination.dtype = 65536 + SEALPOINT_DTYPE_F32;
  CHECK_CODE(
      SEALPOINT_INVALID_ARGUMENT,
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), &region, &destination, NULL, &error));
  destination = destination_of(part, sizeof part);
  destination.memory = 2;
  CHECK_CODE(
      SEALPOINT_INVALID_ARGUMENT,
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), &region, &destination, NULL, &error));
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_checkpoint_read_tensor(checkpoint, str("w"), &region, NULL, NULL, &error));
  destination = destination_of(part, sizeof part);
  CHECK_CODE(
      SEALPOINT_NOT_FOUND - SEALPOINT_NOT_FOUND + SEALPOINT_MISMATCH,
      sealpoint_checkpoint_read_tensor(checkpoint, str("no"), NULL, &destination, NULL, &error));
}

static int32_t count_progress(void* user, const sealpoint_progress* progress) {
  int* count = (int*)user;
  if (*count < 0) return 1;
  CHECK(progress->struct_size == sizeof *progress && progress->phase.size > 0);
  ++*count;
  return 0;
}

static void check_plan(const sealpoint_checkpoint* checkpoint) {
  static const uint64_t wrong_shape[] = {5, 4};
  sealpoint_error* error = NULL;
  sealpoint_read_request* request = NULL;
  sealpoint_read_plan* plan = NULL;
  sealpoint_buffer* text = NULL;
  sealpoint_contract contract;
  sealpoint_item_options item;
  sealpoint_plan_summary summary;
  sealpoint_read_options options;
  sealpoint_string tensor, detail;
  double w[20] = {0};
  int64_t x[3] = {0};
  int progress_count = 0;
  sealpoint_destination destination = destination_of(w, sizeof w);
  sealpoint_init(&contract, sizeof contract);
  sealpoint_init(&item, sizeof item);
  sealpoint_init(&summary, sizeof summary);
  sealpoint_init(&options, sizeof options);
  CHECK_OK(sealpoint_read_request_create(&request, &error));
  item.convert_to = SEALPOINT_DTYPE_F64;
  item.expected_dtype = SEALPOINT_DTYPE_F32;
  item.expected_shape = wrong_shape;
  item.expected_ndim = 2;
  CHECK_OK(sealpoint_read_request_add(request, str("w"), NULL, &destination, &item, &error));
  destination = destination_of(x, sizeof x);
  CHECK_OK(sealpoint_read_request_add(request, str("x.bias"), NULL, &destination, NULL, &error));

  CHECK_CODE(SEALPOINT_MISMATCH,
             sealpoint_checkpoint_plan(checkpoint, request, NULL, &plan, &error));
  CHECK(plan == NULL);
  contract.unexpected = SEALPOINT_DIFFERENCE_ALLOW;
  CHECK_ERROR(SEALPOINT_MISMATCH, "shape",
              sealpoint_checkpoint_plan(checkpoint, request, &contract, &plan, &error));
  contract.shape = 4;
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "shape is 4, expected at most 3",
              sealpoint_checkpoint_plan(checkpoint, request, &contract, &plan, &error));
  contract.shape = SEALPOINT_DIFFERENCE_REPORT;
  CHECK_OK(sealpoint_checkpoint_plan(checkpoint, request, &contract, &plan, &error));
  CHECK_OK(sealpoint_read_plan_summary(plan, &summary, &error));
  CHECK(summary.item_count == 2 && summary.bytes_requested == 80 + 24 && summary.file_count == 1);
  CHECK(summary.finding_count == 1 && summary.chunk_count == 2);
  CHECK_OK(sealpoint_read_plan_finding(plan, 0, &tensor, &detail, &error));
  CHECK(equals(tensor, "w") && detail.size > 0);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_read_plan_finding(plan, 1, &tensor, &detail, &error));
  CHECK_OK(sealpoint_read_plan_explain(plan, &text, &error));
  CHECK(sealpoint_buffer_bytes(text).size > 0);
  sealpoint_buffer_free(text);

  options.threads = 4;
  options.isolate = 1;
  options.on_progress = count_progress;
  options.user = &progress_count;
  CHECK_OK(sealpoint_checkpoint_read(checkpoint, plan, &options, &error));
  CHECK(w[19] == 19.0 && x[2] == 9 && progress_count >= 2);
  progress_count = -1;
  CHECK_CODE(SEALPOINT_CANCELLED, sealpoint_checkpoint_read(checkpoint, plan, &options, &error));
  options.on_progress = NULL;
  options.threads = UINT32_MAX;
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_checkpoint_read(checkpoint, plan, &options, &error));
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_checkpoint_read(NULL, plan, NULL, &error));
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_checkpoint_read(checkpoint, NULL, NULL, &error));
  sealpoint_read_plan_free(plan);
  sealpoint_read_request_free(request);
}

void test_read(void) {
  static const sealpoint_mesh_axis axis = {{"data", 4}, 3};
  static const sealpoint_key_value pair = {{"made_by", 7}, {"a program in C", 14}};
  sealpoint_error* error = NULL;
  sealpoint_checkpoint* checkpoint = NULL;
  sealpoint_checkpoint* other = NULL;
  sealpoint_commit_options options;
  sealpoint_string directory = in_work_dir("read");
  sealpoint_bytes marker;
  sealpoint_init(&options, sizeof options);
  options.has_step = 1;
  options.step = 41;
  options.parent.bytes[0] = 1;
  options.parent_sequence = 5;
  options.mesh_axes = &axis;
  options.mesh_axis_count = 1;
  options.provenance = &pair;
  options.provenance_count = 1;
  write_checkpoint(directory, &options);
  CHECK_OK(sealpoint_checkpoint_open(directory, NULL, &checkpoint, &error));
  CHECK(equals(sealpoint_checkpoint_path(checkpoint), directory.data));
  check_names(checkpoint);
  check_objects(checkpoint);
  check_origin(checkpoint);
  check_regions(checkpoint);
  check_plan(checkpoint);

  CHECK_OK(sealpoint_checkpoint_open_from(directory, sealpoint_checkpoint_marker(checkpoint),
                                          sealpoint_checkpoint_index(checkpoint), NULL, &other,
                                          &error));
  sealpoint_checkpoint_free(other);
  marker = sealpoint_checkpoint_marker(checkpoint);
  marker.size -= 1;
  CHECK(sealpoint_checkpoint_open_from(directory, marker, sealpoint_checkpoint_index(checkpoint),
                                       NULL, &other, &error) != SEALPOINT_OK);
  CHECK(other == NULL && error != NULL);
  sealpoint_error_free(error);
  sealpoint_checkpoint_free(checkpoint);
  sealpoint_checkpoint_free(NULL);
  CHECK(sealpoint_checkpoint_path(NULL).size == 0 && sealpoint_checkpoint_index(NULL).size == 0);
}

void test_damage(void) {
  sealpoint_error* error = NULL;
  sealpoint_checkpoint* checkpoint = NULL;
  float w[24] = {0};
  double s = 0;
  uint64_t offset = 0;
  sealpoint_dl_managed_tensor* array = NULL;
  sealpoint_destination destination = destination_of(w, sizeof w);
  sealpoint_string directory = in_work_dir("damage");
  CHECK_CODE(SEALPOINT_NOT_FOUND, sealpoint_checkpoint_open(directory, NULL, &checkpoint, &error));
  CHECK_OK(sealpoint_create_directories(directory, &error));
  CHECK(sealpoint_checkpoint_open(directory, NULL, &checkpoint, NULL) != SEALPOINT_OK);
  write_checkpoint(directory, NULL);
  CHECK_OK(sealpoint_checkpoint_open(directory, NULL, &checkpoint, &error));
  damage(directory, ".blob", 128);  // where the first chunk is
  CHECK(sealpoint_checkpoint_read_tensor(checkpoint, str("w"), NULL, &destination, NULL, &error) ==
        SEALPOINT_CORRUPT);
  CHECK(sealpoint_error_code(error) == SEALPOINT_CORRUPT);
  CHECK(equals(sealpoint_error_tensor(error), "w") && sealpoint_error_object(error).size == 0);
  CHECK(sealpoint_error_rule(error).size > 5 &&
        memcmp(sealpoint_error_rule(error).data, "R-", 2) == 0);
  CHECK(sealpoint_error_path(error).size > directory.size);
  CHECK(sealpoint_error_offset(error, &offset) == 1 && offset == 128);
  CHECK(sealpoint_error_rank(error, NULL) == 0 && sealpoint_error_host(error).size == 0);
  CHECK(sealpoint_error_message(error).size > 0);
  CHECK(sealpoint_error_outcome_is_unknown(error) == 0);
  sealpoint_error_free(error);
  CHECK_CODE(SEALPOINT_CORRUPT,
             sealpoint_checkpoint_read_dlpack(checkpoint, str("w"), NULL, NULL, &array, &error));
  CHECK(array == NULL);
  // Damage elsewhere does not matter.
  destination = destination_of(&s, sizeof s);
  CHECK_OK(
      sealpoint_checkpoint_read_tensor(checkpoint, str("s"), NULL, &destination, NULL, &error));
  CHECK(s == 0.5);
  sealpoint_checkpoint_free(checkpoint);
  damage(directory, "COMMIT", 40);
  CHECK(sealpoint_checkpoint_open(directory, NULL, &checkpoint, &error) == SEALPOINT_CORRUPT);
  CHECK(equals(sealpoint_error_path(error), in_work_dir("damage/COMMIT").data));
  sealpoint_error_free(error);
}
