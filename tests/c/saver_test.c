// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stddef.h>

#include "check.h"
#include "ranks.h"
#include "sealpoint_attributes.h"

enum { kRanks = 2 };

static const int64_t version_value = 3;
static const sealpoint_attribute version = {
    {"version", 7}, &version_value, 1, SEALPOINT_ATTRIBUTE_INT64, 0};

// What one rank does, on a thread of its own.
typedef struct rank_work {
  int rank;
  sealpoint_communicator* communicator;
  void (*work)(struct rank_work*, sealpoint_saver*, sealpoint_sources*);
  float rows[6], shared[4];
} rank_work;

static void declare(rank_work* self, sealpoint_declaration* declaration, uint64_t* slots) {
  static const uint64_t w_shape[] = {4, 3}, b_shape[] = {4}, extent[] = {2, 3};
  static const int32_t both[] = {0, 1};
  sealpoint_error* error = NULL;
  sealpoint_tensor_spec spec;
  sealpoint_region region;
  uint64_t offset[2] = {0, 0};
  offset[0] = (uint64_t)self->rank * 2;
  sealpoint_init(&spec, sizeof spec);
  spec.name = str("w");
  spec.dtype = SEALPOINT_DTYPE_F32;
  spec.shape = w_shape;
  spec.ndim = 2;
  sealpoint_init(&region, sizeof region);
  region.ndim = 2;
  region.offset = offset;
  region.extent = extent;
  CHECK_OK(sealpoint_declaration_set_attributes(declaration, spec.name, &version, 1, &error));
  CHECK_OK(sealpoint_declaration_add(declaration, &spec, &region, NULL, 0, &slots[0], &error));
  spec.name = str("b");
  spec.shape = b_shape;
  spec.ndim = 1;
  CHECK_OK(sealpoint_declaration_add(declaration, &spec, NULL, both, 2, &slots[1], &error));
  if (self->rank == 0) {
    CHECK_OK(sealpoint_declaration_add_object(declaration, str("rng"), str("text/plain"),
                                              SEALPOINT_CODEC_NONE, &error));
  }
}

static void bind(rank_work* self, sealpoint_sources* sources, const uint64_t* slots) {
  static const sealpoint_bytes seed = {"seed", 4};
  sealpoint_error* error = NULL;
  int64_t shape[] = {2, 3}, wrong[] = {6};
  sealpoint_dl_tensor array;
  sealpoint_source source;
  int i;
  for (i = 0; i < 6; ++i) self->rows[i] = (float)(self->rank * 6 + i);
  for (i = 0; i < 4; ++i) self->shared[i] = (float)(100 + i);
  memset(&array, 0, sizeof array);
  array.data = self->rows;
  array.device.device_type = 1;
  array.dtype.code = 2;
  array.dtype.bits = 32;
  array.dtype.lanes = 1;
  array.ndim = 1;
  array.shape = wrong;
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "expected [2, 3]",
              sealpoint_sources_bind_dlpack(sources, slots[0], &array, NULL, &error));
  array.ndim = 2;
  array.shape = shape;
  CHECK_OK(sealpoint_sources_bind_dlpack(sources, slots[0], &array, NULL, &error));
  sealpoint_init(&source, sizeof source);
  source.data = self->shared;
  source.size_bytes = sizeof self->shared;
  CHECK_OK(sealpoint_sources_bind(sources, slots[1], &source, &error));
  if (self->rank == 0) {
    CHECK_OK(sealpoint_sources_set_attributes(sources, &version, 1, &error));
    CHECK_OK(sealpoint_sources_bind_object(sources, str("rng"), seed, &error));
  }
}

