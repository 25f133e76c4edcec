// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include "check.h"

static sealpoint_tensor_spec spec_of(const char* name, const uint64_t* shape, uint32_t ndim) {
  sealpoint_tensor_spec spec;
  sealpoint_init(&spec, sizeof spec);
  spec.name = str(name);
  spec.dtype = SEALPOINT_DTYPE_F32;
  spec.shape = shape;
  spec.ndim = ndim;
  return spec;
}

static void count_bytes(void* user, uint64_t bytes) { *(uint64_t*)user = bytes; }

// Rows [first, first + 2) of "w" [4, 3], each element its number. The summaries as bytes.
static sealpoint_buffer* write_rows(const sealpoint_engine* engine, sealpoint_string directory,
                                    uint64_t first, sealpoint_id attempt) {
  static const uint64_t shape[] = {4, 3}, extent[] = {2, 3};
  sealpoint_error* error = NULL;
  sealpoint_blob_writer* writer = NULL;
  sealpoint_summaries* summaries = NULL;
  sealpoint_buffer* bytes = NULL;
  sealpoint_blob_writer_options options;
  sealpoint_region region;
  sealpoint_source source;
  sealpoint_tensor_spec spec = spec_of("w", shape, 2);
  uint64_t offset[2] = {0, 0}, staged = 0;
  float rows[6];
  int i;
  offset[0] = first;
  for (i = 0; i < 6; ++i) rows[i] = (float)(first * 3) + (float)i;
  spec.codec = SEALPOINT_CODEC_ZSTD;
  spec.codec_level = 3;
  spec.chunk_size_bytes = 4096;
  spec.group = str("weights");
  sealpoint_init(&options, sizeof options);
  options.attempt = attempt;
  options.has_step = 1;
  options.step = 5;
  options.on_bytes = count_bytes;
  options.user = &staged;
  sealpoint_init(&region, sizeof region);
  region.ndim = 2;
  region.offset = offset;
  region.extent = extent;
  sealpoint_init(&source, sizeof source);
  source.data = rows;
  source.size_bytes = sizeof rows;
  CHECK_OK(sealpoint_blob_writer_create(engine, directory, &options, &writer, &error));
  CHECK_OK(sealpoint_blob_writer_add(writer, &spec, &region, &source, &error));
  CHECK(staged == sizeof rows);
  CHECK_OK(sealpoint_blob_writer_finish(writer, &summaries, &error));
  CHECK(sealpoint_summaries_count(summaries) == 1);
  CHECK_OK(sealpoint_summaries_serialize(summaries, &bytes, &error));
  // A second end, and more, after the end.
  CHECK(sealpoint_blob_writer_add(writer, &spec, &region, &source, NULL) ==
        SEALPOINT_INVALID_ARGUMENT);
  {
    sealpoint_summaries* again = NULL;
    CHECK(sealpoint_blob_writer_finish(writer, &again, NULL) == SEALPOINT_INVALID_ARGUMENT);
    CHECK(again == NULL);
  }
  sealpoint_summaries_free(summaries);
  sealpoint_blob_writer_free(writer);
  return bytes;
}

