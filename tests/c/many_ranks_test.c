// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include "ranks_cases.h"

enum { kRanks = 3 };

typedef struct thread_rank {
  int rank;
  sealpoint_communicator* all;
  sealpoint_communicator* fewer;
} thread_rank;

static char directory[300];

static void* run_thread(void* argument) {
  thread_rank* self = (thread_rank*)argument;
  run_rank_cases(self->all, self->fewer, self->rank, kRanks, directory);
  sealpoint_communicator_free(self->all);
  sealpoint_communicator_free(self->fewer);
  return NULL;
}

static void check_layouts(void) {
  static const uint64_t shape[] = {4};
  sealpoint_error* error = NULL;
  sealpoint_layout* layout = NULL;
  sealpoint_layout_info info;
  sealpoint_region part;
  const sealpoint_mesh_axis axis = {{"x", 1}, 2};
  const sealpoint_string rules[] = {{"replicate(x)", 12}, {"cut(x)", 6}};
  const int32_t invalid = SEALPOINT_INVALID_ARGUMENT;
  sealpoint_init(&info, sizeof info);
  sealpoint_init(&part, sizeof part);
  CHECK_OK(sealpoint_layout_create(&axis, 1, 1, shape, 1, rules, 1, &layout, &error));
  CHECK_OK(sealpoint_layout_get_info(layout, &info, &error));
  CHECK(info.replica_count == 2 && info.element_count == 4);
  CHECK_CODE(invalid, sealpoint_layout_part(layout, 1, &part, &error));
  CHECK_CODE(invalid, sealpoint_layout_part(layout, 0, NULL, &error));
  CHECK_CODE(invalid, sealpoint_layout_get_info(NULL, &info, &error));
  sealpoint_layout_free(layout);
  CHECK_CODE(invalid, sealpoint_layout_create(&axis, 1, 2, shape, 1, rules, 1, &layout, &error));
  CHECK(layout == NULL);
  CHECK_ERROR(invalid, "cut(x)",
              sealpoint_layout_create(&axis, 1, 0, shape, 1, rules + 1, 1, &layout, &error));
  CHECK_ERROR(invalid, "rules is NULL",
              sealpoint_layout_create(&axis, 1, 0, shape, 1, NULL, 1, &layout, &error));
  CHECK_ERROR(invalid, "mesh_axes is NULL",
              sealpoint_layout_create(NULL, 1, 0, shape, 1, rules, 1, &layout, &error));
  CHECK_CODE(invalid, sealpoint_layout_create(&axis, 1, 0, shape, 1, rules, 1, NULL, &error));
}

static void check_null(void) {
  sealpoint_error* error = NULL;
  sealpoint_reader* reader = NULL;
  sealpoint_promotions* promotions = NULL;
  sealpoint_declaration* declaration = NULL;
  sealpoint_sources* sources = NULL;
  sealpoint_read_request* request = NULL;
  sealpoint_tensor_spec spec;
  sealpoint_source source;
  const int32_t invalid = SEALPOINT_INVALID_ARGUMENT;
  sealpoint_init(&spec, sizeof spec);
  sealpoint_init(&source, sizeof source);
  spec.name = str("w");
  spec.dtype = SEALPOINT_DTYPE_F32;
  CHECK_CODE(invalid, sealpoint_reader_open(NULL, str("x"), NULL, &reader, &error));
  CHECK_CODE(invalid, sealpoint_reader_open_newest(NULL, str("x"), NULL, 0, &reader, &error));
  CHECK_CODE(invalid, sealpoint_reader_load(NULL, NULL, NULL, NULL, NULL, &error));
  CHECK_CODE(invalid, sealpoint_reader_read_object(NULL, str("x"), NULL, &error));
  CHECK_CODE(invalid, sealpoint_reader_finding(NULL, 0, NULL, NULL, &error));
  CHECK_CODE(invalid, sealpoint_reader_skipped(NULL, 0, NULL, NULL, &error));
  CHECK(sealpoint_reader_skipped_count(NULL) == 0 && sealpoint_reader_checkpoint(NULL) == NULL);
  CHECK_CODE(invalid, sealpoint_communicator_agree(NULL, NULL, &error));
  CHECK_CODE(invalid, sealpoint_saver_take_promotions(NULL, &promotions, &error));
  CHECK(sealpoint_saver_wait_for_promotions(NULL, 0) == 0);
  CHECK_CODE(invalid,
             sealpoint_resume_promotions(NULL, str("a"), str("b"), 0, &promotions, &error));
  CHECK_CODE(invalid, sealpoint_promotions_get(NULL, 0, NULL, &error));
  CHECK(sealpoint_promotions_count(NULL) == 0);
  sealpoint_layout_free(NULL);
  sealpoint_reader_free(NULL);
  sealpoint_promotions_free(NULL);
  CHECK_CODE(invalid, sealpoint_declaration_add_layout(NULL, &spec, NULL, &error));
  CHECK_CODE(invalid, sealpoint_sources_bind_layout(NULL, str("w"), NULL, NULL, &error));
  CHECK_CODE(invalid, sealpoint_read_request_add_layout(NULL, str("w"), NULL, NULL, &error));
  CHECK_OK(sealpoint_read_request_create(&request, &error));
  CHECK_ERROR(invalid, "layout is NULL",
              sealpoint_read_request_add_layout(request, str("w"), NULL, NULL, &error));
  sealpoint_read_request_free(request);
  CHECK_OK(sealpoint_declaration_create(&declaration, &error));
  CHECK_ERROR(invalid, "layout is NULL",
              sealpoint_declaration_add_layout(declaration, &spec, NULL, &error));
  CHECK_OK(sealpoint_sources_create(declaration, &sources, &error));
  CHECK_ERROR(invalid, "layout is NULL",
              sealpoint_sources_bind_layout(sources, str("w"), NULL, &source, &error));
  sealpoint_sources_free(sources);
  sealpoint_declaration_free(declaration);
  CHECK(sealpoint_error_create(SEALPOINT_TIMEOUT, str("late"), &error) == SEALPOINT_TIMEOUT);
  CHECK(has_text(error, "Timeout: late"));
  sealpoint_error_free(error);
  CHECK(sealpoint_error_create(99, str("x"), NULL) == SEALPOINT_INTERNAL);
  CHECK(sealpoint_error_create(SEALPOINT_OK, str("x"), NULL) == SEALPOINT_INTERNAL);
}

void test_many_ranks(void) {
  sealpoint_error* error = NULL;
  sealpoint_communicator* all[kRanks] = {NULL};
  sealpoint_communicator* fewer[kRanks] = {NULL};
  pthread_t threads[kRanks];
  thread_rank ranks[kRanks];
  int i;
  check_layouts();
  check_null();
  snprintf(directory, sizeof directory, "%s", in_work_dir("many").data);
  CHECK_OK(sealpoint_create_directories(str(directory), &error));
  CHECK_OK(sealpoint_communicator_threads(kRanks, all, &error));
  CHECK_OK(sealpoint_communicator_threads(kRanks - 1, fewer, &error));
  for (i = 0; i < kRanks; ++i) {
    ranks[i].rank = i;
    ranks[i].all = all[i];
    ranks[i].fewer = fewer[i];
    CHECK(pthread_create(&threads[i], NULL, run_thread, &ranks[i]) == 0);
  }
  for (i = 0; i < kRanks; ++i) pthread_join(threads[i], NULL);
}