static void* run_rank(void* argument) {
  rank_work* self = (rank_work*)argument;
  sealpoint_error* error = NULL;
  sealpoint_engine* engine = NULL;
  sealpoint_saver* saver = NULL;
  sealpoint_declaration* declaration = NULL;
  sealpoint_sources* sources = NULL;
  sealpoint_saver_options options;
  uint64_t slots[2] = {99, 99};
  sealpoint_init(&options, sizeof options);
  options.deadline_ms = 60000;
  options.background_deadline_ms = -1;
  CHECK_OK(sealpoint_engine_create(NULL, &engine, &error));
  options.blob_size_max_bytes = 1;
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_saver_create(engine, self->communicator, &options, &saver, &error));
  options.blob_size_max_bytes = 0;
  CHECK_OK(sealpoint_saver_create(engine, self->communicator, &options, &saver, &error));
  sealpoint_engine_free(engine);  // both are held by the saver
  sealpoint_communicator_free(self->communicator);
  CHECK_OK(sealpoint_declaration_create(&declaration, &error));
  declare(self, declaration, slots);
  CHECK(slots[0] == 0 && slots[1] == 1);
  CHECK_OK(sealpoint_sources_create(declaration, &sources, &error));
  CHECK_ERROR(
      SEALPOINT_INVALID_ARGUMENT, "has sources",
      sealpoint_declaration_add_object(declaration, str("late"), str("text/plain"), 0, &error));
  bind(self, sources, slots);
  sealpoint_declaration_free(declaration);
  self->work(self, saver, sources);
  sealpoint_sources_free(sources);
  sealpoint_saver_free(saver);
  return NULL;
}

static void run_ranks(sealpoint_communicator** communicators,
                      void (*work)(rank_work*, sealpoint_saver*, sealpoint_sources*)) {
  pthread_t threads[kRanks];
  rank_work ranks[kRanks];
  int i;
  memset(ranks, 0, sizeof ranks);
  for (i = 0; i < kRanks; ++i) {
    ranks[i].rank = i;
    ranks[i].communicator = communicators[i];
    ranks[i].work = work;
    CHECK(pthread_create(&threads[i], NULL, run_rank, &ranks[i]) == 0);
  }
  for (i = 0; i < kRanks; ++i) pthread_join(threads[i], NULL);
}

static void check_saved(sealpoint_string directory, uint64_t step) {
  sealpoint_error* error = NULL;
  sealpoint_checkpoint* checkpoint = NULL;
  sealpoint_checkpoint_info info;
  sealpoint_dl_managed_tensor* w = NULL;
  sealpoint_attributes* attributes[2] = {NULL, NULL};
  sealpoint_attribute found;
  int i;
  sealpoint_init(&info, sizeof info);
  CHECK_OK(sealpoint_checkpoint_open(directory, NULL, &checkpoint, &error));
  CHECK_OK(sealpoint_checkpoint_get_info(checkpoint, &info, &error));
  CHECK(info.step == step && info.tensor_count == 2 && info.object_count == 1);
  CHECK(info.mesh_axis_count == 1);
  CHECK_OK(sealpoint_checkpoint_read_dlpack(checkpoint, str("w"), NULL, NULL, &w, &error));
  for (i = 0; i < 12; ++i) CHECK(((float*)w->dl_tensor.data)[i] == (float)i);
  w->deleter(w);
  CHECK_OK(sealpoint_checkpoint_attributes(checkpoint, &attributes[0], &error));
  CHECK_OK(sealpoint_checkpoint_tensor_attributes(checkpoint, str("w"), &attributes[1], &error));
  for (i = 0; i < 2; ++i) {
    CHECK_OK(sealpoint_attributes_get(attributes[i], 0, &found, &error));
    CHECK(equals(found.name, "version") && *(const int64_t*)found.values == version_value);
    sealpoint_attributes_free(attributes[i]);
  }
  sealpoint_checkpoint_free(checkpoint);
}

static const sealpoint_mesh_axis data_axis = {{"data", 4}, kRanks};

