// SPDX-License-Identifier: Apache-2.0
// A program as it was compiled against version 1 of the ABI: what it uses of sealpoint.h is written
// out here as it was then, and never changes. Each later library must run it.

#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct string_1 {
  const char* data;
  uint64_t size;
} string_1;
typedef struct bytes_1 {
  const void* data;
  uint64_t size;
} bytes_1;
typedef struct id_1 {
  uint8_t bytes[16];
} id_1;
typedef struct open_options_1 {
  uint32_t struct_size, skip_file_check, direct_io, reserved;
  uint64_t memory_budget_bytes;
} open_options_1;
typedef struct checkpoint_info_1 {
  uint32_t struct_size, reserved;
  id_1 attempt, parent;
  uint64_t sequence, step, created_unix_ns, raw_bytes, tensor_count, object_count, blob_count;
  uint64_t provenance_count, mesh_axis_count;
} checkpoint_info_1;
typedef struct tensor_info_1 {
  uint32_t struct_size, dtype;
  string_1 name;
  uint64_t index;
  uint32_t element_size, ndim;
  uint64_t chunk_size_bytes, raw_bytes, shard_count, shape[32];
} tensor_info_1;
typedef struct region_1 {
  uint32_t struct_size, ndim;
  const uint64_t *offset, *extent;
  uint64_t run_begin, run_end;
} region_1;
typedef struct memory_1 {  // a source or a destination
  uint32_t struct_size, dtype;
  void* data;
  uint64_t size_bytes;
  const int64_t* strides_bytes;
  uint64_t origin_bytes;
  uint32_t stride_count, reserved, memory;
  int32_t device;
  void* stream;
} memory_1;
typedef struct tensor_spec_1 {
  uint32_t struct_size, dtype;
  string_1 name;
  const uint64_t* shape;
  uint32_t ndim, element_size;
  uint64_t chunk_size_bytes;
  uint32_t codec;
  int32_t codec_level;
  string_1 group;
} tensor_spec_1;
typedef struct commit_options_1 {
  uint32_t struct_size, has_step;
  uint64_t step;
  id_1 attempt, parent;
  uint64_t parent_sequence;
  const void* mesh_axes;
  uint64_t mesh_axis_count;
  const void* provenance;
  uint64_t provenance_count;
  uint32_t allow_empty, reserved;
  int32_t (*on_progress)(void*, const void*);
  void* user;
} commit_options_1;
typedef struct verify_info_1 {
  uint32_t struct_size, verdict;
  uint64_t violation_count, listed_violation_count, note_count, leftover_bytes;
  id_1 attempt, parent;
  uint64_t sequence, step, tensor_count, object_count, blob_count, chunk_count, bytes_checked;
  double seconds;
} verify_info_1;

uint32_t sealpoint_abi_version(void);
void sealpoint_init(void*, uint32_t);
string_1 sealpoint_error_text(const void*);
void sealpoint_error_free(void*);
int32_t sealpoint_create_directories(string_1, void**);
int32_t sealpoint_engine_create(const void*, void**, void**);
void sealpoint_engine_free(void*);
int32_t sealpoint_blob_writer_create(const void*, string_1, const void*, void**, void**);
int32_t sealpoint_blob_writer_add(void*, const tensor_spec_1*, const region_1*, const memory_1*,
                                  void**);
int32_t sealpoint_blob_writer_add_object(void*, string_1, string_1, bytes_1, uint32_t, void**);
int32_t sealpoint_blob_writer_finish(void*, void**, void**);
void sealpoint_blob_writer_free(void*);
int32_t sealpoint_commit(string_1, const commit_options_1*, const void*, void*, void**);
void sealpoint_summaries_free(void*);
int32_t sealpoint_checkpoint_open(string_1, const open_options_1*, void**, void**);
int32_t sealpoint_checkpoint_get_info(const void*, checkpoint_info_1*, void**);
int32_t sealpoint_checkpoint_find_tensor(const void*, string_1, tensor_info_1*, void**);
int32_t sealpoint_checkpoint_read_tensor(const void*, string_1, const region_1*, const memory_1*,
                                         const void*, void**);
void sealpoint_checkpoint_free(void*);
int32_t sealpoint_verify(string_1, const void*, void**, void**);
int32_t sealpoint_verify_report_get_info(const void*, verify_info_1*, void**);
void sealpoint_verify_report_free(void*);

