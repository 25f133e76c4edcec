// SPDX-License-Identifier: Apache-2.0
#include "ranks_cases.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "sealpoint_attributes.h"

enum { kRows = 5, kColumns = 7, kLocalMax = kRows * kColumns };

typedef struct job {
  sealpoint_communicator* all;
  sealpoint_communicator* fewer;
  sealpoint_engine* engine;
  sealpoint_saver* saver;
  int rank, size;
  char series[300], local[300], final[300];
} job;

static const uint64_t w_shape[] = {kRows, kColumns};
static const sealpoint_string kelvin = {"K", 1};
static const sealpoint_attribute units = {{"units", 5}, &kelvin, 1, SEALPOINT_ATTRIBUTE_STRING, 0};

// The layout of a matrix that is cut along one dimension, over `size` ranks.
static sealpoint_layout* cut_along(int dim, int rank, int size) {
  sealpoint_error* error = NULL;
  sealpoint_layout* layout = NULL;
  sealpoint_mesh_axis axis;
  sealpoint_string rule = str(dim == 0 ? "shard(dim 0, x, even)" : "shard(dim 1, x, even)");
  axis.name = str("x");
  axis.size = (uint64_t)size;
  CHECK_OK(sealpoint_layout_create(&axis, 1, rank, w_shape, 2, &rule, 1, &layout, &error));
  return layout;
}

static sealpoint_tensor_spec matrix(void) {
  sealpoint_tensor_spec spec;
  sealpoint_init(&spec, sizeof spec);
  spec.name = str("w");
  spec.dtype = SEALPOINT_DTYPE_F64;
  spec.shape = w_shape;
  spec.ndim = 2;
  return spec;
}

// Numbers the elements of the local matrix by their place in the whole one, from `first` on.
static uint64_t number(const sealpoint_layout* layout, double first, double* local) {
  sealpoint_error* error = NULL;
  sealpoint_layout_info info;
  sealpoint_region part;
  uint64_t i, j, count = 0;
  sealpoint_init(&info, sizeof info);
  sealpoint_init(&part, sizeof part);
  CHECK_OK(sealpoint_layout_get_info(layout, &info, &error));
  if (info.part_count == 0) return 0;
  CHECK(info.ndim == 2 && info.part_count == 1 && info.replica_count == 1);
  CHECK_OK(sealpoint_layout_part(layout, 0, &part, &error));
  for (i = 0; i < part.extent[0]; ++i) {
    for (j = 0; j < part.extent[1]; ++j) {
      const uint64_t place = (part.offset[0] + i) * kColumns + part.offset[1] + j;
      local[count++] = first + (double)place;
    }
  }
  CHECK(count == info.element_count && count == info.shape[0] * info.shape[1]);
  return count;
}

// Saves the matrix by columns, and a seed of rank 0. `local`: for a staged save.
static int32_t save(job* self, const char* path, const char* local, uint64_t step,
                    sealpoint_error** of_save) {
  static const sealpoint_bytes seed = {"seed", 4};
  sealpoint_error* error = NULL;
  sealpoint_declaration* declaration = NULL;
  sealpoint_sources* sources = NULL;
  sealpoint_layout* layout = cut_along(1, self->rank, self->size);
  sealpoint_tensor_spec spec = matrix();
  sealpoint_source source;
  sealpoint_save_options options;
  double w[kLocalMax];
  int32_t code;
  CHECK_OK(sealpoint_declaration_create(&declaration, &error));
  CHECK_OK(sealpoint_declaration_set_attributes(declaration, spec.name, &units, 1, &error));
  CHECK_OK(sealpoint_declaration_add_layout(declaration, &spec, layout, &error));
  if (self->rank == 0) {
    CHECK_OK(
        sealpoint_declaration_add_object(declaration, str("seed"), str("text/plain"), 0, &error));
  }
  CHECK_OK(sealpoint_sources_create(declaration, &sources, &error));
  sealpoint_init(&source, sizeof source);
  source.data = w;
  source.size_bytes = number(layout, 1000.0 * (double)step, w) * sizeof w[0];
  CHECK_OK(sealpoint_sources_bind_layout(sources, str("w"), layout, &source, &error));
  if (self->rank == 0) {
    CHECK_OK(sealpoint_sources_bind_object(sources, str("seed"), seed, &error));
  }
  sealpoint_init(&options, sizeof options);
  options.path = str(path);
  options.in_series = 1;
  options.has_step = 1;
  options.step = step;
  if (local != NULL) options.local = str(local);
  code = sealpoint_saver_save(self->saver, &options, sources, NULL, NULL, of_save);
  sealpoint_sources_free(sources);
  sealpoint_declaration_free(declaration);
  sealpoint_layout_free(layout);
  return code;
}