static sealpoint_save_options options_of(const char* path, uint64_t step) {
  sealpoint_save_options options;
  sealpoint_init(&options, sizeof options);
  options.path = str(path);
  options.in_series = 1;
  options.has_step = 1;
  options.step = step;
  options.mesh_axes = &data_axis;
  options.mesh_axis_count = 1;
  return options;
}

static char series_path[512];

static void save_both_ways(rank_work* self, sealpoint_saver* saver, sealpoint_sources* sources) {
  sealpoint_error* error = NULL;
  sealpoint_save_options options = options_of(series_path, 1);
  sealpoint_commit_info info;
  sealpoint_buffer* directory = NULL;
  sealpoint_pending_save* pending = NULL;
  char path[512];
  int32_t state;
  sealpoint_init(&info, sizeof info);
  CHECK_OK(sealpoint_saver_save(saver, &options, sources, &info, &directory, &error));
  CHECK(info.step == 1 && info.tensor_count == 2 && info.sequence == 1);
  snprintf(path, sizeof path, "%.*s", (int)sealpoint_buffer_bytes(directory).size,
           (const char*)sealpoint_buffer_bytes(directory).data);
  sealpoint_buffer_free(directory);
  check_saved(str(path), 1);

  options.step = 2;
  CHECK_OK(sealpoint_saver_save_async(saver, &options, sources, &pending, &error));
  state = sealpoint_pending_save_poll(pending);
  CHECK(state == SEALPOINT_SAVE_RUNNING || state == SEALPOINT_SAVE_COMMITTED);
  CHECK_OK(sealpoint_pending_save_wait(pending, &info, NULL, &error));
  CHECK(info.step == 2 && info.sequence == 2);
  CHECK(sealpoint_pending_save_poll(pending) == SEALPOINT_SAVE_COMMITTED);
  sealpoint_pending_save_free(pending);

  // The ranks disagree: the same error on both.
  options = options_of(series_path, 10 + (uint64_t)self->rank);
  CHECK(sealpoint_saver_save(saver, &options, sources, NULL, NULL, &error) ==
        SEALPOINT_INVALID_ARGUMENT);
  CHECK(has_text(error, "step"));
  sealpoint_error_free(error);
}

// Rank 1 passes what is wrong. Nobody waits for it, and both hear of it.
static void mistake_of_one(rank_work* self, sealpoint_saver* saver, sealpoint_sources* sources) {
  sealpoint_error* error = NULL;
  sealpoint_pending_save* pending = NULL;
  sealpoint_commit_info info;
  int is_async, what;
  for (what = 0; what < 5; ++what) {
    static const char* const texts[] = {"struct_size is 4", "options", "path", "sources", "step"};
    const int is_wrong = self->rank == 1;
    sealpoint_save_options options = options_of(series_path, 9);
    sealpoint_init(&info, sizeof info);
    if (is_wrong && what == 0) info.struct_size = 4;
    if (is_wrong && what == 2) options.path.data = NULL;
    if (what == 4) options.has_step = 0;  // on all ranks
    for (is_async = what == 0 ? 0 : 1; is_async >= 0; --is_async) {
      const sealpoint_save_options* given = is_wrong && what == 1 ? NULL : &options;
      const sealpoint_sources* bound = is_wrong && what == 3 ? NULL : sources;
      int32_t code = is_async ? sealpoint_saver_save_async(saver, given, bound, &pending, &error)
                              : sealpoint_saver_save(saver, given, bound, &info, NULL, &error);
      if (is_async && code == SEALPOINT_OK) {
        code = sealpoint_pending_save_wait(pending, NULL, NULL, &error);
        sealpoint_pending_save_free(pending);
      }
      CHECK(code == SEALPOINT_INVALID_ARGUMENT && has_text(error, texts[what]));
      sealpoint_error_free(error);
      error = NULL;
    }
  }
}

