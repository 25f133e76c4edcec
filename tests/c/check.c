// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

int failure_count = 0;
char work_dir[256];

void fail(const char* file, int line, const char* what, const sealpoint_error* error) {
  const sealpoint_string text = sealpoint_error_text(error);
  printf("%s:%d: failed: %s: %.*s\n", file, line, what, (int)text.size, text.data);
  ++failure_count;
}

int has_text(const sealpoint_error* error, const char* text) {
  const sealpoint_string line = sealpoint_error_text(error);
  return line.size > 0 && line.data[line.size] == 0 && strstr(line.data, text) != NULL;
}

sealpoint_string str(const char* text) {
  sealpoint_string string;
  string.data = text;
  string.size = strlen(text);
  return string;
}

int equals(sealpoint_string a, const char* b) {
  return a.size == strlen(b) && memcmp(a.data, b, (size_t)a.size) == 0;
}

sealpoint_string in_work_dir(const char* name) {
  static char paths[8][512];
  static unsigned next = 0;
  char* path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", work_dir, name);
  return str(path);
}

static sealpoint_tensor_spec spec_of(const char* name, uint32_t dtype, const uint64_t* shape,
                                     uint32_t ndim) {
  sealpoint_tensor_spec spec;
  sealpoint_init(&spec, sizeof spec);
  spec.name = str(name);
  spec.dtype = dtype;
  spec.shape = shape;
  spec.ndim = ndim;
  return spec;
}

static sealpoint_source source_of(const void* data, uint64_t size) {
  sealpoint_source source;
  sealpoint_init(&source, sizeof source);
  source.data = data;
  source.size_bytes = size;
  return source;
}

static void add_all(sealpoint_blob_writer* writer) {
  static const uint64_t w_shape[] = {6, 4}, x_shape[] = {3}, empty_shape[] = {0, 2};
  sealpoint_error* error = NULL;
  float w[24];
  const int64_t x[] = {7, 8, 9};
  const double s = 0.5;
  const sealpoint_bytes rng = {"seed", 4};
  int i;
  for (i = 0; i < 24; ++i) w[i] = (float)i;
  sealpoint_tensor_spec spec = spec_of("w", SEALPOINT_DTYPE_F32, w_shape, 2);
  sealpoint_source source = source_of(w, sizeof w);
  source.dtype = SEALPOINT_DTYPE_F32;
  CHECK_OK(sealpoint_blob_writer_add(writer, &spec, NULL, &source, &error));
  spec = spec_of("x.bias", SEALPOINT_DTYPE_INT64, x_shape, 1);
  source = source_of(x, sizeof x);
  CHECK_OK(sealpoint_blob_writer_add(writer, &spec, NULL, &source, &error));
  spec = spec_of("empty", SEALPOINT_DTYPE_F32, empty_shape, 2);
  CHECK_OK(sealpoint_blob_writer_add(writer, &spec, NULL, NULL, &error));
  spec = spec_of("s", SEALPOINT_DTYPE_F64, NULL, 0);
  source = source_of(&s, sizeof s);
  CHECK_OK(sealpoint_blob_writer_add(writer, &spec, NULL, &source, &error));
  CHECK_OK(sealpoint_blob_writer_add_object(writer, str("rng"), str("text/plain"), rng,
                                            SEALPOINT_CODEC_NONE, &error));
}

void write_checkpoint(sealpoint_string directory, const sealpoint_commit_options* options) {
  sealpoint_error* error = NULL;
  sealpoint_engine* engine = NULL;
  sealpoint_blob_writer* writer = NULL;
  sealpoint_summaries* summaries = NULL;
  sealpoint_commit_options own;
  sealpoint_init(&own, sizeof own);
  own.has_step = 1;
  own.step = 7;
  CHECK_OK(sealpoint_create_directories(directory, &error));
  CHECK_OK(sealpoint_engine_create(NULL, &engine, &error));
  CHECK_OK(sealpoint_blob_writer_create(engine, directory, NULL, &writer, &error));
  sealpoint_engine_free(engine);  // in any order
  add_all(writer);
  CHECK_OK(sealpoint_blob_writer_finish(writer, &summaries, &error));
  CHECK_OK(sealpoint_commit(directory, options == NULL ? &own : options, summaries, NULL, &error));
  sealpoint_summaries_free(summaries);
  sealpoint_blob_writer_free(writer);
}

void damage(sealpoint_string directory, const char* ending, long offset_from_start) {
  DIR* entries = opendir(directory.data);
  const struct dirent* entry;
  int changed = 0;
  while (entries != NULL && (entry = readdir(entries)) != NULL) {
    const size_t size = strlen(entry->d_name);
    char path[1024];
    FILE* file;
    int byte;
    if (size < strlen(ending) || strcmp(entry->d_name + size - strlen(ending), ending) != 0)
      continue;
    snprintf(path, sizeof path, "%s/%s", directory.data, entry->d_name);
    file = fopen(path, "r+b");
    if (file == NULL) continue;
    fseek(file, offset_from_start, SEEK_SET);
    byte = fgetc(file);
    fseek(file, offset_from_start, SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
    ++changed;
  }
  if (entries != NULL) closedir(entries);
  CHECK(changed == 1);
}

void make_work_dir(void) {
  const char* parent = getenv("TMPDIR");
  snprintf(work_dir, sizeof work_dir, "%s/sealpoint-c-XXXXXX", parent == NULL ? "/tmp" : parent);
  if (mkdtemp(work_dir) != NULL) return;
  perror(work_dir);
  exit(2);
}
