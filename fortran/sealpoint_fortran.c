// SPDX-License-Identifier: Apache-2.0
// The part of the Fortran module that needs C: array descriptors, and calls of the C API. Compiled
// once per program, with its MPI and the companion C compiler of its Fortran compiler.
//
// Fortran stores the first dimension fastest, and Sealpoint the last one. The dimensions of every
// array are therefore reversed here, and nowhere else.
#include <ISO_Fortran_binding.h>
#include <complex.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sealpoint_mpi.h"
#include "sealpoint_ranks.h"

// One array of a state. Dimensions are in the order of Sealpoint.
typedef struct item {
  struct item* next;
  sealpoint_tensor_spec spec;
  sealpoint_region region;
  sealpoint_destination memory;
  uint64_t shape[CFI_MAX_RANK], offset[CFI_MAX_RANK], extent[CFI_MAX_RANK];
  int64_t strides[CFI_MAX_RANK];
  char name[];
} item;

typedef struct state {
  item* first;
  item** last;
  sealpoint_error* failure;            // first error of sealpoint_fortran_add
  sealpoint_declaration* declaration;  // made by the first save, and kept for the next ones
  sealpoint_sources* sources;
} state;

typedef struct job {
  sealpoint_communicator* communicator;
  sealpoint_engine* engine;
  sealpoint_saver* saver;
  int rank;
} job;

static sealpoint_string text(const char* data, int64_t size) {
  sealpoint_string string;
  string.data = data;
  string.size = (uint64_t)size;
  return string;
}

static int32_t fail(int32_t code, const char* message, sealpoint_error** error) {
  return sealpoint_error_create(code, text(message, (int64_t)strlen(message)), error);
}

// ---- States -------------------------------------------------------------------------------------

static uint32_t dtype_of(const CFI_cdesc_t* array) {
  static const struct {
    CFI_type_t type;
    size_t size;
    uint32_t dtype;
  } known[] = {{CFI_type_float, sizeof(float), SEALPOINT_DTYPE_F32},
               {CFI_type_double, sizeof(double), SEALPOINT_DTYPE_F64},
               {CFI_type_int8_t, 1, SEALPOINT_DTYPE_INT8},
               {CFI_type_int16_t, 2, SEALPOINT_DTYPE_INT16},
               {CFI_type_int32_t, 4, SEALPOINT_DTYPE_INT32},
               {CFI_type_int64_t, 8, SEALPOINT_DTYPE_INT64},
               {CFI_type_float_Complex, sizeof(float complex), SEALPOINT_DTYPE_COMPLEX64},
               {CFI_type_double_Complex, sizeof(double complex), SEALPOINT_DTYPE_COMPLEX128},
               {CFI_type_Bool, sizeof(_Bool), SEALPOINT_DTYPE_BOOL}};
  size_t i;
  for (i = 0; i < sizeof known / sizeof known[0]; ++i) {
    if (array->type == known[i].type && array->elem_len == known[i].size) return known[i].dtype;
  }
  return SEALPOINT_DTYPE_NONE;
}

static item* new_item(const char* name, int64_t name_size) {
  item* made = (item*)calloc(1, sizeof(item) + (size_t)name_size + 1);
  if (made == NULL) return NULL;
  memcpy(made->name, name, (size_t)name_size);
  sealpoint_init(&made->spec, sizeof made->spec);
  sealpoint_init(&made->region, sizeof made->region);
  sealpoint_init(&made->memory, sizeof made->memory);
  made->spec.name = text(made->name, name_size);
  made->spec.shape = made->shape;
  made->region.offset = made->offset;
  made->region.extent = made->extent;
  return made;
}

// The memory from the lowest address that the array has to the highest one.
static void set_memory(item* of, const CFI_cdesc_t* array) {
  int64_t below = 0, above = 0;
  int i, is_empty = 0;
  for (i = 0; i < array->rank; ++i) {
    const int64_t reach = array->dim[i].sm * (array->dim[i].extent - 1);
    of->strides[array->rank - 1 - i] = array->dim[i].sm;
    if (array->dim[i].extent == 0) is_empty = 1;
    if (reach < 0) below -= reach;
    if (reach > 0) above += reach;
  }
  of->memory.dtype = of->spec.dtype;
  if (is_empty) return;
  of->memory.data = (char*)array->base_addr - below;
  of->memory.size_bytes = (uint64_t)(below + above) + array->elem_len;
  of->memory.origin_bytes = (uint64_t)below;
  if (array->rank == 0 || CFI_is_contiguous(array)) return;
  of->memory.strides_bytes = of->strides;
  of->memory.stride_count = (uint32_t)array->rank;
}