// Loads the matrix by rows on other ranks than those that saved it.
static void load(sealpoint_communicator* ranks, int rank, int size, const char* series,
                 uint64_t step) {
  sealpoint_error* error = NULL;
  sealpoint_reader* reader = NULL;
  sealpoint_read_request* request = NULL;
  sealpoint_layout* layout = cut_along(0, rank, size);
  sealpoint_destination to;
  sealpoint_checkpoint_info info;
  sealpoint_load_options options;
  sealpoint_load_report report;
  sealpoint_buffer* seed = NULL;
  sealpoint_attributes* attributes = NULL;
  double expected[kLocalMax], w[kLocalMax];
  const uint64_t count = number(layout, 1000.0 * (double)step, expected);
  sealpoint_init(&to, sizeof to);
  sealpoint_init(&info, sizeof info);
  sealpoint_init(&options, sizeof options);
  sealpoint_init(&report, sizeof report);
  to.data = w;
  to.size_bytes = count * sizeof w[0];
  CHECK_OK(sealpoint_reader_open_newest(ranks, str(series), NULL, 0, &reader, &error));
  CHECK(reader != NULL && sealpoint_reader_skipped_count(reader) == 0);
  CHECK_OK(sealpoint_checkpoint_get_info(sealpoint_reader_checkpoint(reader), &info, &error));
  CHECK(info.step == step);
  CHECK_OK(sealpoint_checkpoint_tensor_attributes(sealpoint_reader_checkpoint(reader), str("w"),
                                                  &attributes, &error));
  CHECK(sealpoint_attributes_count(attributes) == 1);
  sealpoint_attributes_free(attributes);
  CHECK_OK(sealpoint_read_request_create(&request, &error));
  CHECK_OK(sealpoint_read_request_add_layout(request, str("w"), layout, &to, &error));
  options.threads = 1;
  CHECK_OK(sealpoint_reader_load(reader, request, NULL, &options, &report, &error));
  CHECK(memcmp(w, expected, (size_t)to.size_bytes) == 0);
  CHECK(report.bytes_requested == to.size_bytes && report.finding_count == 0);
  CHECK(report.all_bytes_read == sizeof w && report.all_bytes_requested == sizeof w);
  CHECK_OK(sealpoint_reader_read_object(reader, str("seed"), &seed, &error));
  CHECK(sealpoint_buffer_bytes(seed).size == 4);
  sealpoint_buffer_free(seed);
  sealpoint_read_request_free(request);
  sealpoint_reader_free(reader);
  sealpoint_layout_free(layout);
}

