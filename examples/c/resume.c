// SPDX-License-Identifier: Apache-2.0
// A small simulation on MPI ranks that saves its state at the end, and resumes when it is run
// again, on the same or on another number of ranks:
//   mpirun -n 4 resume run
//   mpirun -n 3 resume run
#include <mpi.h>
#include <sealpoint_mpi.h>
#include <sealpoint_ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Errors of collective calls are the same on all ranks, which therefore end together. The local
// calls here fail only if an argument is wrong.
#define TRY(call)                                              \
  if (call) {                                                  \
    fprintf(stderr, "%s\n", sealpoint_error_text(error).data); \
    sealpoint_error_free(error);                               \
    MPI_Finalize();                                            \
    return 1;                                                  \
  }

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "run";
  const sealpoint_string series = {path, strlen(path)}, name = {"field", 5};
  const sealpoint_string by_rows = {"shard(dim 0, rank, even)", 24};
  const uint64_t shape[] = {1000, 64};  // of the whole field; its rows are divided among the ranks
  sealpoint_error* error;
  sealpoint_communicator* communicator;
  sealpoint_layout* layout;
  sealpoint_layout_info local;
  sealpoint_reader* reader;
  sealpoint_mesh_axis axis = {{"rank", 4}, 0};
  uint64_t i, step = 0;
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  axis.size = (uint64_t)ranks;
  TRY(sealpoint_communicator_mpi(MPI_COMM_WORLD, NULL, &communicator, &error));

  // What this rank has of the field.
  sealpoint_init(&local, sizeof local);
  TRY(sealpoint_layout_create(&axis, 1, rank, shape, 2, &by_rows, 1, &layout, &error));
  TRY(sealpoint_layout_get_info(layout, &local, &error));
  double* field = calloc(local.element_count + 1, sizeof *field);

  // Resume from the newest checkpoint, if there is one.
  TRY(sealpoint_reader_open_newest(communicator, series, NULL, 0, &reader, &error));
  if (reader != NULL) {
    sealpoint_read_request* request;
    sealpoint_destination to;
    sealpoint_checkpoint_info info;
    sealpoint_init(&info, sizeof info);
    sealpoint_init(&to, sizeof to);
    to.dtype = SEALPOINT_DTYPE_F64;
    to.data = field;
    to.size_bytes = local.element_count * sizeof *field;
    TRY(sealpoint_read_request_create(&request, &error));
    TRY(sealpoint_read_request_add_layout(request, name, layout, &to, &error));
    TRY(sealpoint_reader_load(reader, request, NULL, NULL, NULL, &error));
    TRY(sealpoint_checkpoint_get_info(sealpoint_reader_checkpoint(reader), &info, &error));
    step = info.step;
    sealpoint_read_request_free(request);
    sealpoint_reader_free(reader);
  }
  for (i = 0; i < local.element_count; ++i) {
    if (field[i] != (double)step) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (rank == 0) printf("%d ranks start at step %d\n", ranks, (int)step);
  for (i = 0; i < local.element_count; ++i) field[i] += 100;
  step += 100;

  // Save. An error of the calls for the declaration and the sources is that of the save.
  sealpoint_engine* engine;
  sealpoint_saver* saver;
  sealpoint_declaration* declaration;
  sealpoint_sources* sources;
  sealpoint_tensor_spec spec;
  sealpoint_source source;
  sealpoint_save_options options;
  sealpoint_init(&spec, sizeof spec);
  sealpoint_init(&source, sizeof source);
  sealpoint_init(&options, sizeof options);
  spec.name = name;
  spec.dtype = source.dtype = SEALPOINT_DTYPE_F64;
  spec.shape = shape;
  spec.ndim = 2;
  source.data = field;
  source.size_bytes = local.element_count * sizeof *field;
  options.path = series;
  options.in_series = options.has_step = 1;
  options.step = step;
  TRY(sealpoint_engine_create(NULL, &engine, &error));
  TRY(sealpoint_saver_create(engine, communicator, NULL, &saver, &error));
  TRY(sealpoint_declaration_create(&declaration, &error));
  sealpoint_declaration_add_layout(declaration, &spec, layout, NULL);
  TRY(sealpoint_sources_create(declaration, &sources, &error));
  sealpoint_sources_bind_layout(sources, name, layout, &source, NULL);
  TRY(sealpoint_saver_save(saver, &options, sources, NULL, NULL, &error));

  // Keep the newest two checkpoints. One rank deletes, and all ranks get its outcome.
  sealpoint_error* of_rank_0 = NULL;
  if (rank == 0) sealpoint_series_prune(series, NULL, NULL, NULL, &of_rank_0);
  TRY(sealpoint_communicator_agree(communicator, of_rank_0, &error));
  sealpoint_sources_free(sources);
  sealpoint_declaration_free(declaration);
  sealpoint_saver_free(saver);
  sealpoint_engine_free(engine);
  sealpoint_layout_free(layout);
  sealpoint_communicator_free(communicator);  // before MPI ends
  free(field);
  MPI_Finalize();
  return 0;
}