// `shape` and `first` are of the whole array, in the order of Fortran; NULL: `array` is the whole.
static int32_t set_place(item* of, const CFI_cdesc_t* array, const int64_t* shape,
                         const int64_t* first, sealpoint_error** error) {
  int i;
  of->spec.ndim = of->region.ndim = (uint32_t)array->rank;
  for (i = 0; i < array->rank; ++i) {
    const int reversed = array->rank - 1 - i;
    of->extent[reversed] = (uint64_t)array->dim[i].extent;
    of->shape[reversed] = shape == NULL ? of->extent[reversed] : (uint64_t)shape[i];
    if (first != NULL) of->offset[reversed] = (uint64_t)first[i] - 1;
    if (array->dim[i].extent < 0) {
      return fail(SEALPOINT_INVALID_ARGUMENT, "an array of assumed size has no extent", error);
    }
    if ((shape != NULL && shape[i] < 0) || (first != NULL && first[i] < 1)) {
      return fail(SEALPOINT_INVALID_ARGUMENT,
                  "an element of shape is negative, or an element of first is less than 1", error);
    }
  }
  return SEALPOINT_OK;
}

static int32_t add(state* to, const char* name, int64_t name_size, const CFI_cdesc_t* array,
                   int32_t ndim, const int64_t* shape, const int64_t* first,
                   sealpoint_error** error) {
  int32_t code;
  item* made;
  if (to->declaration != NULL) {
    return fail(SEALPOINT_INVALID_ARGUMENT, "the state was saved; clear it before it changes",
                error);
  }
  if (shape != NULL && ndim != array->rank) {
    return fail(SEALPOINT_INVALID_ARGUMENT,
                "shape and first must have one element per dimension of the array", error);
  }
  if (array->base_addr == NULL) {
    return fail(SEALPOINT_INVALID_ARGUMENT, "the array is not allocated", error);
  }
  if (dtype_of(array) == SEALPOINT_DTYPE_NONE) {
    return fail(SEALPOINT_UNSUPPORTED,
                "the array's type has no dtype; store LOGICAL(C_BOOL), and text as INTEGER", error);
  }
  made = new_item(name, name_size);
  if (made == NULL) return fail(SEALPOINT_INTERNAL, "out of memory", error);
  made->spec.dtype = dtype_of(array);
  code = set_place(made, array, shape, first, error);
  if (code != SEALPOINT_OK) {
    free(made);
    return code;
  }
  set_memory(made, array);
  *to->last = made;
  to->last = &made->next;
  return SEALPOINT_OK;
}

state* sealpoint_fortran_state_new(void) {
  state* made = (state*)calloc(1, sizeof(state));
  if (made != NULL) made->last = &made->first;
  return made;
}

void sealpoint_fortran_state_free(state* of) {
  if (of == NULL) return;
  sealpoint_sources_free(of->sources);
  sealpoint_declaration_free(of->declaration);
  sealpoint_error_free(of->failure);
  while (of->first != NULL) {
    item* next = of->first->next;
    free(of->first);
    of->first = next;
  }
  free(of);
}

// An error is kept: the next save or load fails with it on all ranks.
void sealpoint_fortran_add(state* to, const char* name, int64_t name_size, CFI_cdesc_t* array,
                           int32_t ndim, const int64_t* shape, const int64_t* first) {
  sealpoint_error* error = NULL;
  if (to == NULL) return;  // which the next save or load says
  (void)add(to, name, name_size, array, ndim, shape, first, &error);
  if (to->failure == NULL) {
    to->failure = error;
  } else {
    sealpoint_error_free(error);
  }
}