static void save_over_broken(rank_work* self, sealpoint_saver* saver, sealpoint_sources* sources) {
  sealpoint_error* error = NULL;
  sealpoint_save_options options = options_of(series_path, 3);
  sealpoint_pending_save* pending = NULL;
  (void)self;
  CHECK_ERROR(SEALPOINT_COMM, "the switch is off",
              sealpoint_saver_save(saver, &options, sources, NULL, NULL, &error));
  CHECK(sealpoint_saver_save_async(saver, &options, sources, &pending, NULL) != SEALPOINT_OK);
  CHECK(pending == NULL);
}

// Beside a marker that cannot be read.
static void save_if_asked(rank_work* self, sealpoint_saver* saver, sealpoint_sources* sources) {
  sealpoint_error* error = NULL;
  sealpoint_save_options options = options_of(series_path, 7);
  (void)self;
  options.allow_fallback = 1;
  options.struct_size = offsetof(sealpoint_save_options, allow_fallback);  // of an older program
  CHECK_ERROR(SEALPOINT_CORRUPT, "allow_fallback",
              sealpoint_saver_save(saver, &options, sources, NULL, NULL, &error));
  options.struct_size = sizeof options;
  CHECK_OK(sealpoint_saver_save(saver, &options, sources, NULL, NULL, &error));
}

static void cancel_one(rank_work* self, sealpoint_saver* saver, sealpoint_sources* sources) {
  sealpoint_error* error = NULL;
  sealpoint_save_options options = options_of(series_path, 4);
  sealpoint_pending_save* pending = NULL;
  int32_t code;
  CHECK_OK(sealpoint_saver_save_async(saver, &options, sources, &pending, &error));
  if (self->rank == 1) sealpoint_pending_save_cancel(pending);
  code = sealpoint_pending_save_wait(pending, NULL, NULL, NULL);
  CHECK(code == SEALPOINT_OK || code == SEALPOINT_CANCELLED);
  sealpoint_pending_save_free(pending);
}

static void write_marker_of_nothing(const char* directory) {
  sealpoint_error* error = NULL;
  char path[600];
  FILE* file;
  CHECK_OK(sealpoint_create_directories(str(directory), &error));
  snprintf(path, sizeof path, "%s/COMMIT", directory);
  file = fopen(path, "wb");
  CHECK(file != NULL && fputs("x", file) >= 0 && fclose(file) == 0);
}

static const char* expected_text;
static int32_t expected_code;

static void save_async_fails(rank_work* self, sealpoint_saver* saver, sealpoint_sources* sources) {
  sealpoint_error* error = NULL;
  sealpoint_save_options options = options_of(series_path, 5);
  sealpoint_pending_save* pending = NULL;
  (void)self;
  CHECK_ERROR(expected_code, expected_text,
              sealpoint_saver_save_async(saver, &options, sources, &pending, &error));
  CHECK(pending == NULL);
}

static void save_fails(rank_work* self, sealpoint_saver* saver, sealpoint_sources* sources) {
  sealpoint_error* error = NULL;
  sealpoint_save_options options = options_of(series_path, 6);
  (void)self;
  CHECK_ERROR(expected_code, expected_text,
              sealpoint_saver_save(saver, &options, sources, NULL, NULL, &error));
}

// What rank 1 alone failed with before the save. Nobody waits for it, and both hear of it.
static void fails_before(rank_work* self, sealpoint_saver* saver, sealpoint_sources* sources) {
  static const sealpoint_bytes seed = {"seed", 4};
  sealpoint_error* error = NULL;
  sealpoint_save_options options = options_of(series_path, 7);
  if (self->rank == 1) {
    CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
               sealpoint_sources_bind_object(sources, str("other"), seed, &error));
  }
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "object was never declared [object other, rank 1",
              sealpoint_saver_save(saver, &options, sources, NULL, NULL, &error));
}