static void prunes(job* self) {
  sealpoint_error* error = NULL;
  sealpoint_error* of_rank_0 = NULL;
  sealpoint_series* deleted = NULL;
  sealpoint_series_entry entry;
  sealpoint_retention keep;
  sealpoint_keep_per_period period = {1, 0};
  uint64_t freed = 1;
  sealpoint_init(&keep, sizeof keep);
  sealpoint_init(&entry, sizeof entry);
  if (self->rank == 0) {
    keep.dry_run = 1;
    CHECK_OK(sealpoint_series_prune(str(self->series), &keep, &deleted, &freed, &error));
    CHECK(sealpoint_series_count(deleted) == 1 && freed > 0);
    sealpoint_series_free(deleted);
    keep.dry_run = 0;
    CHECK_OK(sealpoint_series_prune(str(self->series), &keep, &deleted, &freed, &error));
    CHECK_OK(sealpoint_series_get_entry(deleted, 0, &entry, &error));
    CHECK(entry.step == 1 && freed > 0);
    sealpoint_series_free(deleted);
    CHECK_OK(sealpoint_series_prune(str(self->series), NULL, NULL, NULL, &error));
    keep.keep_last = 1;
    CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "keep_last",
                sealpoint_series_prune(str(self->series), &keep, &deleted, &freed, &error));
    CHECK(deleted == NULL && freed == 0);
    keep.keep_last = 0;
    keep.keep_per_period_count = 1;
    CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "keep_per_period",
                sealpoint_series_prune(str(self->series), &keep, NULL, NULL, &error));
    keep.keep_per_period = &period;
    CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
               sealpoint_series_prune(str(self->series), &keep, NULL, NULL, &error));
    period.count = 1;
    keep.keep_within_s = UINT64_MAX;
    CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "keep_within_s",
                sealpoint_series_prune(str(self->series), &keep, NULL, NULL, &error));
    keep.keep_within_s = 0;
    keep.best_metric = str("loss");
    (void)sealpoint_series_prune(str(self->series), &keep, NULL, NULL, &of_rank_0);
  }
  // What only rank 0 knows becomes the error of all.
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "metric.",
              sealpoint_communicator_agree(self->all, of_rank_0, &error));
  sealpoint_error_free(of_rank_0);
  CHECK_OK(sealpoint_communicator_agree(self->all, NULL, &error));
}

// One rank passes what is wrong: all ranks get an error at once, and stay in step.
static void mistakes_of_one(job* self) {
  static const sealpoint_string none = {NULL, 3};
  sealpoint_error* error = NULL;
  sealpoint_reader* reader = NULL;
  sealpoint_buffer* object = NULL;
  sealpoint_promotions* promotions = NULL;
  sealpoint_open_options open;
  const int is_wrong = self->rank == self->size - 1;
  const int32_t invalid = SEALPOINT_INVALID_ARGUMENT;
  sealpoint_init(&open, sizeof open);
  if (is_wrong) open.direct_io = 9;
  CHECK_ERROR(
      invalid, "direct_io",
      sealpoint_reader_open_newest(self->all, str(self->series), &open, 0, &reader, &error));
  CHECK_ERROR(invalid, "series is NULL",
              sealpoint_reader_open_newest(self->all, is_wrong ? none : str(self->series), NULL, 0,
                                           &reader, &error));
  CHECK_ERROR(invalid, "out is NULL",
              sealpoint_reader_open_newest(self->all, str(self->series), NULL, 0,
                                           is_wrong ? NULL : &reader, &error));
  CHECK_ERROR(
      invalid, "path is NULL",
      sealpoint_reader_open(self->all, is_wrong ? none : str(self->series), NULL, &reader, &error));
  CHECK(reader == NULL);
  CHECK_ERROR(invalid, "keep_local",
              sealpoint_resume_promotions(self->all, str(self->local), str(self->final),
                                          is_wrong ? -1 : 0, &promotions, &error));
  CHECK_ERROR(invalid, "local is NULL",
              sealpoint_resume_promotions(self->all, is_wrong ? none : str(self->local),
                                          str(self->final), 0, &promotions, &error));
  CHECK(promotions == NULL);
  CHECK_OK(sealpoint_reader_open_newest(self->all, str(self->series), NULL, 0, &reader, &error));
  CHECK_CODE(invalid,
             sealpoint_reader_read_object(reader, is_wrong ? none : str("seed"), &object, &error));
  CHECK(object == NULL);
  CHECK_ERROR(SEALPOINT_NOT_FOUND, "nothing",
              sealpoint_reader_read_object(reader, str("nothing"), &object, &error));
  sealpoint_reader_free(reader);
}

