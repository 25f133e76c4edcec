// SPDX-License-Identifier: Apache-2.0
#include "check.h"

enum { kDlFloat = 2, kDlInt = 0, kDlCpu = 1, kDlCuda = 2, kDlRocm = 10 };

static sealpoint_dl_tensor array_of(void* data, int64_t* shape, int64_t* strides, int32_t ndim) {
  sealpoint_dl_tensor array;
  memset(&array, 0, sizeof array);
  array.data = data;
  array.device.device_type = kDlCpu;
  array.ndim = ndim;
  array.dtype.code = kDlFloat;
  array.dtype.bits = 32;
  array.dtype.lanes = 1;
  array.shape = shape;
  array.strides = strides;
  return array;
}

// Reads "w" into an array; the code of adding, planning and reading, whichever fails first.
static int32_t read_into(const sealpoint_checkpoint* checkpoint, const sealpoint_region* region,
                         const sealpoint_dl_tensor* array, sealpoint_error** error) {
  sealpoint_read_request* request = NULL;
  sealpoint_read_plan* plan = NULL;
  sealpoint_contract contract;
  int32_t code;
  sealpoint_init(&contract, sizeof contract);
  contract.unexpected = SEALPOINT_DIFFERENCE_ALLOW;
  CHECK(sealpoint_read_request_create(&request, NULL) == SEALPOINT_OK);
  code = sealpoint_read_request_add_dlpack(request, str("w"), region, array, NULL, NULL, error);
  if (code == SEALPOINT_OK) {
    code = sealpoint_checkpoint_plan(checkpoint, request, &contract, &plan, error);
  }
  if (code == SEALPOINT_OK) code = sealpoint_checkpoint_read(checkpoint, plan, NULL, error);
  sealpoint_read_plan_free(plan);
  sealpoint_read_request_free(request);
  return code;
}

static void check_destinations(const sealpoint_checkpoint* checkpoint) {
  static const uint64_t offset[] = {1, 1}, extent[] = {2, 3};
  sealpoint_error* error = NULL;
  float w[24] = {0}, later[26] = {0}, turned[4][6], back[2][3] = {{0}};
  int64_t shape[] = {6, 4}, part[] = {2, 3}, flat[] = {3};
  int64_t turned_strides[] = {1, 6}, back_strides[] = {-3, -1}, dense[] = {4, 1};
  sealpoint_region region;
  sealpoint_dl_tensor array = array_of(w, shape, NULL, 2);
  sealpoint_init(&region, sizeof region);
  region.ndim = 2;
  region.offset = offset;
  region.extent = extent;

  CHECK_OK(read_into(checkpoint, NULL, &array, &error));
  CHECK(w[0] == 0 && w[23] == 23);
  array = array_of(later, shape, dense, 2);
  array.byte_offset = 8;
  CHECK_OK(read_into(checkpoint, NULL, &array, &error));
  CHECK(later[2] == 0 && later[25] == 23);
  array = array_of(turned, shape, turned_strides, 2);  // column-major
  CHECK_OK(read_into(checkpoint, NULL, &array, &error));
  CHECK(turned[1][2] == 9 && turned[3][5] == 23);
  array = array_of(&back[1][2], part, back_strides, 2);  // backwards
  CHECK_OK(read_into(checkpoint, &region, &array, &error));
  CHECK(back[1][2] == 5 && back[1][0] == 7 && back[0][2] == 9 && back[0][0] == 11);
  region.run_begin = 2;
  region.run_end = 5;
  array = array_of(w, flat, NULL, 1);
  CHECK_OK(read_into(checkpoint, &region, &array, &error));
  CHECK(w[0] == 7 && w[1] == 9 && w[2] == 10);
  array = array_of(w, part, NULL, 2);
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "shape of the array is [2, 3], expected [3]",
              read_into(checkpoint, &region, &array, &error));
  dense[0] = 2;
  array = array_of(w, flat, dense, 1);
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "dense", read_into(checkpoint, &region, &array, &error));
}