// The same of mistakes that the library does not see: an argument that is no tensor, no memory.
// Each is kept until the save, but for a slot that is bound then.
static void mistakes_are_kept(sealpoint_saver* saver) {
  static const uint64_t shape[] = {0, 3}, extent[] = {0, 3}, offset[] = {2, 0};
  sealpoint_error* error = NULL;
  sealpoint_declaration* declaration = NULL;
  sealpoint_sources* sources = NULL;
  sealpoint_save_options options = options_of(series_path, 8);
  sealpoint_tensor_spec spec;
  sealpoint_region region;
  sealpoint_source source;
  uint64_t slot = 99;
  sealpoint_init(&spec, sizeof spec);
  spec.name = str("w");
  spec.dtype = SEALPOINT_DTYPE_F32;
  spec.shape = shape;
  spec.ndim = 2;
  sealpoint_init(&region, sizeof region);
  region.ndim = 2;
  region.offset = offset;
  region.extent = extent;
  CHECK_OK(sealpoint_declaration_create(&declaration, &error));
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "leaves dimension 0",
              sealpoint_declaration_add(declaration, &spec, &region, NULL, 0, NULL, &error));
  CHECK_OK(sealpoint_declaration_add(declaration, &spec, NULL, NULL, 0, &slot, &error));
  CHECK_OK(sealpoint_sources_create(declaration, &sources, &error));
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "leaves dimension 0",
              sealpoint_saver_save(saver, &options, sources, NULL, NULL, &error));
  sealpoint_sources_free(sources);
  sealpoint_declaration_free(declaration);
  CHECK_OK(sealpoint_declaration_create(&declaration, &error));
  CHECK_OK(sealpoint_declaration_add(declaration, &spec, NULL, NULL, 0, &slot, &error));
  CHECK_OK(sealpoint_sources_create(declaration, &sources, &error));
  sealpoint_init(&source, sizeof source);
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "source",
              sealpoint_sources_bind(sources, slot, NULL, &error));
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "source",
              sealpoint_saver_save(saver, &options, sources, NULL, NULL, &error));
  CHECK_OK(sealpoint_sources_bind(sources, slot, &source, &error));
  CHECK_OK(sealpoint_saver_save(saver, &options, sources, NULL, NULL, &error));
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_sources_bind(sources, slot, &source, &error));
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "bound twice",
              sealpoint_saver_save(saver, &options, sources, NULL, NULL, &error));
  sealpoint_sources_free(sources);
  sealpoint_declaration_free(declaration);
}

static void check_mistakes_alone(void) {
  sealpoint_error* error = NULL;
  sealpoint_engine* engine = NULL;
  sealpoint_communicator* communicator = NULL;
  sealpoint_saver* saver = NULL;
  CHECK_OK(sealpoint_engine_create(NULL, &engine, &error));
  CHECK_OK(sealpoint_communicator_self(&communicator, &error));
  CHECK_OK(sealpoint_saver_create(engine, communicator, NULL, &saver, &error));
  sealpoint_engine_free(engine);
  sealpoint_communicator_free(communicator);
  mistakes_are_kept(saver);
  sealpoint_saver_free(saver);
}

static void with_groups(void (*work)(rank_work*, sealpoint_saver*, sealpoint_sources*),
                        const char* broken, int mistake) {
  sealpoint_error* error = NULL;
  sealpoint_communicator* communicators[kRanks] = {NULL};
  group* of = group_create(kRanks);
  int i;
  for (i = 0; i < kRanks; ++i) {
    const sealpoint_communicator_table table = group_table(of, i, 1);
    CHECK_OK(sealpoint_communicator_create(&table, &communicators[i], &error));
  }
  if (broken != NULL) group_break(of, broken);
  group_misbehave(of, mistake);
  run_ranks(communicators, work);
  CHECK(group_open_count(of) == 0 && group_deadline_ms(of) == 60000);
  CHECK((group_progress_count(of) > 0) == (mistake == kDuplicateProgresses));
  group_free(of);
}

static void with_mistake(void (*work)(rank_work*, sealpoint_saver*, sealpoint_sources*),
                         int mistake, int32_t code, const char* text) {
  expected_code = code;
  expected_text = text;
  with_groups(work, NULL, mistake);
}

