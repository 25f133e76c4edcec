// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_RANKS_C_H_
#define SEALPOINT_RANKS_C_H_

// The part of Sealpoint's C API for jobs with many ranks: placement rules, collective loads,
// staged saves and retention. libsealpoint_c.so implements the functions, and the rules of
// sealpoint.h apply to them. sealpoint_mpi.h makes a communicator of an MPI communicator.
//
// Collective functions are called by all ranks of a communicator, in the same order. If an argument
// of one rank is wrong, all ranks get an error; the other ranks do not wait. The exception is a
// NULL communicator, saver or reader: only the rank itself gets an error, and the other ranks wait
// until the deadline.

#include "sealpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Errors -------------------------------------------------------------------------------------

// Creates an error of the program, for code that reports errors as this library does. Returns its
// code: `code`, or SEALPOINT_INTERNAL if there is no such error or no memory. `out` may be NULL.
SEALPOINT_C_API int32_t sealpoint_error_create(int32_t code, sealpoint_string message,
                                               sealpoint_error** out);
// Collective. Combines the outcomes of all ranks: each rank passes its own error (NULL: success),
// and all ranks get the error of the lowest failed rank, or SEALPOINT_OK. Call this function
// between local work that can fail and the next collective call. `local` stays the caller's.
// Errors: the errors passed; Comm, Timeout.
SEALPOINT_C_API int32_t sealpoint_communicator_agree(const sealpoint_communicator* communicator,
                                                     const sealpoint_error* local,
                                                     sealpoint_error** error);

// ---- Placement ----------------------------------------------------------------------------------

// The layout of one tensor on one rank. Immutable; thread-safe.
typedef struct sealpoint_layout sealpoint_layout;

// Computes the layout that a tensor of this shape has on one rank. Local; the layouts of all ranks
// are consistent. The axes of the mesh are ordered outermost first, and ranks are numbered in
// row-major order. A rule is a text, such as "shard(dim 0, x, even)", "replicate(y)" or
// "shard_flat(x)"; each axis is named by exactly one rule (docs/guides/c.md). Errors:
// InvalidArgument (a rule or the mesh is wrong, or they do not fit), LimitExceeded.
SEALPOINT_C_API int32_t sealpoint_layout_create(const sealpoint_mesh_axis* axes,
                                                uint64_t axis_count, int32_t rank,
                                                const uint64_t* shape, uint32_t ndim,
                                                const sealpoint_string* rules, uint64_t rule_count,
                                                sealpoint_layout** out, sealpoint_error** error);
SEALPOINT_C_API void sealpoint_layout_free(sealpoint_layout* layout);

typedef struct sealpoint_layout_info {
  uint32_t struct_size;
  uint32_t ndim;
  uint64_t element_count;              // of the local tensor, including padding
  uint64_t part_count;                 // 0 if the rank has no elements
  uint64_t replica_count;              // ranks with the same parts, including this rank
  uint64_t shape[SEALPOINT_NDIM_MAX];  // of the local tensor, which is dense and row-major
} sealpoint_layout_info;
SEALPOINT_C_API int32_t sealpoint_layout_get_info(const sealpoint_layout* layout,
                                                  sealpoint_layout_info* out,
                                                  sealpoint_error** error);
// Returns a part as a region of the global tensor. Its arrays are valid as long as the layout
// exists. Errors: InvalidArgument (`index` is too large).
SEALPOINT_C_API int32_t sealpoint_layout_part(const sealpoint_layout* layout, uint64_t index,
                                              sealpoint_region* out, sealpoint_error** error);

// Adds the parts of the layout to a declaration, as sealpoint_declaration_add adds one region.
SEALPOINT_C_API int32_t sealpoint_declaration_add_layout(sealpoint_declaration* declaration,
                                                         const sealpoint_tensor_spec* tensor,
                                                         const sealpoint_layout* layout,
                                                         sealpoint_error** error);
// Binds all slots of the tensor to the parts of its dense local tensor, which has the shape of the
// layout. The declaration must have only this layout of the tensor. Errors: InvalidArgument.
SEALPOINT_C_API int32_t sealpoint_sources_bind_layout(sealpoint_sources* sources,
                                                      sealpoint_string tensor,
                                                      const sealpoint_layout* layout,
                                                      const sealpoint_source* local,
                                                      sealpoint_error** error);
// Requests the parts of the dense local tensor. Adds nothing if the layout has no parts.
SEALPOINT_C_API int32_t sealpoint_read_request_add_layout(sealpoint_read_request* request,
                                                          sealpoint_string tensor,
                                                          const sealpoint_layout* layout,
                                                          const sealpoint_destination* local,
                                                          sealpoint_error** error);