static void mistakes_of_a_load(job* self) {
  sealpoint_error* error = NULL;
  sealpoint_reader* reader = NULL;
  sealpoint_read_request* request = NULL;
  sealpoint_contract contract;
  sealpoint_load_options options;
  sealpoint_load_report report;
  sealpoint_string text;
  const int is_wrong = self->rank == self->size - 1;
  const int32_t invalid = SEALPOINT_INVALID_ARGUMENT;
  CHECK_OK(sealpoint_reader_open_newest(self->all, str(self->series), NULL, 0, &reader, &error));
  CHECK_OK(sealpoint_read_request_create(&request, &error));
  sealpoint_init(&contract, sizeof contract);
  sealpoint_init(&options, sizeof options);
  sealpoint_init(&report, sizeof report);
  contract.unexpected = SEALPOINT_DIFFERENCE_REPORT;
  if (is_wrong) report.struct_size = 4;
  CHECK_ERROR(invalid, "struct_size is 4",
              sealpoint_reader_load(reader, request, &contract, NULL, &report, &error));
  CHECK_ERROR(
      invalid, "request is NULL",
      sealpoint_reader_load(reader, is_wrong ? NULL : request, &contract, NULL, NULL, &error));
  if (is_wrong) options.threads = UINT32_MAX;
  CHECK_ERROR(invalid, "threads",
              sealpoint_reader_load(reader, request, &contract, &options, NULL, &error));
  if (is_wrong) contract.missing = 9;
  CHECK_ERROR(invalid, "missing is 9",
              sealpoint_reader_load(reader, request, &contract, NULL, NULL, &error));
  contract.missing = 0;
  sealpoint_init(&report, sizeof report);
  CHECK_OK(sealpoint_reader_load(reader, request, &contract, NULL, &report, &error));
  CHECK(report.finding_count == 1);
  CHECK_OK(sealpoint_reader_finding(reader, 0, &text, NULL, &error));
  CHECK(equals(text, "w"));
  CHECK_CODE(invalid, sealpoint_reader_finding(reader, 1, &text, NULL, &error));
  // An item that could not be added is missed by no rank.
  if (is_wrong) {
    CHECK_CODE(invalid, sealpoint_read_request_add(request, str("w"), NULL, NULL, NULL, &error));
  }
  CHECK_ERROR(invalid, "destination is NULL",
              sealpoint_reader_load(reader, request, &contract, NULL, NULL, &error));
  sealpoint_read_request_free(request);
  sealpoint_reader_free(reader);
}

// Removes the files of a folder of folders.
static void remove_series(const char* path) {
  DIR* series = opendir(path);
  const struct dirent* entry;
  while (series != NULL && (entry = readdir(series)) != NULL) {
    char folder[600], file[1200];
    DIR* files;
    const struct dirent* of_folder;
    if (entry->d_name[0] == '.') continue;
    snprintf(folder, sizeof folder, "%s/%s", path, entry->d_name);
    files = opendir(folder);
    while (files != NULL && (of_folder = readdir(files)) != NULL) {
      snprintf(file, sizeof file, "%s/%s", folder, of_folder->d_name);
      unlink(file);
    }
    if (files != NULL) closedir(files);
    rmdir(folder);
  }
  if (series != NULL) closedir(series);
}