static void check_tables(void) {
  sealpoint_error* error = NULL;
  sealpoint_communicator* communicator = NULL;
  group* of = group_create(1);
  sealpoint_communicator_table table = group_table(of, 0, 0);
  sealpoint_buffer* directory = NULL;
  table.rank = 1;
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "rank is 1 of 1",
              sealpoint_communicator_create(&table, &communicator, &error));
  table.rank = 0;
  table.gather = NULL;
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "NULL",
              sealpoint_communicator_create(&table, &communicator, &error));
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_communicator_create(NULL, &communicator, &error));
  CHECK(group_open_count(of) == 1);
  table.release(table.user);
  group_free(of);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_communicator_threads(0, &communicator, &error));
  CHECK(sealpoint_call_receive(NULL, 0, 1) == NULL);
  sealpoint_call_set_message(NULL, str("x"));
  sealpoint_communicator_free(NULL);
  sealpoint_saver_free(NULL);
  sealpoint_declaration_free(NULL);
  sealpoint_sources_free(NULL);
  sealpoint_pending_save_free(NULL);
  sealpoint_pending_save_cancel(NULL);
  CHECK(sealpoint_pending_save_poll(NULL) == SEALPOINT_SAVE_FAILED);
  directory = (sealpoint_buffer*)&table;  // whatever is there
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_saver_save(NULL, NULL, NULL, NULL, &directory, &error));
  CHECK(directory == NULL);
  directory = (sealpoint_buffer*)&table;
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT,
             sealpoint_pending_save_wait(NULL, NULL, &directory, &error));
  CHECK(directory == NULL);
  CHECK_OK(sealpoint_communicator_self(&communicator, &error));
  sealpoint_communicator_free(communicator);
}

void test_saver(void) {
  sealpoint_error* error = NULL;
  sealpoint_communicator* communicators[kRanks] = {NULL};
  check_tables();
  CHECK_OK(sealpoint_create_directories(in_work_dir("saved"), &error));
  snprintf(series_path, sizeof series_path, "%s", in_work_dir("saved/table").data);
  with_groups(save_both_ways, NULL, 0);
  with_groups(mistake_of_one, NULL, 0);
  with_groups(fails_before, NULL, 0);
  check_mistakes_alone();
  with_groups(cancel_one, NULL, kDuplicateProgresses);
  with_groups(save_over_broken, "the switch is off", 0);
  with_mistake(save_fails, kTakesNothing, SEALPOINT_COMM, "received nothing from rank 0");
  with_mistake(save_fails, kTakesWrongly, SEALPOINT_TIMEOUT, "failed with code 15");
  with_mistake(save_fails, kReduceFails, SEALPOINT_TIMEOUT, "failed with code 15");
  with_mistake(save_fails, kReduceSigned, SEALPOINT_COMM, "maximum of 1 and 2^63");
  with_mistake(save_async_fails, kDuplicateFails, SEALPOINT_TIMEOUT, "failed with code 15");
  with_mistake(save_async_fails, kDuplicateIsNot, SEALPOINT_COMM, "has no function interrupt");
  with_mistake(save_async_fails, kDuplicateIsAnother, SEALPOINT_COMM, "rank is 2 of 2");
  with_mistake(save_async_fails, kDuplicateWaits, SEALPOINT_COMM, "progress is NULL");
  snprintf(series_path, sizeof series_path, "%s", in_work_dir("saved/damaged").data);
  write_marker_of_nothing(in_work_dir("saved/damaged/1").data);
  with_groups(save_if_asked, NULL, 0);
  snprintf(series_path, sizeof series_path, "%s", in_work_dir("saved/threads").data);
  CHECK_OK(sealpoint_communicator_threads(kRanks, communicators, &error));
  run_ranks(communicators, save_both_ways);
}