static void check_two_writers(const sealpoint_engine* engine) {
  sealpoint_error* error = NULL;
  sealpoint_summaries* all = NULL;
  sealpoint_commit_options options;
  sealpoint_commit_info info;
  sealpoint_checkpoint* checkpoint = NULL;
  sealpoint_destination destination;
  sealpoint_buffer* halves[2];
  sealpoint_bytes cut;
  sealpoint_id blob;
  uint64_t size = 0, raw = 0;
  float w[12] = {0};
  int i;
  sealpoint_string directory = in_work_dir("writers");
  sealpoint_init(&options, sizeof options);
  sealpoint_init(&info, sizeof info);
  CHECK_OK(sealpoint_create_directories(directory, &error));
  CHECK_OK(sealpoint_id_random(&options.attempt, &error));
  options.has_step = 1;
  options.step = 5;
  halves[0] = write_rows(engine, directory, 0, options.attempt);
  halves[1] = write_rows(engine, directory, 2, options.attempt);
  CHECK_OK(sealpoint_summaries_create(&all, &error));
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_commit(directory, &options, all, &info, &error));  // nothing
  CHECK_OK(sealpoint_summaries_append(all, sealpoint_buffer_bytes(halves[0]), &error));
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "w",
              sealpoint_commit(directory, &options, all, &info, &error));  // a hole
  cut = sealpoint_buffer_bytes(halves[1]);
  cut.size -= 1;
  CHECK(sealpoint_summaries_append(all, cut, &error) != SEALPOINT_OK);
  CHECK(sealpoint_summaries_count(all) == 1);
  sealpoint_error_free(error);
  CHECK_OK(sealpoint_summaries_append(all, sealpoint_buffer_bytes(halves[1]), &error));
  CHECK_OK(sealpoint_summaries_get(all, 1, &blob, &size, &raw, &error));
  CHECK(size % 4096 == 0 && raw == 24);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_summaries_get(all, 2, &blob, NULL, NULL, &error));

  info.struct_size = 4;  // found before anything is committed
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_commit(directory, &options, all, &info, &error));
  sealpoint_init(&info, sizeof info);
  CHECK_OK(sealpoint_commit(directory, &options, all, &info, &error));
  CHECK(memcmp(&info.attempt, &options.attempt, sizeof info.attempt) == 0 && info.step == 5);
  CHECK(info.blob_count == 2 && info.tensor_count == 1 && info.raw_bytes == 48);
  CHECK(info.sequence == 1 && info.total_bytes > size && info.index_bytes > 0);
  CHECK_CODE(SEALPOINT_ALREADY_EXISTS, sealpoint_commit(directory, &options, all, &info, &error));

  // The same once more from what is in the file.
  CHECK_OK(sealpoint_summaries_append_blob(all, directory, &blob, &error));
  CHECK(sealpoint_summaries_count(all) == 3);
  blob.bytes[0] ^= 1;
  CHECK_CODE(SEALPOINT_NOT_FOUND, sealpoint_summaries_append_blob(all, directory, &blob, &error));
  CHECK_OK(sealpoint_checkpoint_open(directory, NULL, &checkpoint, &error));
  sealpoint_init(&destination, sizeof destination);
  destination.data = w;
  destination.size_bytes = sizeof w;
  CHECK_OK(
      sealpoint_checkpoint_read_tensor(checkpoint, str("w"), NULL, &destination, NULL, &error));
  for (i = 0; i < 12; ++i) CHECK(w[i] == (float)i);
  sealpoint_checkpoint_free(checkpoint);
  sealpoint_summaries_free(all);
  sealpoint_buffer_free(halves[0]);
  sealpoint_buffer_free(halves[1]);
}