static void check_refusals(const sealpoint_checkpoint* checkpoint) {
  sealpoint_error* error = NULL;
  float w[24] = {0};
  int64_t shape[] = {6, 4}, other[] = {4, 6}, negative[] = {-6, 4};
  int64_t huge[] = {INT64_MAX, 4}, same[] = {0, 1}, far[] = {INT64_MAX / 2, 1};
  sealpoint_dl_tensor array = array_of(w, other, NULL, 2);
  CHECK_ERROR(SEALPOINT_MISMATCH, "shape", read_into(checkpoint, NULL, &array, &error));
  array = array_of(w, negative, NULL, 2);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, read_into(checkpoint, NULL, &array, &error));
  array = array_of(w, huge, NULL, 2);
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "address", read_into(checkpoint, NULL, &array, &error));
  array = array_of(w, shape, far, 2);
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "address", read_into(checkpoint, NULL, &array, &error));
  for (int i = 0; i < 2; ++i) {
    array = array_of(w + 1, shape, NULL, 2);
    array.byte_offset = i ? (uint64_t)1 << 63 : UINT64_MAX;
    CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "address", read_into(checkpoint, NULL, &array, &error));
  }
  array = array_of(w, shape, same, 2);  // elements that share memory
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, read_into(checkpoint, NULL, &array, &error));
  array = array_of(NULL, shape, NULL, 2);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, read_into(checkpoint, NULL, &array, &error));
  array = array_of(w, NULL, NULL, 2);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, read_into(checkpoint, NULL, &array, &error));
  array = array_of(w, shape, NULL, 33);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, read_into(checkpoint, NULL, &array, &error));
  array = array_of(w, shape, NULL, -1);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, read_into(checkpoint, NULL, &array, &error));
  array = array_of(w, shape, NULL, 2);
  array.dtype.code = kDlInt;
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "i32", read_into(checkpoint, NULL, &array, &error));
  array = array_of(w, shape, NULL, 2);
  array.dtype.lanes = 2;
  CHECK_ERROR(SEALPOINT_UNSUPPORTED, "2 lanes", read_into(checkpoint, NULL, &array, &error));
  array = array_of(w, shape, NULL, 2);
  array.device.device_type = kDlRocm;
  CHECK_ERROR(SEALPOINT_UNSUPPORTED, "type 10", read_into(checkpoint, NULL, &array, &error));
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, read_into(checkpoint, NULL, NULL, &error));
}

static void check_managed(const sealpoint_checkpoint* checkpoint) {
  static const uint64_t offset[] = {1, 1}, extent[] = {2, 3}, beyond[] = {1, 9};
  sealpoint_error* error = NULL;
  sealpoint_dl_managed_tensor* managed = NULL;
  sealpoint_read_request* request = NULL;
  sealpoint_region region;
  sealpoint_init(&region, sizeof region);
  region.ndim = 2;
  region.offset = offset;
  region.extent = extent;
  CHECK_OK(sealpoint_checkpoint_read_dlpack(checkpoint, str("w"), &region, NULL, &managed, &error));
  CHECK(managed->version.major == 1 && managed->flags == 2 && managed->dl_tensor.byte_offset == 0);
  CHECK((uintptr_t)managed->dl_tensor.data % 256 == 0 && managed->dl_tensor.ndim == 2);
  CHECK(managed->dl_tensor.shape[0] == 2 && managed->dl_tensor.shape[1] == 3);
  CHECK(managed->dl_tensor.strides[0] == 3 && managed->dl_tensor.strides[1] == 1);
  CHECK(managed->dl_tensor.dtype.code == kDlFloat && managed->dl_tensor.dtype.bits == 32);
  CHECK(managed->dl_tensor.device.device_type == kDlCpu);
  CHECK(((float*)managed->dl_tensor.data)[5] == 11);

  // As a destination: not if it is read only or of a later version.
  CHECK_OK(sealpoint_read_request_create(&request, &error));
  CHECK_OK(sealpoint_read_request_add_dlpack_managed(request, str("w"), &region, managed, NULL,
                                                     NULL, &error));
  managed->flags |= 1;
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "read only",
              sealpoint_read_request_add_dlpack_managed(request, str("w"), &region, managed, NULL,
                                                        NULL, &error));
  managed->version.major = 2;
  CHECK_ERROR(SEALPOINT_UNSUPPORTED, "version 2 of DLPack",
              sealpoint_read_request_add_dlpack_managed(request, str("w"), &region, managed, NULL,
                                                        NULL, &error));
  sealpoint_read_request_free(request);
  managed->deleter(managed);

  CHECK_OK(
      sealpoint_checkpoint_read_dlpack(checkpoint, str("empty"), NULL, NULL, &managed, &error));
  CHECK(managed->dl_tensor.data == NULL && managed->dl_tensor.shape[1] == 2);
  managed->deleter(managed);
  CHECK_OK(sealpoint_checkpoint_read_dlpack(checkpoint, str("s"), NULL, NULL, &managed, &error));
  CHECK(managed->dl_tensor.ndim == 0 && *(double*)managed->dl_tensor.data == 0.5);
  managed->deleter(managed);
  region.run_begin = 2;
  region.run_end = 5;
  CHECK_OK(sealpoint_checkpoint_read_dlpack(checkpoint, str("w"), &region, NULL, &managed, &error));
  CHECK(managed->dl_tensor.ndim == 1 && ((float*)managed->dl_tensor.data)[2] == 10);
  managed->deleter(managed);
  region.run_begin = region.run_end = 0;
  region.extent = beyond;
  CHECK_CODE(
      SEALPOINT_INVALID_ARGUMENT,
      sealpoint_checkpoint_read_dlpack(checkpoint, str("w"), &region, NULL, &managed, &error));
  CHECK(managed == NULL);
  CHECK_CODE(SEALPOINT_NOT_FOUND,
             sealpoint_checkpoint_read_dlpack(checkpoint, str("no"), NULL, NULL, &managed, &error));
}

