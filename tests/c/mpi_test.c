// SPDX-License-Identifier: Apache-2.0
// The C API over MPI, as a program in C uses it: the cases of ranks_cases.c, background saves in
// both ways in which MPI may be called, and wrong arguments. All ranks run it:
//   mpirun -n 4 mpi_c
#include <mpi.h>
#include <stdlib.h>

#include "ranks_cases.h"
#include "sealpoint_mpi.h"

static void check_arguments(int rank) {
  sealpoint_error* error = NULL;
  sealpoint_communicator* communicator = (sealpoint_communicator*)&rank;
  sealpoint_mpi_options options;
  const int32_t invalid = SEALPOINT_INVALID_ARGUMENT;
  CHECK_ERROR(invalid, "MPI_COMM_NULL",
              sealpoint_communicator_mpi(MPI_COMM_NULL, NULL, &communicator, &error));
  CHECK(communicator == NULL);
  CHECK_ERROR(invalid, "out is NULL",
              sealpoint_communicator_mpi(MPI_COMM_SELF, NULL, NULL, &error));
  sealpoint_init(&options, sizeof options);
  options.struct_size = 4;
  CHECK_ERROR(invalid, "struct_size is 4",
              sealpoint_communicator_mpi(MPI_COMM_SELF, &options, &communicator, &error));
  sealpoint_init(&options, sizeof options);
  options.message_max_bytes = UINT64_MAX;
  CHECK_ERROR(invalid, "message_max_bytes",
              sealpoint_communicator_mpi(MPI_COMM_SELF, &options, &communicator, &error));
  CHECK_OK(sealpoint_communicator_mpi_f(MPI_Comm_c2f(MPI_COMM_SELF), NULL, &communicator, &error));
  sealpoint_communicator_free(communicator);
}

// The others are told at their deadline that one rank does not come.
static void check_deadline(int rank, int size) {
  sealpoint_error* error = NULL;
  sealpoint_communicator* communicator = NULL;
  sealpoint_mpi_options options;
  sealpoint_init(&options, sizeof options);
  options.deadline_ms = 200;
  CHECK_OK(sealpoint_communicator_mpi(MPI_COMM_WORLD, &options, &communicator, &error));
  if (rank != size - 1) {
    CHECK_ERROR(SEALPOINT_TIMEOUT, "200 ms",
                sealpoint_communicator_agree(communicator, NULL, &error));
    CHECK_CODE(SEALPOINT_TIMEOUT, sealpoint_communicator_agree(communicator, NULL, &error));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  sealpoint_communicator_free(communicator);
}

static sealpoint_sources* sources_of(int rank, int size, const double* part) {
  sealpoint_error* error = NULL;
  sealpoint_declaration* declaration = NULL;
  sealpoint_sources* sources = NULL;
  sealpoint_tensor_spec spec;
  sealpoint_region region;
  sealpoint_source source;
  uint64_t shape[1], offset[1], slot = 9;
  const uint64_t extent[] = {2};
  shape[0] = 2 * (uint64_t)size;
  offset[0] = 2 * (uint64_t)rank;
  sealpoint_init(&spec, sizeof spec);
  sealpoint_init(&region, sizeof region);
  sealpoint_init(&source, sizeof source);
  spec.name = str("v");
  spec.dtype = SEALPOINT_DTYPE_F64;
  spec.shape = shape;
  spec.ndim = region.ndim = 1;
  region.offset = offset;
  region.extent = extent;
  source.data = part;
  source.size_bytes = 2 * sizeof *part;
  CHECK_OK(sealpoint_declaration_create(&declaration, &error));
  CHECK_OK(sealpoint_declaration_add(declaration, &spec, &region, NULL, 0, &slot, &error));
  CHECK_OK(sealpoint_sources_create(declaration, &sources, &error));
  CHECK_OK(sealpoint_sources_bind(sources, slot, &source, &error));
  sealpoint_declaration_free(declaration);
  return sources;
}

// Two saves in the background, the second of which one rank cancels.
static void save_in_background(int rank, int size, const char* series, uint32_t no_thread) {
  sealpoint_error* error = NULL;
  sealpoint_communicator* communicator = NULL;
  sealpoint_engine* engine = NULL;
  sealpoint_saver* saver = NULL;
  sealpoint_sources* sources = NULL;
  sealpoint_pending_save* pending = NULL;
  sealpoint_mpi_options mpi;
  sealpoint_save_options options;
  sealpoint_commit_info info;
  double part[2];
  int32_t code;
  sealpoint_init(&mpi, sizeof mpi);
  mpi.no_background_thread = no_thread;
  mpi.message_max_bytes = 512;
  sealpoint_init(&options, sizeof options);
  sealpoint_init(&info, sizeof info);
  options.path = str(series);
  options.in_series = 1;
  options.has_step = 1;
  options.step = 1;
  part[0] = part[1] = rank;
  sources = sources_of(rank, size, part);
  CHECK_OK(sealpoint_communicator_mpi(MPI_COMM_WORLD, &mpi, &communicator, &error));
  CHECK_OK(sealpoint_engine_create(NULL, &engine, &error));
  CHECK_OK(sealpoint_saver_create(engine, communicator, NULL, &saver, &error));
  CHECK_OK(sealpoint_saver_save_async(saver, &options, sources, &pending, &error));
  part[0] = -1;  // the state is copied
  while (sealpoint_pending_save_poll(pending) == SEALPOINT_SAVE_RUNNING) {
  }
  CHECK_OK(sealpoint_pending_save_wait(pending, &info, NULL, &error));
  CHECK(info.step == 1 && info.raw_bytes == 16 * (uint64_t)size);
  sealpoint_pending_save_free(pending);
  options.step = 2;
  CHECK_OK(sealpoint_saver_save_async(saver, &options, sources, &pending, &error));
  if (rank == size - 1) sealpoint_pending_save_cancel(pending);
  code = sealpoint_pending_save_wait(pending, NULL, NULL, NULL);
  CHECK(code == SEALPOINT_OK || code == SEALPOINT_CANCELLED);
  sealpoint_pending_save_free(pending);
  // Without `out` the rank takes part, and nobody waits.
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "out is NULL",
              sealpoint_saver_save_async(saver, &options, sources,
                                         rank == size - 1 ? NULL : &pending, &error));
  sealpoint_sources_free(sources);
  sealpoint_saver_free(saver);
  sealpoint_engine_free(engine);
  sealpoint_communicator_free(communicator);
}