static void stages(job* self) {
  sealpoint_error* error = NULL;
  sealpoint_promotions* promotions = NULL;
  sealpoint_promotion promotion;
  sealpoint_init(&promotion, sizeof promotion);
  CHECK_CODE(SEALPOINT_OK, save(self, self->final, self->local, 5, &error));
  CHECK(sealpoint_saver_wait_for_promotions(self->saver, SEALPOINT_FOREVER) == 1);
  CHECK_OK(sealpoint_saver_take_promotions(self->saver, &promotions, &error));
  CHECK(sealpoint_promotions_count(promotions) == 1);
  CHECK_OK(sealpoint_promotions_get(promotions, 0, &promotion, &error));
  CHECK(promotion.problem == NULL && promotion.step == 5 && promotion.bytes_copied > 0);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_promotions_get(promotions, 1, &promotion, &error));
  sealpoint_promotions_free(promotions);
  load(self->all, self->rank, self->size, self->final, 5);
  // The next job finds what is at the local place alone.
  CHECK_OK(sealpoint_communicator_agree(self->all, NULL, &error));
  if (self->rank == 0) remove_series(self->final);
  CHECK_OK(sealpoint_resume_promotions(self->all, str(self->local), str(self->final), 1,
                                       &promotions, &error));
  CHECK(sealpoint_promotions_count(promotions) == 1);
  CHECK_OK(sealpoint_promotions_get(promotions, 0, &promotion, &error));
  CHECK(promotion.problem == NULL && promotion.step == SEALPOINT_NO_STEP);
  CHECK(strstr(promotion.directory.data, "step-000000000005-") != NULL);
  sealpoint_promotions_free(promotions);
  load(self->all, self->rank, self->size, self->final, 5);
}

// The newest is damaged: refused, or skipped if asked.
static void falls_back(job* self) {
  sealpoint_error* error = NULL;
  sealpoint_reader* reader = NULL;
  sealpoint_series* newest = NULL;
  sealpoint_series_entry entry;
  const sealpoint_error* problem = NULL;
  sealpoint_string name;
  sealpoint_init(&entry, sizeof entry);
  if (self->rank == 0) {
    CHECK_OK(sealpoint_series_newest(str(self->series), 0, &newest, &error));
    CHECK_OK(sealpoint_series_get_entry(newest, 0, &entry, &error));
    damage(entry.path, ".index", 300);
    sealpoint_series_free(newest);
  }
  CHECK_CODE(SEALPOINT_CORRUPT,
             sealpoint_reader_open_newest(self->all, str(self->series), NULL, 0, &reader, &error));
  CHECK(reader == NULL);
  CHECK_OK(sealpoint_reader_open_newest(self->all, str(self->series), NULL, 1, &reader, &error));
  CHECK(sealpoint_reader_skipped_count(reader) == 1);
  CHECK_OK(sealpoint_reader_skipped(reader, 0, &name, &problem, &error));
  CHECK(name.size > 0 && sealpoint_error_code(problem) == SEALPOINT_CORRUPT);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_reader_skipped(reader, 1, NULL, NULL, &error));
  sealpoint_reader_free(reader);
}

void run_rank_cases(sealpoint_communicator* all, sealpoint_communicator* fewer, int rank, int size,
                    const char* directory) {
  sealpoint_error* error = NULL;
  sealpoint_saver_options options;
  sealpoint_reader* reader = NULL;
  job self;
  uint64_t step;
  memset(&self, 0, sizeof self);
  self.all = all;
  self.fewer = fewer;
  self.rank = rank;
  self.size = size;
  snprintf(self.series, sizeof self.series, "%s/series", directory);
  snprintf(self.local, sizeof self.local, "%s/local", directory);
  snprintf(self.final, sizeof self.final, "%s/final", directory);
  sealpoint_init(&options, sizeof options);
  options.keep_local = 1;
  options.unpromoted_wait_ms = 1000;
  options.promote_memory_bytes = 1 << 20;
  CHECK_OK(sealpoint_engine_create(NULL, &self.engine, &error));
  CHECK_OK(sealpoint_saver_create(self.engine, all, &options, &self.saver, &error));
  // Nothing was ever saved: begin anew.
  CHECK_OK(sealpoint_reader_open_newest(all, str(self.series), NULL, 0, &reader, &error));
  CHECK(reader == NULL);
  for (step = 1; step <= 3; ++step) {
    CHECK_CODE(SEALPOINT_OK, save(&self, self.series, NULL, step, &error));
  }
  if (fewer != NULL) load(fewer, rank, size - 1, self.series, 3);
  mistakes_of_one(&self);
  mistakes_of_a_load(&self);
  prunes(&self);
  stages(&self);
  falls_back(&self);
  sealpoint_saver_free(self.saver);
  sealpoint_engine_free(self.engine);
}