// Creates declaration and sources, which keep what is wrong with an array until the save.
static int32_t declare(state* of, sealpoint_error** error) {
  const item* each;
  uint64_t slot = 0;
  int32_t code;
  if (of->sources != NULL) return SEALPOINT_OK;
  if (of->declaration == NULL) {
    code = sealpoint_declaration_create(&of->declaration, error);
    if (code != SEALPOINT_OK) return code;
    for (each = of->first; each != NULL; each = each->next) {
      code = sealpoint_declaration_add(of->declaration, &each->spec, &each->region, NULL, 0, NULL,
                                       error);
      if (code != SEALPOINT_OK) return code;
    }
  }
  code = sealpoint_sources_create(of->declaration, &of->sources, error);
  if (code != SEALPOINT_OK) return code;
  for (each = of->first; each != NULL; each = each->next) {
    sealpoint_source source;
    sealpoint_init(&source, sizeof source);
    source.dtype = each->memory.dtype;
    source.data = each->memory.data;
    source.size_bytes = each->memory.size_bytes;
    source.strides_bytes = each->memory.strides_bytes;
    source.stride_count = each->memory.stride_count;
    source.origin_bytes = each->memory.origin_bytes;
    code = sealpoint_sources_bind(of->sources, slot++, &source, error);
    if (code != SEALPOINT_OK) return code;
  }
  return SEALPOINT_OK;
}

// ---- Jobs ---------------------------------------------------------------------------------------

// Collective. Makes this rank's outcome that of all ranks; frees `local`.
static int32_t agree(const job* of, sealpoint_error* local, sealpoint_error** error) {
  const int32_t code = sealpoint_communicator_agree(of->communicator, local, error);
  sealpoint_error_free(local);
  return code;
}

// What this rank has failed with before a save or load of the state.
static sealpoint_error* failure_of(const state* of) {
  sealpoint_error* error = NULL;
  if (of == NULL) (void)fail(SEALPOINT_INVALID_ARGUMENT, "nothing was added to the state", &error);
  if (of != NULL && of->failure != NULL) {
    const sealpoint_string message = sealpoint_error_message(of->failure);
    (void)sealpoint_error_create(sealpoint_error_code(of->failure), message, &error);
  }
  return error;
}

static int32_t check_is_open(const job* of, sealpoint_error** error) {
  return of != NULL ? SEALPOINT_OK : fail(SEALPOINT_INVALID_ARGUMENT, "the job is not open", error);
}

void sealpoint_fortran_close(job* of) {
  if (of == NULL) return;
  sealpoint_saver_free(of->saver);
  sealpoint_engine_free(of->engine);
  sealpoint_communicator_free(of->communicator);
  free(of);
}

int32_t sealpoint_fortran_open(MPI_Fint parent, int32_t keep_local, job** out,
                               sealpoint_error** error) {
  sealpoint_error* local = NULL;
  sealpoint_saver_options options;
  int32_t code;
  job* made = (job*)calloc(1, sizeof(job));
  *out = NULL;
  if (made == NULL) return fail(SEALPOINT_INTERNAL, "out of memory", error);
  code = sealpoint_communicator_mpi_f(parent, NULL, &made->communicator, error);
  if (code != SEALPOINT_OK) {
    free(made);
    return code;
  }
  MPI_Comm_rank(MPI_Comm_f2c(parent), &made->rank);
  sealpoint_init(&options, sizeof options);
  options.find_replicas = 1;
  options.compare_replicas = 1;
  options.keep_local = (uint32_t)keep_local;
  if (sealpoint_engine_create(NULL, &made->engine, &local) == SEALPOINT_OK) {
    (void)sealpoint_saver_create(made->engine, made->communicator, &options, &made->saver, &local);
  }
  code = agree(made, local, error);
  if (code == SEALPOINT_OK) {
    *out = made;
  } else {
    sealpoint_fortran_close(made);
  }
  return code;
}