// A tensor from an array whose rows are reversed, read back as C reads it.
static void check_sources(const sealpoint_engine* engine) {
  static const uint64_t extents[] = {2, 3};
  sealpoint_error* error = NULL;
  sealpoint_blob_writer* writer = NULL;
  sealpoint_summaries* summaries = NULL;
  sealpoint_checkpoint* checkpoint = NULL;
  sealpoint_dl_managed_tensor* managed = NULL;
  sealpoint_tensor_spec spec;
  sealpoint_source later;
  float data[] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {2, 3}, wrong[] = {3, 2}, strides[] = {-3, 1};
  sealpoint_dl_tensor array = array_of(data + 3, shape, strides, 2);
  sealpoint_string directory = in_work_dir("dlpack_written");
  sealpoint_init(&spec, sizeof spec);
  spec.name = str("a");
  spec.dtype = SEALPOINT_DTYPE_F32;
  spec.shape = extents;
  spec.ndim = 2;
  CHECK_OK(sealpoint_create_directories(directory, &error));
  CHECK_OK(sealpoint_blob_writer_create(engine, directory, NULL, &writer, &error));
  array.shape = wrong;
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "shape of the array is [3, 2], expected [2, 3]",
              sealpoint_blob_writer_add_dlpack(writer, &spec, NULL, &array, NULL, &error));
  array.shape = shape;
  CHECK_OK(sealpoint_blob_writer_add_dlpack(writer, &spec, NULL, &array, NULL, &error));
  // One of a dtype that nobody knows yet.
  spec.name = str("later");
  spec.dtype = 5000;
  spec.element_size = 4;
  sealpoint_init(&later, sizeof later);
  later.data = data;
  later.size_bytes = sizeof data;
  CHECK_OK(sealpoint_blob_writer_add(writer, &spec, NULL, &later, &error));
  CHECK_OK(sealpoint_blob_writer_finish(writer, &summaries, &error));
  CHECK_OK(sealpoint_commit(directory, NULL, summaries, NULL, &error));
  sealpoint_summaries_free(summaries);
  sealpoint_blob_writer_free(writer);
  CHECK_OK(sealpoint_checkpoint_open(directory, NULL, &checkpoint, &error));
  CHECK_ERROR(
      SEALPOINT_UNSUPPORTED, "dtype 5000",
      sealpoint_checkpoint_read_dlpack(checkpoint, str("later"), NULL, NULL, &managed, &error));
  CHECK_OK(sealpoint_checkpoint_read_dlpack(checkpoint, str("a"), NULL, NULL, &managed, &error));
  sealpoint_checkpoint_free(checkpoint);
  CHECK(((float*)managed->dl_tensor.data)[0] == 4 && ((float*)managed->dl_tensor.data)[5] == 3);
  managed->deleter(managed);
}

void test_dlpack(void) {
  sealpoint_error* error = NULL;
  sealpoint_checkpoint* checkpoint = NULL;
  sealpoint_engine* engine = NULL;
  sealpoint_string directory = in_work_dir("dlpack");
  write_checkpoint(directory, NULL);
  CHECK_OK(sealpoint_checkpoint_open(directory, NULL, &checkpoint, &error));
  check_destinations(checkpoint);
  check_refusals(checkpoint);
  check_managed(checkpoint);
  sealpoint_checkpoint_free(checkpoint);
  CHECK_OK(sealpoint_engine_create(NULL, &engine, &error));
  check_sources(engine);
  sealpoint_engine_free(engine);
}