// ---- Collective loads ---------------------------------------------------------------------------

// A checkpoint that all ranks have opened, possibly saved by a different number of ranks. Keeps its
// communicator alive.
typedef struct sealpoint_reader sealpoint_reader;

// Collective. Opens a checkpoint; all ranks pass the same path. `options` may be NULL. Errors: the
// errors of sealpoint_checkpoint_open; Comm, Timeout; InvalidArgument (the paths differ).
SEALPOINT_C_API int32_t sealpoint_reader_open(const sealpoint_communicator* communicator,
                                              sealpoint_string path,
                                              const sealpoint_open_options* options,
                                              sealpoint_reader** out, sealpoint_error** error);
// Collective. Opens the newest checkpoint of a series (sealpoint_series_newest). If no checkpoint
// was ever committed in the series, returns SEALPOINT_OK and sets *out to NULL: begin anew. If
// `allow_fallback` is 1, damaged checkpoints are skipped.
SEALPOINT_C_API int32_t sealpoint_reader_open_newest(const sealpoint_communicator* communicator,
                                                     sealpoint_string series,
                                                     const sealpoint_open_options* options,
                                                     int32_t allow_fallback, sealpoint_reader** out,
                                                     sealpoint_error** error);
// Local.
SEALPOINT_C_API void sealpoint_reader_free(sealpoint_reader* reader);
// Return the number of skipped checkpoints, and one of them: the name of its directory and the
// reason. Both are valid as long as the reader exists. Errors: InvalidArgument.
SEALPOINT_C_API uint64_t sealpoint_reader_skipped_count(const sealpoint_reader* reader);
SEALPOINT_C_API int32_t sealpoint_reader_skipped(const sealpoint_reader* reader, uint64_t index,
                                                 sealpoint_string* name,
                                                 const sealpoint_error** problem,
                                                 sealpoint_error** error);
// Returns the open checkpoint, for local calls. It belongs to the reader, and must not be freed.
SEALPOINT_C_API const sealpoint_checkpoint* sealpoint_reader_checkpoint(
    const sealpoint_reader* reader);

typedef struct sealpoint_load_options {
  uint32_t struct_size;
  uint32_t threads;              // 0: as in sealpoint_read_options
  uint64_t memory_budget_bytes;  // for chunks that are sent between ranks; 0: 256 MiB
  uint32_t read_alone;           // 1: each rank reads all chunks that it needs, and sends none
  uint32_t verify_arrival;       // 1: compare the fingerprints of the destinations with stored ones
  sealpoint_progress_function on_progress;  // may be NULL
  void* user;
} sealpoint_load_options;

typedef struct sealpoint_load_report {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t bytes_requested;  // by this rank
  uint64_t bytes_read;       // stored bytes that this rank read
  uint64_t bytes_received;   // from other ranks
  uint64_t all_bytes_requested;
  uint64_t all_bytes_read;
  uint64_t finding_count;  // differences that the contract reports
} sealpoint_load_report;

// Collective. Fills the destinations of every rank; requests may differ, overlap or be empty. If a
// sealpoint_read_request_add… call for the request failed, the load fails with its error. Contract:
// as in sealpoint_checkpoint_plan, for the requests of all ranks together. `contract`, `options`
// and `out` may be NULL. Errors: the errors of sealpoint_checkpoint_plan and
// sealpoint_checkpoint_read; InvalidArgument (ranks disagree); Comm, Timeout.
SEALPOINT_C_API int32_t sealpoint_reader_load(sealpoint_reader* reader,
                                              const sealpoint_read_request* request,
                                              const sealpoint_contract* contract,
                                              const sealpoint_load_options* options,
                                              sealpoint_load_report* out, sealpoint_error** error);
// Returns one finding of the last load. The strings are valid until the next load.
SEALPOINT_C_API int32_t sealpoint_reader_finding(const sealpoint_reader* reader, uint64_t index,
                                                 sealpoint_string* tensor, sealpoint_string* detail,
                                                 sealpoint_error** error);
// Collective. Reads and verifies an object; all ranks pass the same name. Errors: NotFound, …
SEALPOINT_C_API int32_t sealpoint_reader_read_object(sealpoint_reader* reader,
                                                     sealpoint_string name, sealpoint_buffer** out,
                                                     sealpoint_error** error);

// ---- Staged saves -------------------------------------------------------------------------------