int32_t sealpoint_fortran_save(job* of, state* what, const char* series, int64_t series_size,
                               int64_t step, const char* local, int64_t local_size,
                               sealpoint_error** error) {
  sealpoint_save_options options;
  sealpoint_error* own = NULL;
  int32_t code = check_is_open(of, error);
  if (code != SEALPOINT_OK) return code;
  own = failure_of(what);
  if (own == NULL) (void)declare(what, &own);
  code = agree(of, own, error);
  if (code != SEALPOINT_OK) return code;
  sealpoint_init(&options, sizeof options);
  options.path = text(series, series_size);
  options.in_series = 1;
  options.has_step = 1;
  options.step = (uint64_t)step;
  options.local = text(local, local_size);
  return sealpoint_saver_save(of->saver, &options, what->sources, NULL, NULL, error);
}

static int32_t fill_request(sealpoint_read_request* request, const state* of,
                            sealpoint_error** error) {
  const item* each;
  for (each = of->first; each != NULL; each = each->next) {
    sealpoint_item_options expected;
    int32_t code;
    sealpoint_init(&expected, sizeof expected);
    expected.expected_dtype = each->spec.dtype;
    expected.expected_shape = each->shape;
    expected.expected_ndim = each->spec.ndim;
    code = sealpoint_read_request_add(request, each->spec.name, &each->region, &each->memory,
                                      &expected, error);
    if (code != SEALPOINT_OK) return code;
  }
  return SEALPOINT_OK;
}

// Loads the newest checkpoint of a series; *step is -1 if there is none.
int32_t sealpoint_fortran_load(job* of, state* what, const char* series, int64_t series_size,
                               int32_t allow_fallback, int64_t* step, sealpoint_error** error) {
  sealpoint_reader* reader = NULL;
  sealpoint_read_request* request = NULL;
  sealpoint_checkpoint_info info;
  sealpoint_error* own = NULL;
  int32_t code = check_is_open(of, error);
  *step = -1;
  if (code != SEALPOINT_OK) return code;
  own = failure_of(what);
  if (own == NULL && sealpoint_read_request_create(&request, &own) == SEALPOINT_OK) {
    (void)fill_request(request, what, &own);
  }
  code = agree(of, own, error);
  if (code == SEALPOINT_OK) {
    code = sealpoint_reader_open_newest(of->communicator, text(series, series_size), NULL,
                                        allow_fallback, &reader, error);
  }
  if (code == SEALPOINT_OK && reader != NULL) {
    code = sealpoint_reader_load(reader, request, NULL, NULL, NULL, error);
  }
  if (code == SEALPOINT_OK && reader != NULL) {
    sealpoint_init(&info, sizeof info);
    code = sealpoint_checkpoint_get_info(sealpoint_reader_checkpoint(reader), &info, error);
    *step = (int64_t)info.step;
  }
  sealpoint_reader_free(reader);
  sealpoint_read_request_free(request);
  return code;
}

int32_t sealpoint_fortran_prune(job* of, const char* series, int64_t series_size, int32_t keep_last,
                                int64_t keep_every, sealpoint_error** error) {
  sealpoint_retention retention;
  sealpoint_error* own = NULL;
  int32_t code = check_is_open(of, error);
  if (code != SEALPOINT_OK) return code;
  sealpoint_init(&retention, sizeof retention);
  retention.keep_last = (uint32_t)keep_last;
  retention.keep_every_n_steps = (uint64_t)keep_every;
  if (of->rank == 0) {
    if (keep_last < 1 || keep_every < 0) {
      (void)fail(SEALPOINT_INVALID_ARGUMENT, "keep_last is less than 1, or keep_every negative",
                 &own);
    } else {
      (void)sealpoint_series_prune(text(series, series_size), &retention, NULL, NULL, &own);
    }
  }
  return agree(of, own, error);
}

int32_t sealpoint_fortran_resume_promotions(job* of, const char* local, int64_t local_size,
                                            const char* series, int64_t series_size,
                                            int32_t keep_local, sealpoint_error** error) {
  sealpoint_promotions* promotions = NULL;
  int32_t code = check_is_open(of, error);
  if (code != SEALPOINT_OK) return code;
  code = sealpoint_resume_promotions(of->communicator, text(local, local_size),
                                     text(series, series_size), keep_local, &promotions, error);
  sealpoint_promotions_free(promotions);
  return code;
}

int32_t sealpoint_fortran_wait_for_promotions(job* of, int64_t longest_ms) {
  return sealpoint_saver_wait_for_promotions(of == NULL ? NULL : of->saver, longest_ms);
}