static void check_mistakes(const sealpoint_engine* engine) {
  static const uint64_t shape[] = {2}, huge[] = {UINT64_MAX, 2};
  static const sealpoint_bytes some = {"x", 1}, lost = {NULL, 1};
  static const float data[] = {1, 2};
  sealpoint_error* error = NULL;
  sealpoint_blob_writer* writer = NULL;
  sealpoint_blob_writer_options options;
  sealpoint_engine_options engine_options;
  sealpoint_engine* none = NULL;
  sealpoint_source source;
  sealpoint_tensor_spec spec = spec_of("w", shape, 1);
  sealpoint_string directory = in_work_dir("mistakes");
  sealpoint_init(&source, sizeof source);
  sealpoint_init(&options, sizeof options);
  sealpoint_init(&engine_options, sizeof engine_options);
  engine_options.staging_buffer_size_bytes = 5;
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_engine_create(&engine_options, &none, &error));
  engine_options.staging_buffer_size_bytes = 4096;
  engine_options.io_threads = UINT32_MAX;
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_engine_create(&engine_options, &none, &error));
  CHECK_CODE(SEALPOINT_NOT_FOUND,
             sealpoint_blob_writer_create(engine, directory, NULL, &writer, &error));
  CHECK_OK(sealpoint_create_directories(directory, &error));
  options.size_max_bytes = 1;
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_blob_writer_create(engine, directory, &options, &writer, &error));
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_blob_writer_create(NULL, directory, NULL, &writer, &error));
  CHECK_OK(sealpoint_blob_writer_create(engine, directory, NULL, &writer, &error));

  // What the arguments say of themselves leaves the writer as it is.
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_blob_writer_add(writer, NULL, NULL, &source, &error));
  spec.codec = 65537;
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "codec is 65537",
              sealpoint_blob_writer_add(writer, &spec, NULL, &source, &error));
  CHECK_ERROR(
      SEALPOINT_INVALID_ARGUMENT, "bytes is NULL, expected 1",
      sealpoint_blob_writer_add_object(writer, str("o"), str("text/plain"), lost, 0, &error));
  CHECK_OK(sealpoint_blob_writer_add_object(writer, str("o"), str("text/plain"), some, 0, &error));
  spec.codec = SEALPOINT_CODEC_NONE;
  spec.shape = huge;
  spec.ndim = 2;
  CHECK_CODE(SEALPOINT_LIMIT_EXCEEDED,
             sealpoint_blob_writer_add(writer, &spec, NULL, &source, &error));
  spec.shape = shape;
  spec.ndim = 1;
  // What the writer finds ends it; each call says so then.
  source.data = data;
  source.size_bytes = 7;
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "tensor w",
              sealpoint_blob_writer_add(writer, &spec, NULL, &source, &error));
  CHECK_OK(sealpoint_blob_writer_abandon(writer, &error));
  sealpoint_blob_writer_free(writer);
  sealpoint_blob_writer_free(NULL);
  sealpoint_summaries_free(NULL);
  sealpoint_engine_free(NULL);
  CHECK(sealpoint_summaries_count(NULL) == 0);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_blob_writer_abandon(NULL, &error));
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_commit(directory, NULL, NULL, NULL, &error));
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_summaries_append(NULL, some, &error));
}

void test_writer(void) {
  sealpoint_error* error = NULL;
  sealpoint_engine* engine = NULL;
  sealpoint_engine_options options;
  sealpoint_init(&options, sizeof options);
  options.memory_budget_bytes = 16 << 20;
  options.buffered_io = 1;
  options.io_threads = 2;
  options.snapshot_threads = 1;
  CHECK_OK(sealpoint_engine_create(&options, &engine, &error));
  check_two_writers(engine);
  check_mistakes(engine);
  sealpoint_engine_free(engine);
}

// Threads that use one checkpoint, its names of objects and its plans at the same time.
enum { kThreads = 4, kRounds = 20 };

static void* read_often(void* argument) {
  const sealpoint_checkpoint* checkpoint = (const sealpoint_checkpoint*)argument;
  sealpoint_error* error = NULL;
  int i;
  for (i = 0; i < kRounds; ++i) {
    sealpoint_object_info object;
    sealpoint_string key;
    sealpoint_dl_managed_tensor* w = NULL;
    sealpoint_init(&object, sizeof object);
    CHECK_OK(sealpoint_checkpoint_find_object(checkpoint, str("rng"), &object, &error));
    CHECK(equals(object.name, "rng"));
    CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
               sealpoint_checkpoint_mesh_axis(checkpoint, 0, &key, NULL, &error));
    CHECK_OK(sealpoint_checkpoint_read_dlpack(checkpoint, str("w"), NULL, NULL, &w, &error));
    CHECK(((float*)w->dl_tensor.data)[23] == 23);
    w->deleter(w);
  }
  return NULL;
}

void test_threads(void) {
  sealpoint_error* error = NULL;
  sealpoint_checkpoint* checkpoint = NULL;
  pthread_t threads[kThreads];
  int i;
  sealpoint_string directory = in_work_dir("threads");
  write_checkpoint(directory, NULL);
  CHECK_OK(sealpoint_checkpoint_open(directory, NULL, &checkpoint, &error));
  for (i = 0; i < kThreads; ++i) {
    CHECK(pthread_create(&threads[i], NULL, read_often, checkpoint) == 0);
  }
  for (i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  sealpoint_checkpoint_free(checkpoint);
}