// The promotions of staged saves (sealpoint_save_options.local). Immutable; thread-safe.
typedef struct sealpoint_promotions sealpoint_promotions;

typedef struct sealpoint_promotion {
  uint32_t struct_size;
  uint32_t reserved;
  sealpoint_string directory;  // valid as long as the list exists
  uint64_t step;               // SEALPOINT_NO_STEP if unknown
  uint64_t bytes_copied;       // by this rank
  // NULL if the final checkpoint is committed and durable. Otherwise the local checkpoint is kept.
  const sealpoint_error* problem;
} sealpoint_promotion;
SEALPOINT_C_API void sealpoint_promotions_free(sealpoint_promotions* promotions);
SEALPOINT_C_API uint64_t sealpoint_promotions_count(const sealpoint_promotions* promotions);
SEALPOINT_C_API int32_t sealpoint_promotions_get(const sealpoint_promotions* promotions,
                                                 uint64_t index, sealpoint_promotion* out,
                                                 sealpoint_error** error);

// Local; thread-safe. Returns this rank's promotions that ended since the previous call. A failed
// promotion is tried again before the next one begins.
SEALPOINT_C_API int32_t sealpoint_saver_take_promotions(sealpoint_saver* saver,
                                                        sealpoint_promotions** out,
                                                        sealpoint_error** error);
// Local; thread-safe. Waits for this rank's promotions. Returns 1 if none is left, and 0 if the
// time has passed (SEALPOINT_FOREVER: no limit) or `saver` is NULL.
SEALPOINT_C_API int32_t sealpoint_saver_wait_for_promotions(sealpoint_saver* saver,
                                                            int64_t longest_ms);

// Collective. Completes the promotions of an earlier job, so that the final series has the newest
// intact checkpoint of both places. Call this function before sealpoint_reader_open_newest. `local`
// may differ by rank. Returns the promoted checkpoints, newest first, and then the skipped ones,
// each with its problem. `keep_local`: number of promoted local checkpoints to keep. Errors:
// InvalidArgument (R-STG-12), Io, Comm, Timeout.
SEALPOINT_C_API int32_t sealpoint_resume_promotions(const sealpoint_communicator* communicator,
                                                    sealpoint_string local,
                                                    sealpoint_string final_series,
                                                    int32_t keep_local, sealpoint_promotions** out,
                                                    sealpoint_error** error);

// ---- Retention ----------------------------------------------------------------------------------

// Keeps the newest checkpoint of each of the newest `count` periods that have one.
typedef struct sealpoint_keep_per_period {
  uint64_t period_s;  // at least 1
  uint64_t count;     // at least 1
} sealpoint_keep_per_period;

// Rules that select the checkpoints to keep (spec/series.md §7). A checkpoint is kept if at least
// one rule keeps it, if it has a KEEP file, or if a kept delta needs it.
typedef struct sealpoint_retention {
  uint32_t struct_size;
  uint32_t keep_last;           // number of newest intact checkpoints; at least 2; 0: 2
  uint64_t keep_every_n_steps;  // keep multiples of this step; 0: no such rule
  uint64_t keep_within_s;       // keep checkpoints at most this much older than the newest; 0: none
  uint64_t max_bytes;           // total size of the kept checkpoints; 0: no limit
  const sealpoint_keep_per_period* keep_per_period;
  uint64_t keep_per_period_count;
  sealpoint_string best_metric;  // a provenance key that begins with "metric."; empty: no such rule
  uint32_t best_count;           // number of checkpoints with the best values; 0: 1
  uint32_t best_is_greatest;     // 1: the greatest values are the best; 0: the least
  uint32_t keep_checked;         // newest checkpoints without silent data corruption; 0: none
  uint32_t dry_run;              // 1: delete nothing
} sealpoint_retention;

// Deletes the checkpoints that the rules do not keep, oldest first. A newer checkpoint must be
// intact. Not collective: call this function on one rank. `retention` may be NULL. `deleted`, which
// may be NULL, receives the deleted checkpoints (in a dry run, the checkpoints that would be
// deleted). Sets *bytes_freed, which may be NULL, also if an error stops the deletions. Errors:
// InvalidArgument, Io, and the errors of sealpoint_series_list.
SEALPOINT_C_API int32_t sealpoint_series_prune(sealpoint_string series,
                                               const sealpoint_retention* retention,
                                               sealpoint_series** deleted, uint64_t* bytes_freed,
                                               sealpoint_error** error);

#ifdef __cplusplus
}
#endif

#endif  // SEALPOINT_RANKS_C_H_