static void run_cases(int rank, int size, const char* directory) {
  sealpoint_error* error = NULL;
  sealpoint_communicator* all = NULL;
  sealpoint_communicator* fewer = NULL;
  MPI_Comm without_last = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank < size - 1 ? 0 : MPI_UNDEFINED, rank, &without_last);
  CHECK_OK(sealpoint_communicator_mpi(MPI_COMM_WORLD, NULL, &all, &error));
  if (without_last != MPI_COMM_NULL) {
    CHECK_OK(sealpoint_communicator_mpi(without_last, NULL, &fewer, &error));
  }
  run_rank_cases(all, fewer, rank, size, directory);
  sealpoint_communicator_free(all);
  sealpoint_communicator_free(fewer);
  if (without_last != MPI_COMM_NULL) MPI_Comm_free(&without_last);
}

int main(int argc, char** argv) {
  sealpoint_error* error = NULL;
  sealpoint_communicator* none = NULL;
  char path[400];
  int rank = 0, size = 0, level = 0, all_failures = 0;
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "MPI is not initialised",
              sealpoint_communicator_mpi(MPI_COMM_WORLD, NULL, &none, &error));
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) make_work_dir();
  MPI_Bcast(work_dir, sizeof work_dir, MPI_CHAR, 0, MPI_COMM_WORLD);
  check_arguments(rank);
  run_cases(rank, size, work_dir);
  snprintf(path, sizeof path, "%s/threads", work_dir);
  save_in_background(rank, size, path, 0);
  snprintf(path, sizeof path, "%s/polled", work_dir);
  save_in_background(rank, size, path, 1);
  if (size > 1) check_deadline(rank, size);
  MPI_Allreduce(&failure_count, &all_failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  if (rank == 0) printf("%d failures\n", all_failures);
  return all_failures == 0 ? 0 : 1;
}