static void* error = NULL;
static int failures = 0;

static void check(int is_right, const char* what) {
  const string_1 text = sealpoint_error_text(error);
  if (is_right) return;
  printf("failed: %s: %.*s\n", what, (int)text.size, text.data);
  sealpoint_error_free(error);
  error = NULL;
  ++failures;
}

static const uint64_t shape[] = {2, 3}, offset[] = {0, 1}, extent[] = {2, 2};

static void write_it(string_1 directory) {
  static float values[] = {0, 1, 2, 3, 4, 5};
  const string_1 name = {"w", 1}, object = {"rng", 3}, media_type = {"text/plain", 10};
  const bytes_1 seed = {"seed", 4};
  void *engine = NULL, *writer = NULL, *summaries = NULL;
  tensor_spec_1 spec;
  memory_1 source;
  commit_options_1 options;
  sealpoint_init(&spec, sizeof spec);
  sealpoint_init(&source, sizeof source);
  sealpoint_init(&options, sizeof options);
  spec.name = name;
  spec.dtype = 12;
  spec.shape = shape;
  spec.ndim = 2;
  source.data = values;
  source.size_bytes = sizeof values;
  options.has_step = 1;
  options.step = 9;
  check(sealpoint_create_directories(directory, &error) == 0, "create_directories");
  check(sealpoint_engine_create(NULL, &engine, &error) == 0, "engine");
  check(sealpoint_blob_writer_create(engine, directory, NULL, &writer, &error) == 0, "writer");
  check(sealpoint_blob_writer_add(writer, &spec, NULL, &source, &error) == 0, "add");
  check(sealpoint_blob_writer_add_object(writer, object, media_type, seed, 0, &error) == 0,
        "add_object");
  check(sealpoint_blob_writer_finish(writer, &summaries, &error) == 0, "finish");
  check(sealpoint_commit(directory, &options, summaries, NULL, &error) == 0, "commit");
  sealpoint_summaries_free(summaries);
  sealpoint_blob_writer_free(writer);
  sealpoint_engine_free(engine);
}

static void read_it(string_1 directory) {
  const string_1 name = {"w", 1};
  float part[4] = {0};
  void *checkpoint = NULL, *report = NULL;
  open_options_1 open_options;
  checkpoint_info_1 info;
  tensor_info_1 tensor;
  region_1 region;
  memory_1 destination;
  verify_info_1 verified;
  sealpoint_init(&open_options, sizeof open_options);
  sealpoint_init(&info, sizeof info);
  sealpoint_init(&tensor, sizeof tensor);
  sealpoint_init(&region, sizeof region);
  sealpoint_init(&destination, sizeof destination);
  sealpoint_init(&verified, sizeof verified);
  check(sealpoint_checkpoint_open(directory, &open_options, &checkpoint, &error) == 0, "open");
  check(sealpoint_checkpoint_get_info(checkpoint, &info, &error) == 0 && info.step == 9 &&
            info.tensor_count == 1 && info.object_count == 1,
        "info");
  check(sealpoint_checkpoint_find_tensor(checkpoint, name, &tensor, &error) == 0 &&
            tensor.ndim == 2 && tensor.shape[1] == 3 && tensor.dtype == 12,
        "find_tensor");
  region.ndim = 2;
  region.offset = offset;
  region.extent = extent;
  destination.data = part;
  destination.size_bytes = sizeof part;
  check(sealpoint_checkpoint_read_tensor(checkpoint, name, &region, &destination, NULL, &error) ==
                0 &&
            part[0] == 1 && part[3] == 5,
        "read_tensor");
  sealpoint_checkpoint_free(checkpoint);
  check(sealpoint_verify(directory, NULL, &report, &error) == 0, "verify");
  check(sealpoint_verify_report_get_info(report, &verified, &error) == 0 && verified.verdict == 0 &&
            verified.tensor_count == 1,
        "verify_info");
  sealpoint_verify_report_free(report);
}

int main(int argc, char** argv) {
  string_1 directory;
  if (argc != 2) return 2;
  directory.data = argv[1];
  directory.size = strlen(argv[1]);
  check(sealpoint_abi_version() >= 1, "abi_version");
  write_it(directory);
  read_it(directory);
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
