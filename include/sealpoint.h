// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_C_H_
#define SEALPOINT_C_H_

// Sealpoint for C, and for every language that calls C. C99 and C++; one header, one library
// (libsealpoint_c.so). docs/guides/c.md shows programs in C, Rust and Go.
//
// What holds for all functions:
//
// Errors. A function that can fail returns a code (enum below; 0 is success) and takes as its last
//   parameter where to put an error object, or NULL. It always writes there: NULL on success, else
//   an object that is the caller's, to be freed with sealpoint_error_free. What was there before is
//   not looked at. No C++ exception leaves the library: it becomes SEALPOINT_INTERNAL.
// Outputs. `T** out` receives a new object that is the caller's and has a `_free` of its own; it is
//   set to NULL on failure. Nothing is freed by the other side's allocator: what the library made,
//   its functions free, and what the caller made it never frees or keeps.
// Strings are UTF-8, given by pointer and length in both directions. Those that the library gives
//   belong to the object that they were asked from and live as long as it does. All of them but
//   names of tensors are followed by a zero byte that `size` does not count.
// Structs begin with `struct_size`, which the caller sets to the sizeof of its own header; zero in
//   any other field is the default. sealpoint_init does both. An older program thus works with a
//   newer library; a newer program with an older library does as long as it leaves the fields alone
//   that this does not know (else SEALPOINT_UNSUPPORTED). What the library fills in ends at
//   `struct_size`. Where a pointer to options may be NULL, that means the defaults.
// NULL. Freeing NULL does nothing. Another NULL where an object is needed is
//   SEALPOINT_INVALID_ARGUMENT, or an empty answer of a function that returns no code.
// Lifetimes. Objects hold what they were made from: an engine, a communicator or a checkpoint may
//   be freed while something made of it is in use. Memory of tensors is borrowed for as long as the
//   call that takes it says.
// Threads. Functions on different objects may run at the same time. On one object: const
//   parameters, any number of threads; others, one call at a time.
// Callbacks get the `user` pointer that was given with them. They must return to the library (no
//   longjmp, no exception) and must not call functions of the object that calls them.
// Growth. Functions and fields are added; none is changed or removed. SEALPOINT_C_1 is the version
//   of the exported symbols.

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SEALPOINT_C_API __attribute__((visibility("default")))

// ---- Values -------------------------------------------------------------------------------------

// What went wrong, as far as a caller acts differently on it; see docs/guides/c.md and status.h.
enum {
  SEALPOINT_OK = 0,
  SEALPOINT_INVALID_ARGUMENT = 1,  // the caller's argument is wrong
  SEALPOINT_NOT_FOUND = 2,         // what was asked for by name does not exist
  SEALPOINT_ALREADY_EXISTS = 3,    // the directory holds a marker already; nothing was changed
  SEALPOINT_NOT_A_CHECKPOINT = 4,  // the bytes are not ours
  SEALPOINT_UNCOMMITTED = 5,       // there is no commit marker: this checkpoint does not exist
  SEALPOINT_INCOMPLETE = 6,        // a file is missing or short, as after a partial copy
  SEALPOINT_CORRUPT = 7,           // the bytes are not those that were committed
  SEALPOINT_UNSUPPORTED = 8,       // valid, but this build does not know it or cannot do it
  SEALPOINT_LIMIT_EXCEEDED = 9,    // a limit of spec/limits.md was passed
  SEALPOINT_MISMATCH = 10,         // what is stored does not fulfil the contract of the load
  SEALPOINT_IO = 11,               // the storage reported an error
  SEALPOINT_NO_SPACE = 12,         // the storage is full
  SEALPOINT_DEVICE = 13,           // a CUDA call failed
  SEALPOINT_COMM = 14,             // the communicator failed or another rank left
  SEALPOINT_TIMEOUT = 15,          // a deadline passed
  SEALPOINT_CANCELLED = 16,        // the caller cancelled what was under way
  SEALPOINT_INTERNAL = 17,         // a bug in this library, or no memory
};

// Element types; the values of the file format.
enum {
  SEALPOINT_DTYPE_NONE = 0,  // raw bytes, where a dtype may be left out
  SEALPOINT_DTYPE_BOOL = 1,
  SEALPOINT_DTYPE_INT8 = 2,
  SEALPOINT_DTYPE_INT16 = 3,
  SEALPOINT_DTYPE_INT32 = 4,
  SEALPOINT_DTYPE_INT64 = 5,
  SEALPOINT_DTYPE_UINT8 = 6,
  SEALPOINT_DTYPE_UINT16 = 7,
  SEALPOINT_DTYPE_UINT32 = 8,
  SEALPOINT_DTYPE_UINT64 = 9,
  SEALPOINT_DTYPE_F16 = 10,
  SEALPOINT_DTYPE_BF16 = 11,
  SEALPOINT_DTYPE_F32 = 12,
  SEALPOINT_DTYPE_F64 = 13,
  SEALPOINT_DTYPE_COMPLEX64 = 14,
  SEALPOINT_DTYPE_COMPLEX128 = 15,
  SEALPOINT_DTYPE_F8_E4M3FN = 16,
  SEALPOINT_DTYPE_F8_E5M2 = 17,
  SEALPOINT_DTYPE_F8_E4M3FNUZ = 18,
  SEALPOINT_DTYPE_F8_E5M2FNUZ = 19,
  SEALPOINT_DTYPE_F8_E8M0FNU = 20,
  SEALPOINT_DTYPE_F4_E2M1_X2 = 21,  // an element is a byte of two values
  SEALPOINT_DTYPE_COMPLEX32 = 22,
};

// How the chunks of a tensor are encoded; the values of the file format.
enum { SEALPOINT_CODEC_NONE = 0, SEALPOINT_CODEC_ZSTD = 1, SEALPOINT_CODEC_BYTE_SPLIT_ZSTD = 2 };

enum {
  SEALPOINT_ABI_VERSION = 1,
  SEALPOINT_NDIM_MAX = 32,            // of the file format
  SEALPOINT_ID_TEXT_SIZE = 32,        // hexadecimal digits
  SEALPOINT_DIRECTORY_NAME_SIZE = 64  // enough for sealpoint_series_directory_name
};

// "No step" in what the library fills in: a checkpoint that belongs to no step of a training.
static const uint64_t SEALPOINT_NO_STEP = UINT64_MAX;

typedef struct sealpoint_string {
  const char* data;  // may be NULL if size is 0
  uint64_t size;     // bytes
} sealpoint_string;

typedef struct sealpoint_bytes {
  const void* data;  // may be NULL if size is 0
  uint64_t size;
} sealpoint_bytes;

// A random id of an attempt or a blob. All zero: none.
typedef struct sealpoint_id {
  uint8_t bytes[16];
} sealpoint_id;

typedef struct sealpoint_error sealpoint_error;

// The version of the ABI of the library that runs: SEALPOINT_ABI_VERSION of its header.
SEALPOINT_C_API uint32_t sealpoint_abi_version(void);
// The version of the library that runs, "1.0.0". Lives for ever.
SEALPOINT_C_API sealpoint_string sealpoint_version(void);
// Zeroes a struct and sets its struct_size: sealpoint_init(&options, sizeof options). Nothing if
// either is 0.
SEALPOINT_C_API void sealpoint_init(void* sized_struct, uint32_t size_bytes);

// "Corrupt", …; "f32", …, and the dtype of such a name. They live for ever. Of a value that is not
// known: "Unknown", "unknown", 0.
SEALPOINT_C_API sealpoint_string sealpoint_code_name(int32_t code);
SEALPOINT_C_API sealpoint_string sealpoint_dtype_name(uint32_t dtype);
SEALPOINT_C_API uint32_t sealpoint_dtype_size_bytes(uint32_t dtype);
SEALPOINT_C_API uint32_t sealpoint_dtype_of_name(sealpoint_string name);
SEALPOINT_C_API sealpoint_string sealpoint_verdict_name(uint32_t verdict);

// A fresh random id. Errors: Io.
SEALPOINT_C_API int32_t sealpoint_id_random(sealpoint_id* out, sealpoint_error** error);
// Writes SEALPOINT_ID_TEXT_SIZE lower-case hexadecimal digits, and no zero byte.
SEALPOINT_C_API void sealpoint_id_to_text(const sealpoint_id* id, char* out);
// Errors: InvalidArgument (other than 32 lower-case hexadecimal digits).
SEALPOINT_C_API int32_t sealpoint_id_from_text(sealpoint_string text, sealpoint_id* out,
                                               sealpoint_error** error);

// ---- Errors -------------------------------------------------------------------------------------

// An error that a function handed out. Immutable; any number of threads may read it.
SEALPOINT_C_API void sealpoint_error_free(sealpoint_error* error);
SEALPOINT_C_API int32_t sealpoint_error_code(const sealpoint_error* error);
// One printable line with code, message and place, for people and logs.
SEALPOINT_C_API sealpoint_string sealpoint_error_text(const sealpoint_error* error);
SEALPOINT_C_API sealpoint_string sealpoint_error_message(const sealpoint_error* error);
// Where it went wrong, as far as it is known, else empty: the rule of the specification
// ("R-HDR-03"), the file, the tensor or object, and the host on which the first cause happened.
SEALPOINT_C_API sealpoint_string sealpoint_error_rule(const sealpoint_error* error);
SEALPOINT_C_API sealpoint_string sealpoint_error_path(const sealpoint_error* error);
SEALPOINT_C_API sealpoint_string sealpoint_error_tensor(const sealpoint_error* error);
SEALPOINT_C_API sealpoint_string sealpoint_error_object(const sealpoint_error* error);
SEALPOINT_C_API sealpoint_string sealpoint_error_host(const sealpoint_error* error);
// 1 if it is known, with the value in *out; else 0, and *out stays. In the file, in bytes; the rank
// on which the first cause happened.
SEALPOINT_C_API int32_t sealpoint_error_offset(const sealpoint_error* error, uint64_t* out);
SEALPOINT_C_API int32_t sealpoint_error_rank(const sealpoint_error* error, int32_t* out);
// 1 if nobody can say whether the commit took effect: look at the directory later, and delete
// nothing.
SEALPOINT_C_API int32_t sealpoint_error_outcome_is_unknown(const sealpoint_error* error);

// ---- Regions and memory -------------------------------------------------------------------------

// A part of a tensor, in elements: a box, and optionally a run of its row-major element numbers.
typedef struct sealpoint_region {
  uint32_t struct_size;
  uint32_t ndim;  // of the tensor
  const uint64_t* offset;
  const uint64_t* extent;  // with a 0: nothing, which needs no memory
  uint64_t run_begin;      // both 0: the whole box
  uint64_t run_end;
} sealpoint_region;

enum { SEALPOINT_MEMORY_HOST = 0, SEALPOINT_MEMORY_CUDA = 1 };

// Memory of elements, borrowed. Without strides they are dense in row-major order. With strides,
// one per dimension in bytes, element (i0, i1, …) of the region's box is at data + origin_bytes +
// i0*strides[0] + …; strides may be negative. Device memory is addressed by the address of its
// device; what was queued on `stream` before the call comes before every access.
typedef struct sealpoint_destination {
  uint32_t struct_size;
  uint32_t dtype;  // of the elements; 0: raw bytes, which pass for any dtype
  void* data;
  uint64_t size_bytes;           // from `data` on, gaps included
  const int64_t* strides_bytes;  // stride_count of them
  uint64_t origin_bytes;
  uint32_t stride_count;  // one per dimension of the region; 0: dense
  uint32_t reserved;
  uint32_t memory;  // SEALPOINT_MEMORY_…
  int32_t device;   // number of the CUDA device
  void* stream;     // cudaStream_t
} sealpoint_destination;

// The same, read only.
typedef struct sealpoint_source {
  uint32_t struct_size;
  uint32_t dtype;
  const void* data;
  uint64_t size_bytes;
  const int64_t* strides_bytes;
  uint64_t origin_bytes;
  uint32_t stride_count;  // one per dimension of the region; 0: dense
  uint32_t reserved;
  uint32_t memory;
  int32_t device;
  void* stream;
} sealpoint_source;

// DLPack's structs, which every array library can give for an array without a copy. Include
// dlpack.h (1.0 or later) before this header to pass its types; without it these have the layout
// that DLPack's version 1 fixes for ever. Understood: CPU, CUDA, CUDA's host and managed memory;
// any strides; lanes 1 (2 for pairs of f4). All else is SEALPOINT_UNSUPPORTED.
#ifdef DLPACK_DLPACK_H_
#if !defined(DLPACK_MAJOR_VERSION) || DLPACK_MAJOR_VERSION != 1
#error "sealpoint.h needs dlpack.h of version 1; include it after sealpoint.h, or not at all"
#endif
typedef DLTensor sealpoint_dl_tensor;
typedef DLManagedTensorVersioned sealpoint_dl_managed_tensor;
#else
typedef struct sealpoint_dl_tensor {
  void* data;
  struct {
    int32_t device_type;
    int32_t device_id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; NULL: dense
  uint64_t byte_offset;
} sealpoint_dl_tensor;
typedef struct sealpoint_dl_managed_tensor {
  struct {
    uint32_t major;
    uint32_t minor;
  } version;
  void* manager_ctx;
  void (*deleter)(struct sealpoint_dl_managed_tensor* self);
  uint64_t flags;  // 1: read only; 2: a copy that is the consumer's alone
  sealpoint_dl_tensor dl_tensor;
} sealpoint_dl_managed_tensor;
#endif

// ---- Bytes that the library owns ----------------------------------------------------------------

typedef struct sealpoint_buffer sealpoint_buffer;
SEALPOINT_C_API sealpoint_bytes sealpoint_buffer_bytes(const sealpoint_buffer* buffer);
SEALPOINT_C_API void sealpoint_buffer_free(sealpoint_buffer* buffer);

// ---- Progress -----------------------------------------------------------------------------------

typedef struct sealpoint_progress {
  uint32_t struct_size;
  uint32_t reserved;
  sealpoint_string phase;  // "write blobs", …; lives for ever
  uint64_t bytes_done;     // of this process, in this phase
  uint64_t bytes_total;    // 0 if it is not known or nothing is moved
  uint64_t step;           // of a save, else SEALPOINT_NO_STEP
} sealpoint_progress;

// Called from any thread, one call at a time. Returns 0 to go on; anything else ends what runs with
// SEALPOINT_CANCELLED.
typedef int32_t (*sealpoint_progress_function)(void* user, const sealpoint_progress* progress);

// ---- Storage ------------------------------------------------------------------------------------

// Makes a directory and its missing parents, durably. `path` is one of a file system or a URI of a
// registered scheme, as everywhere. Errors: Io, NoSpace, Unsupported (a scheme that is not there).
SEALPOINT_C_API int32_t sealpoint_create_directories(sealpoint_string path,
                                                     sealpoint_error** error);

// Empty fields are taken from the environment and the profile (docs/guides/object-stores.md).
typedef struct sealpoint_s3_options {
  uint32_t struct_size;
  uint32_t no_retries;  // 1: each request is tried once
  sealpoint_string endpoint;
  sealpoint_string region;
  sealpoint_string profile;
} sealpoint_s3_options;

// From now on paths that begin with s3:// are those of buckets. `options` may be NULL. Errors:
// Unsupported (the library was built without it).
SEALPOINT_C_API int32_t sealpoint_register_s3(const sealpoint_s3_options* options,
                                              sealpoint_error** error);

// ---- Reading ------------------------------------------------------------------------------------

// A committed checkpoint, open for reading. Marker and index are verified when it is opened,
// payload when it is read. Immutable; any threads.
typedef struct sealpoint_checkpoint sealpoint_checkpoint;

typedef struct sealpoint_open_options {
  uint32_t struct_size;
  uint32_t skip_file_check;  // 1: do not look whether every blob is there with its length
  uint32_t direct_io;        // 1: read past the page cache if the file system can
  uint32_t reserved;
  uint64_t memory_budget_bytes;  // bound on staging memory of reads; 0: 256 MiB
} sealpoint_open_options;

// `path` is a directory or a URI ("s3://bucket/run/step-…", after sealpoint_register_s3). Errors:
// NotFound, NotACheckpoint, Uncommitted, Incomplete, Corrupt, Unsupported, LimitExceeded, Io;
// InvalidArgument (options).
SEALPOINT_C_API int32_t sealpoint_checkpoint_open(sealpoint_string path,
                                                  const sealpoint_open_options* options,
                                                  sealpoint_checkpoint** out,
                                                  sealpoint_error** error);
// As open, from marker and index bytes that another process read and sent; they are verified alike
// and not kept.
SEALPOINT_C_API int32_t sealpoint_checkpoint_open_from(
    sealpoint_string path, sealpoint_bytes marker, sealpoint_bytes index,
    const sealpoint_open_options* options, sealpoint_checkpoint** out, sealpoint_error** error);
SEALPOINT_C_API void sealpoint_checkpoint_free(sealpoint_checkpoint* checkpoint);

// The verified files, to be sent to others; they live as long as the checkpoint.
SEALPOINT_C_API sealpoint_bytes sealpoint_checkpoint_marker(const sealpoint_checkpoint* checkpoint);
SEALPOINT_C_API sealpoint_bytes sealpoint_checkpoint_index(const sealpoint_checkpoint* checkpoint);
SEALPOINT_C_API sealpoint_string sealpoint_checkpoint_path(const sealpoint_checkpoint* checkpoint);

typedef struct sealpoint_checkpoint_info {
  uint32_t struct_size;
  uint32_t reserved;
  sealpoint_id attempt;
  sealpoint_id parent;  // zero if none
  uint64_t sequence;    // in the lineage
  uint64_t step;        // or SEALPOINT_NO_STEP
  uint64_t created_unix_ns;
  uint64_t raw_bytes;  // of tensors and objects
  uint64_t tensor_count;
  uint64_t object_count;
  uint64_t blob_count;
  uint64_t provenance_count;
  uint64_t mesh_axis_count;
} sealpoint_checkpoint_info;
SEALPOINT_C_API int32_t sealpoint_checkpoint_get_info(const sealpoint_checkpoint* checkpoint,
                                                      sealpoint_checkpoint_info* out,
                                                      sealpoint_error** error);

typedef struct sealpoint_tensor_info {
  uint32_t struct_size;
  uint32_t dtype;             // a value that is not in the list above is legal: see element_size
  sealpoint_string name;      // lives as long as the checkpoint
  uint64_t index;             // among the tensors, which are sorted by name
  uint32_t element_size;      // bytes
  uint32_t ndim;              // at most SEALPOINT_NDIM_MAX
  uint64_t chunk_size_bytes;  // the unit of verification
  uint64_t raw_bytes;
  uint64_t shard_count;
  uint64_t shape[SEALPOINT_NDIM_MAX];
} sealpoint_tensor_info;
// By number. Errors: InvalidArgument (beyond tensor_count).
SEALPOINT_C_API int32_t sealpoint_checkpoint_tensor(const sealpoint_checkpoint* checkpoint,
                                                    uint64_t index, sealpoint_tensor_info* out,
                                                    sealpoint_error** error);
// By name, in O(log n). Errors: NotFound.
SEALPOINT_C_API int32_t sealpoint_checkpoint_find_tensor(const sealpoint_checkpoint* checkpoint,
                                                         sealpoint_string name,
                                                         sealpoint_tensor_info* out,
                                                         sealpoint_error** error);
// The numbers, ascending, of those whose names match at least one pattern as a whole: `*` matches
// any characters, `?` one, and what follows a backslash itself. Writes the first `capacity` of them
// to `indices` and how many there are to *count; tensor_count is always room enough. Errors:
// NotFound (a pattern that matches nothing), InvalidArgument (a backslash at the end).
SEALPOINT_C_API int32_t sealpoint_checkpoint_match_tensors(const sealpoint_checkpoint* checkpoint,
                                                           const sealpoint_string* patterns,
                                                           uint64_t pattern_count,
                                                           uint64_t* indices, uint64_t capacity,
                                                           uint64_t* count,
                                                           sealpoint_error** error);

typedef struct sealpoint_object_info {
  uint32_t struct_size;
  uint32_t reserved;
  sealpoint_string name;  // both live as long as the checkpoint
  sealpoint_string media_type;
  uint64_t size_bytes;
} sealpoint_object_info;
// Sorted by name. Errors: InvalidArgument (beyond object_count); NotFound.
SEALPOINT_C_API int32_t sealpoint_checkpoint_object(const sealpoint_checkpoint* checkpoint,
                                                    uint64_t index, sealpoint_object_info* out,
                                                    sealpoint_error** error);
SEALPOINT_C_API int32_t sealpoint_checkpoint_find_object(const sealpoint_checkpoint* checkpoint,
                                                         sealpoint_string name,
                                                         sealpoint_object_info* out,
                                                         sealpoint_error** error);
// Its verified bytes. Errors: NotFound, and those of sealpoint_checkpoint_read.
SEALPOINT_C_API int32_t sealpoint_checkpoint_read_object(const sealpoint_checkpoint* checkpoint,
                                                         sealpoint_string name,
                                                         sealpoint_buffer** out,
                                                         sealpoint_error** error);

// Where it came from, in the writer's words; an axis of the mesh that wrote it. The strings live as
// long as the checkpoint. Errors: InvalidArgument (beyond the count of the info).
SEALPOINT_C_API int32_t sealpoint_checkpoint_provenance(const sealpoint_checkpoint* checkpoint,
                                                        uint64_t index, sealpoint_string* key,
                                                        sealpoint_string* value,
                                                        sealpoint_error** error);
SEALPOINT_C_API int32_t sealpoint_checkpoint_mesh_axis(const sealpoint_checkpoint* checkpoint,
                                                       uint64_t index, sealpoint_string* name,
                                                       uint32_t* size, sealpoint_error** error);

// Many elements that are planned and read together. Borrows the destinations until the read has
// returned; copies everything else.
typedef struct sealpoint_read_request sealpoint_read_request;

enum { SEALPOINT_ROUND_EXACT = 0, SEALPOINT_ROUND_NEAREST_EVEN = 1 };

typedef struct sealpoint_item_options {
  uint32_t struct_size;
  uint32_t expected_dtype;         // compared under the contract; 0: not
  const uint64_t* expected_shape;  // of the tensor, compared under the contract; NULL: not
  uint32_t expected_ndim;
  uint32_t convert_to;  // dtype that the destination holds; 0: the stored one
  uint32_t rounding;    // SEALPOINT_ROUND_…, of a conversion
  uint32_t reserved;
} sealpoint_item_options;

SEALPOINT_C_API int32_t sealpoint_read_request_create(sealpoint_read_request** out,
                                                      sealpoint_error** error);
SEALPOINT_C_API void sealpoint_read_request_free(sealpoint_read_request* request);
// `region` NULL: the whole tensor. `options` may be NULL. What does not fit the checkpoint is found
// by the plan. Errors: InvalidArgument (of the arguments themselves).
SEALPOINT_C_API int32_t sealpoint_read_request_add(sealpoint_read_request* request,
                                                   sealpoint_string tensor,
                                                   const sealpoint_region* region,
                                                   const sealpoint_destination* destination,
                                                   const sealpoint_item_options* options,
                                                   sealpoint_error** error);
// The same with an array of DLPack, whose shape must be that of the region (of a run: one
// dimension). The structs are read during the call, the memory is borrowed as above. `stream`:
// cudaStream_t of device memory.
SEALPOINT_C_API int32_t sealpoint_read_request_add_dlpack(
    sealpoint_read_request* request, sealpoint_string tensor, const sealpoint_region* region,
    const sealpoint_dl_tensor* destination, void* stream, const sealpoint_item_options* options,
    sealpoint_error** error);
// The same with a managed array, which stays the caller's; its deleter is not called. Errors:
// InvalidArgument (it is read only), Unsupported (not of DLPack's version 1).
SEALPOINT_C_API int32_t sealpoint_read_request_add_dlpack_managed(
    sealpoint_read_request* request, sealpoint_string tensor, const sealpoint_region* region,
    const sealpoint_dl_managed_tensor* destination, void* stream,
    const sealpoint_item_options* options, sealpoint_error** error);

// What happens if request and checkpoint differ. ERROR fails before a byte is read; REPORT goes on
// and lists it as a finding of the plan; ALLOW goes on.
enum {
  SEALPOINT_DIFFERENCE_DEFAULT = 0,
  SEALPOINT_DIFFERENCE_ERROR = 1,
  SEALPOINT_DIFFERENCE_REPORT = 2,
  SEALPOINT_DIFFERENCE_ALLOW = 3,
};
typedef struct sealpoint_contract {
  uint32_t struct_size;
  uint32_t missing;     // a requested tensor is not stored; default ERROR
  uint32_t unexpected;  // a stored tensor is not requested; default ERROR
  uint32_t dtype;       // expected_dtype differs; default ERROR
  uint32_t shape;       // expected_shape differs; default ERROR
  uint32_t coverage;    // elements of a requested tensor are not requested; default ALLOW
} sealpoint_contract;

// An immutable list of reads. Holds the addresses of the destinations. Any threads.
typedef struct sealpoint_read_plan sealpoint_read_plan;

// Reads the records of the chunks that are needed, and no payload. `contract` NULL: the defaults,
// so all tensors must be requested. Errors: Mismatch (contract), InvalidArgument (a region outside
// the shape; a destination that is null, or of another size or dtype; two that overlap), and those
// of opening.
SEALPOINT_C_API int32_t sealpoint_checkpoint_plan(const sealpoint_checkpoint* checkpoint,
                                                  const sealpoint_read_request* request,
                                                  const sealpoint_contract* contract,
                                                  sealpoint_read_plan** out,
                                                  sealpoint_error** error);
SEALPOINT_C_API void sealpoint_read_plan_free(sealpoint_read_plan* plan);

typedef struct sealpoint_plan_summary {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t item_count;
  uint64_t bytes_requested;
  uint64_t bytes_read;  // of chunks; more than requested if only parts of chunks are wanted
  uint64_t table_bytes_read;
  uint64_t file_count;
  uint64_t request_count;  // ranges of files
  uint64_t chunk_count;
  uint64_t finding_count;
} sealpoint_plan_summary;
SEALPOINT_C_API int32_t sealpoint_read_plan_summary(const sealpoint_read_plan* plan,
                                                    sealpoint_plan_summary* out,
                                                    sealpoint_error** error);
// Lines for people: what is read of which file. Errors: InvalidArgument.
SEALPOINT_C_API int32_t sealpoint_read_plan_explain(const sealpoint_read_plan* plan,
                                                    sealpoint_buffer** out,
                                                    sealpoint_error** error);
// What the contract said to report: the tensor, and the difference. They live as long as the plan.
SEALPOINT_C_API int32_t sealpoint_read_plan_finding(const sealpoint_read_plan* plan, uint64_t index,
                                                    sealpoint_string* tensor,
                                                    sealpoint_string* detail,
                                                    sealpoint_error** error);

typedef struct sealpoint_read_options {
  uint32_t struct_size;
  uint32_t threads;           // 0: the processors divided by the ranks of this host, at most 16
  uint32_t isolate;           // 1: destinations get only what was verified already
  uint32_t verify_on_device;  // 1: and what arrived in device memory is verified there, too
  sealpoint_progress_function on_progress;  // may be NULL
  void* user;
} sealpoint_read_options;

// Runs a plan of this checkpoint. Success is returned only after everything that was touched is
// verified and has arrived. After an error the content of destinations is unspecified, unless
// `isolate` is set. `options` may be NULL. Errors: Corrupt, Incomplete, Io, Device, Cancelled, …
SEALPOINT_C_API int32_t sealpoint_checkpoint_read(const sealpoint_checkpoint* checkpoint,
                                                  const sealpoint_read_plan* plan,
                                                  const sealpoint_read_options* options,
                                                  sealpoint_error** error);

// One tensor, or a region of it (NULL: whole): a request, its plan and its read in one call, for
// which other tensors do not matter.
SEALPOINT_C_API int32_t sealpoint_checkpoint_read_tensor(const sealpoint_checkpoint* checkpoint,
                                                         sealpoint_string tensor,
                                                         const sealpoint_region* region,
                                                         const sealpoint_destination* destination,
                                                         const sealpoint_read_options* options,
                                                         sealpoint_error** error);
// The same into new host memory, aligned to 256 bytes, as an array of DLPack that is the caller's
// (flag 2): its deleter frees it, on any thread, also after the checkpoint is freed. Errors: also
// Unsupported (DLPack has no such dtype).
SEALPOINT_C_API int32_t sealpoint_checkpoint_read_dlpack(const sealpoint_checkpoint* checkpoint,
                                                         sealpoint_string tensor,
                                                         const sealpoint_region* region,
                                                         const sealpoint_read_options* options,
                                                         sealpoint_dl_managed_tensor** out,
                                                         sealpoint_error** error);

// ---- Verification -------------------------------------------------------------------------------

// What a directory turned out to be.
enum {
  SEALPOINT_VERDICT_COMMITTED = 0,  // valid at the level that was checked
  SEALPOINT_VERDICT_UNCOMMITTED = 1,
  SEALPOINT_VERDICT_INCOMPLETE = 2,
  SEALPOINT_VERDICT_CORRUPT = 3,
  SEALPOINT_VERDICT_UNSUPPORTED = 4,
  SEALPOINT_VERDICT_UNREADABLE = 5,
};

enum {
  SEALPOINT_VERIFY_DEFAULT = 0,  // full
  SEALPOINT_VERIFY_FILES = 1,    // marker, index, existence and length of every blob
  SEALPOINT_VERIFY_STRUCTURE = 2,
  SEALPOINT_VERIFY_FULL = 3,  // and every chunk
};

typedef struct sealpoint_verify_options {
  uint32_t struct_size;
  uint32_t level;
  uint32_t threads;                         // 0: 1
  uint32_t buffered_io;                     // 1: read through the page cache
  uint64_t violations_per_file_max;         // that the report lists; 0: 1000
  sealpoint_progress_function on_progress;  // may be NULL
  // Called for every violation as it is found, from any thread, one call at a time. The error is
  // borrowed for the call. May be NULL.
  void (*on_violation)(void* user, const sealpoint_error* violation);
  void* user;  // of both
} sealpoint_verify_options;

// What a verification found. Immutable; any threads.
typedef struct sealpoint_verify_report sealpoint_verify_report;

// Damage is in the report, not in the code that is returned. Reads only. Errors: InvalidArgument
// (options), Cancelled (by on_progress).
SEALPOINT_C_API int32_t sealpoint_verify(sealpoint_string path,
                                         const sealpoint_verify_options* options,
                                         sealpoint_verify_report** out, sealpoint_error** error);
SEALPOINT_C_API void sealpoint_verify_report_free(sealpoint_verify_report* report);

typedef struct sealpoint_verify_info {
  uint32_t struct_size;
  uint32_t verdict;
  uint64_t violation_count;         // all
  uint64_t listed_violation_count;  // that sealpoint_verify_report_violation gives
  uint64_t note_count;
  uint64_t leftover_bytes;
  sealpoint_id attempt;  // from here on: known if the marker was good
  sealpoint_id parent;
  uint64_t sequence;
  uint64_t step;
  uint64_t tensor_count;  // from here on: known if the index was good
  uint64_t object_count;
  uint64_t blob_count;
  uint64_t chunk_count;
  uint64_t bytes_checked;
  double seconds;
} sealpoint_verify_info;
SEALPOINT_C_API int32_t sealpoint_verify_report_get_info(const sealpoint_verify_report* report,
                                                         sealpoint_verify_info* out,
                                                         sealpoint_error** error);
// Borrowed from the report, not to be freed; NULL beyond listed_violation_count.
SEALPOINT_C_API const sealpoint_error* sealpoint_verify_report_violation(
    const sealpoint_verify_report* report, uint64_t index);
// Leftovers, foreign names, ignored features; empty beyond note_count.
SEALPOINT_C_API sealpoint_string sealpoint_verify_report_note(const sealpoint_verify_report* report,
                                                              uint64_t index);

// ---- Series -------------------------------------------------------------------------------------

// Directories of a series, looked at once. Immutable; any threads.
typedef struct sealpoint_series sealpoint_series;

typedef struct sealpoint_series_entry {
  uint32_t struct_size;
  uint32_t verdict;       // by the marker alone
  sealpoint_string name;  // of the directory in the series; both live as long as the listing
  sealpoint_string path;
  uint32_t is_void;
  uint32_t is_kept;
  sealpoint_id attempt;
  sealpoint_id parent;
  uint64_t sequence;
  uint64_t step;
  uint64_t size_bytes;             // of all files of ours in it
  const sealpoint_error* problem;  // why it is not committed, borrowed from the listing; or NULL
} sealpoint_series_entry;

// All directories: committed ones from the newest on, then the others by name. A directory that
// does not exist is an empty series. Errors: Io.
SEALPOINT_C_API int32_t sealpoint_series_list(sealpoint_string path, sealpoint_series** out,
                                              sealpoint_error** error);
// The newest committed checkpoint, whose marker, index and lengths of blobs were checked, as entry
// 0. With `allow_fallback` one that is damaged is passed over, and the next one is taken; the
// further entries are those that were. Errors: NotFound (nothing was ever committed there),
// InvalidArgument, Io; those of opening, for the newest one.
SEALPOINT_C_API int32_t sealpoint_series_newest(sealpoint_string path, int32_t allow_fallback,
                                                sealpoint_series** out, sealpoint_error** error);
SEALPOINT_C_API void sealpoint_series_free(sealpoint_series* series);
SEALPOINT_C_API uint64_t sealpoint_series_count(const sealpoint_series* series);
SEALPOINT_C_API int32_t sealpoint_series_get_entry(const sealpoint_series* series, uint64_t index,
                                                   sealpoint_series_entry* out,
                                                   sealpoint_error** error);
// "step-000000000042-1f2e3d4c" and a zero byte; needs SEALPOINT_DIRECTORY_NAME_SIZE at most.
// Errors: InvalidArgument (too little room).
SEALPOINT_C_API int32_t sealpoint_series_directory_name(uint64_t step, const sealpoint_id* attempt,
                                                        char* out, uint64_t out_size,
                                                        sealpoint_error** error);

// ---- Writing without a communicator -------------------------------------------------------------

// What saves have in common and keep: staging memory, threads. Make one per process.
typedef struct sealpoint_engine sealpoint_engine;

typedef struct sealpoint_engine_options {
  uint32_t struct_size;
  uint32_t io_threads;                 // 0: 1
  uint64_t memory_budget_bytes;        // of staging; 0: 256 MiB
  uint64_t staging_buffer_size_bytes;  // a multiple of 4096; 0: 4 MiB
  uint32_t snapshot_threads;           // 0: 2
  uint32_t buffered_io;                // 1: write through the page cache
} sealpoint_engine_options;
SEALPOINT_C_API int32_t sealpoint_engine_create(const sealpoint_engine_options* options,
                                                sealpoint_engine** out, sealpoint_error** error);
SEALPOINT_C_API void sealpoint_engine_free(sealpoint_engine* engine);

// The global tensor. All writers of a checkpoint state the same values for the same name.
typedef struct sealpoint_tensor_spec {
  uint32_t struct_size;
  uint32_t dtype;
  sealpoint_string name;
  const uint64_t* shape;
  uint32_t ndim;
  uint32_t element_size;      // bytes; 0: that of the dtype
  uint64_t chunk_size_bytes;  // 0: 4 MiB
  uint32_t codec;
  int32_t codec_level;     // 0: 1
  sealpoint_string group;  // tensors of different groups go to different blobs
} sealpoint_tensor_spec;

// Writes tensors and objects of one process into blobs in one existing directory; any number of
// writers may work in one directory. One call at a time. After the first error every call returns
// that error. Not usable in a child after fork.
typedef struct sealpoint_blob_writer sealpoint_blob_writer;

typedef struct sealpoint_blob_writer_options {
  uint32_t struct_size;
  uint32_t has_step;  // 1: `step` holds
  uint64_t step;
  uint64_t size_max_bytes;  // of a blob; 0: 64 GiB
  sealpoint_id attempt;     // zero if it is not known yet
  // Called on the thread of the call, with the payload bytes staged so far. May be NULL.
  void (*on_bytes)(void* user, uint64_t bytes);
  void* user;
} sealpoint_blob_writer_options;

// Creates nothing before the first byte is added. Errors: InvalidArgument, NotFound, Io.
SEALPOINT_C_API int32_t sealpoint_blob_writer_create(const sealpoint_engine* engine,
                                                     sealpoint_string directory,
                                                     const sealpoint_blob_writer_options* options,
                                                     sealpoint_blob_writer** out,
                                                     sealpoint_error** error);
// Abandons a writer that was not finished: its files are removed.
SEALPOINT_C_API void sealpoint_blob_writer_free(sealpoint_blob_writer* writer);
// Stores a region (NULL: the whole tensor) from `source`, which may change when the call returns.
// What has an extent of 0, the tensor or the region, needs no source (NULL). Errors:
// InvalidArgument (names tensor, and what was found and expected), NoSpace, Io.
SEALPOINT_C_API int32_t sealpoint_blob_writer_add(sealpoint_blob_writer* writer,
                                                  const sealpoint_tensor_spec* tensor,
                                                  const sealpoint_region* region,
                                                  const sealpoint_source* source,
                                                  sealpoint_error** error);
SEALPOINT_C_API int32_t sealpoint_blob_writer_add_dlpack(sealpoint_blob_writer* writer,
                                                         const sealpoint_tensor_spec* tensor,
                                                         const sealpoint_region* region,
                                                         const sealpoint_dl_tensor* source,
                                                         void* stream, sealpoint_error** error);
// A named byte string, taken during the call.
SEALPOINT_C_API int32_t sealpoint_blob_writer_add_object(sealpoint_blob_writer* writer,
                                                         sealpoint_string name,
                                                         sealpoint_string media_type,
                                                         sealpoint_bytes bytes, uint32_t codec,
                                                         sealpoint_error** error);

// What finished blobs hold: small beside the payload, to be brought to the process that commits.
typedef struct sealpoint_summaries sealpoint_summaries;

// Makes everything durable: the blobs survive a crash; no checkpoint exists before
// sealpoint_commit. The last call but abandon and free.
SEALPOINT_C_API int32_t sealpoint_blob_writer_finish(sealpoint_blob_writer* writer,
                                                     sealpoint_summaries** out,
                                                     sealpoint_error** error);
// Removes the files; also after finish, if the caller learned that the attempt failed. Those that a
// checkpoint may need stay: after finish, SEALPOINT_INVALID_ARGUMENT if the attempt was committed,
// or its commit has not ended or its outcome is not known.
SEALPOINT_C_API int32_t sealpoint_blob_writer_abandon(sealpoint_blob_writer* writer,
                                                      sealpoint_error** error);

SEALPOINT_C_API int32_t sealpoint_summaries_create(sealpoint_summaries** out,
                                                   sealpoint_error** error);
SEALPOINT_C_API void sealpoint_summaries_free(sealpoint_summaries* summaries);
SEALPOINT_C_API uint64_t sealpoint_summaries_count(const sealpoint_summaries* summaries);
// Id of the blob, the length of its file, and the bytes of tensors and objects in it. Each pointer
// may be NULL. Errors: InvalidArgument (beyond the count).
SEALPOINT_C_API int32_t sealpoint_summaries_get(const sealpoint_summaries* summaries,
                                                uint64_t index, sealpoint_id* blob,
                                                uint64_t* file_size_bytes, uint64_t* raw_bytes,
                                                sealpoint_error** error);
// All of them as one byte string, for a pipe or a gather.
SEALPOINT_C_API int32_t sealpoint_summaries_serialize(const sealpoint_summaries* summaries,
                                                      sealpoint_buffer** out,
                                                      sealpoint_error** error);
// Appends those of such a byte string, which are verified; or reads one back from a finished blob,
// whose header, trailer and manifest are verified. Nothing is appended on failure. Errors: Corrupt,
// Unsupported, LimitExceeded; NotFound, Incomplete, NotACheckpoint, Io.
SEALPOINT_C_API int32_t sealpoint_summaries_append(sealpoint_summaries* summaries,
                                                   sealpoint_bytes serialized,
                                                   sealpoint_error** error);
SEALPOINT_C_API int32_t sealpoint_summaries_append_blob(sealpoint_summaries* summaries,
                                                        sealpoint_string directory,
                                                        const sealpoint_id* blob,
                                                        sealpoint_error** error);

typedef struct sealpoint_mesh_axis {
  sealpoint_string name;
  uint64_t size;
} sealpoint_mesh_axis;
typedef struct sealpoint_key_value {
  sealpoint_string key;
  sealpoint_string value;
} sealpoint_key_value;

typedef struct sealpoint_commit_options {
  uint32_t struct_size;
  uint32_t has_step;  // 1: `step` holds
  uint64_t step;
  sealpoint_id attempt;      // that of the writers; zero: a fresh one
  sealpoint_id parent;       // the checkpoint that this one follows; zero: none
  uint64_t parent_sequence;  // of its info
  const sealpoint_mesh_axis* mesh_axes;
  uint64_t mesh_axis_count;
  const sealpoint_key_value* provenance;
  uint64_t provenance_count;
  uint32_t allow_empty;  // 1: also without any tensor and object
  uint32_t reserved;
  sealpoint_progress_function on_progress;  // may be NULL
  void* user;
} sealpoint_commit_options;

typedef struct sealpoint_commit_info {
  uint32_t struct_size;
  uint32_t reserved;
  sealpoint_id attempt;
  sealpoint_id parent;
  uint64_t sequence;
  uint64_t step;
  uint64_t blob_count;
  uint64_t tensor_count;
  uint64_t raw_bytes;
  uint64_t total_bytes;  // of the blobs
  uint64_t index_bytes;
} sealpoint_commit_info;

// Makes the blobs of these summaries one checkpoint, or does nothing. Exactly one process calls it,
// when all blobs are finished. `out` may be NULL. After success the checkpoint survives a crash.
// Errors: InvalidArgument (holes, overlaps, declarations that disagree), AlreadyExists, Incomplete,
// Unsupported, LimitExceeded, NoSpace, Io; see sealpoint_error_outcome_is_unknown.
SEALPOINT_C_API int32_t sealpoint_commit(sealpoint_string directory,
                                         const sealpoint_commit_options* options,
                                         const sealpoint_summaries* summaries,
                                         sealpoint_commit_info* out, sealpoint_error** error);

// ---- Ranks --------------------------------------------------------------------------------------

// One call of a communicator, for the functions below; valid until the callback returns.
typedef struct sealpoint_call sealpoint_call;
// Memory of the library for `size_bytes` from rank `source` (0 for a broadcast), to be filled
// before the callback returns; once per source. NULL: no memory, or no such source; the callback
// then returns SEALPOINT_COMM.
SEALPOINT_C_API void* sealpoint_call_receive(sealpoint_call* call, int32_t source,
                                             uint64_t size_bytes);
// The words for the error that the callback is about to return; they are copied.
SEALPOINT_C_API void sealpoint_call_set_message(sealpoint_call* call, sealpoint_string message);

// What a save of many ranks needs of a group of processes: MPI, a store, sockets. Metadata travels
// through it, payload never. Those functions that get a `call` are collective: all ranks call them
// in the same order. They return SEALPOINT_OK, SEALPOINT_COMM or SEALPOINT_TIMEOUT (anything else
// counts as SEALPOINT_COMM); after an error the communicator is not used again. Each must return
// within the deadline. Messages may exceed 2 GiB. Called by one thread at a time, that which called
// the library. All but those that may be NULL must be there.
typedef struct sealpoint_communicator_table {
  uint32_t struct_size;
  int32_t rank;
  int32_t size;
  uint32_t needs_progress;  // of a duplicate: 1 if its calls end only while `progress` is called
  sealpoint_string host;    // of this rank; copied
  void* user;
  int32_t (*barrier)(void* user, sealpoint_call* call);
  // `bytes` is sent by `root`; the others receive it from source 0.
  int32_t (*broadcast)(void* user, sealpoint_call* call, sealpoint_bytes bytes, int32_t root);
  // `root` receives from every rank, also from itself; of all_gather everyone does.
  int32_t (*gather)(void* user, sealpoint_call* call, sealpoint_bytes bytes, int32_t root);
  int32_t (*all_gather)(void* user, sealpoint_call* call, sealpoint_bytes bytes);
  // `outgoing` has an entry for each rank; each rank receives from every rank.
  int32_t (*all_to_all)(void* user, sealpoint_call* call, const sealpoint_bytes* outgoing);
  // The element-wise maximum over the ranks, in place. MPI_MAX of MPI_UINT64_T compares as signed
  // in MPICH 4.0, which the first collective call reports (SEALPOINT_COMM); see docs/guides/c.md.
  int32_t (*all_reduce_max)(void* user, sealpoint_call* call, uint64_t* values, uint64_t count);
  // The time that one call may take; 0: no limit. It begins with 30 minutes.
  void (*set_deadline)(void* user, int64_t milliseconds);
  // Collective: fills *out (whose struct_size is set) with the same ranks once more, for saves in
  // the background; messages of the two never mix. Its functions are called by a thread of the
  // library. If it is refused, its release is called before sealpoint_saver_save_async returns.
  // NULL: sealpoint_saver_save_async is Unsupported.
  int32_t (*duplicate)(void* user, sealpoint_call* call, struct sealpoint_communicator_table* out);
  // Where needs_progress is set: carries on what the thread of a duplicate is in, without waiting.
  // Called by the program's own thread. Returns 1 if something moved. May be NULL.
  int32_t (*progress)(void* user);
  // Makes the call of a duplicate that is under way, and all later ones, return `code` soon. Called
  // from any thread. Must be there if there is `duplicate`.
  void (*interrupt)(void* user, int32_t code);
  // Called once, when the library needs `user` no longer. May be NULL.
  void (*release)(void* user);
} sealpoint_communicator_table;

typedef struct sealpoint_communicator sealpoint_communicator;
// Copies the table. On failure `release` is not called. Errors: InvalidArgument.
SEALPOINT_C_API int32_t sealpoint_communicator_create(const sealpoint_communicator_table* table,
                                                      sealpoint_communicator** out,
                                                      sealpoint_error** error);
// One rank. Or `size` ranks that are threads of this process: fills out[0] to out[size - 1].
SEALPOINT_C_API int32_t sealpoint_communicator_self(sealpoint_communicator** out,
                                                    sealpoint_error** error);
SEALPOINT_C_API int32_t sealpoint_communicator_threads(int32_t size, sealpoint_communicator** out,
                                                       sealpoint_error** error);
SEALPOINT_C_API void sealpoint_communicator_free(sealpoint_communicator* communicator);

// What this rank holds, without the memory, made once per training. A failed add fails each save.
typedef struct sealpoint_declaration sealpoint_declaration;
SEALPOINT_C_API int32_t sealpoint_declaration_create(sealpoint_declaration** out,
                                                     sealpoint_error** error);
SEALPOINT_C_API void sealpoint_declaration_free(sealpoint_declaration* declaration);
// A region (NULL: the whole tensor) that this rank holds, or `replica_count` ranks that are listed
// ascending, this one among them. *slot (may be NULL) is the number to bind memory to. Errors:
// InvalidArgument (also while there are sources of this declaration).
SEALPOINT_C_API int32_t sealpoint_declaration_add(sealpoint_declaration* declaration,
                                                  const sealpoint_tensor_spec* tensor,
                                                  const sealpoint_region* region,
                                                  const int32_t* replicas, uint64_t replica_count,
                                                  uint64_t* slot, sealpoint_error** error);
SEALPOINT_C_API int32_t sealpoint_declaration_add_object(sealpoint_declaration* declaration,
                                                         sealpoint_string name,
                                                         sealpoint_string media_type,
                                                         uint32_t codec, sealpoint_error** error);

// Memory for one save. Binding is local; what is missing, or failed, fails the save, on all ranks.
typedef struct sealpoint_sources sealpoint_sources;
SEALPOINT_C_API int32_t sealpoint_sources_create(const sealpoint_declaration* declaration,
                                                 sealpoint_sources** out, sealpoint_error** error);
SEALPOINT_C_API void sealpoint_sources_free(sealpoint_sources* sources);
SEALPOINT_C_API int32_t sealpoint_sources_bind(sealpoint_sources* sources, uint64_t slot,
                                               const sealpoint_source* source,
                                               sealpoint_error** error);
SEALPOINT_C_API int32_t sealpoint_sources_bind_dlpack(sealpoint_sources* sources, uint64_t slot,
                                                      const sealpoint_dl_tensor* source,
                                                      void* stream, sealpoint_error** error);
SEALPOINT_C_API int32_t sealpoint_sources_bind_object(sealpoint_sources* sources,
                                                      sealpoint_string object,
                                                      sealpoint_bytes bytes,
                                                      sealpoint_error** error);

typedef struct sealpoint_saver_options {
  uint32_t struct_size;
  uint32_t find_replicas;     // 1: ranks that hold the same are found
  uint32_t compare_replicas;  // 1: and must hold the same bytes
  uint32_t reserved;
  uint64_t blob_size_max_bytes;    // 0: 64 GiB
  int64_t deadline_ms;             // of one exchange; 0: 30 minutes, negative: none
  int64_t background_deadline_ms;  // of a save in the background; 0: 2 hours, negative: none
  sealpoint_progress_function on_progress;  // may be NULL; also called on a thread of the saver
  void* user;
} sealpoint_saver_options;

// The collective save. All ranks make the same calls in the same order; a failure of one becomes
// the same error on all, which names the first cause.
typedef struct sealpoint_saver sealpoint_saver;
SEALPOINT_C_API int32_t sealpoint_saver_create(const sealpoint_engine* engine,
                                               const sealpoint_communicator* communicator,
                                               const sealpoint_saver_options* options,
                                               sealpoint_saver** out, sealpoint_error** error);
// Collective. Saves in the background are to be waited for and freed before.
SEALPOINT_C_API void sealpoint_saver_free(sealpoint_saver* saver);

typedef struct sealpoint_save_options {
  uint32_t struct_size;
  uint32_t in_series;     // 1: the path is that of a series, in which a new directory is made
  sealpoint_string path;  // of the series, or of the checkpoint
  uint32_t has_step;      // 1: `step` holds; it must in a series
  uint32_t allow_empty;
  uint64_t step;
  sealpoint_id parent;  // outside of a series; zero: none
  uint64_t parent_sequence;
  const sealpoint_mesh_axis* mesh_axes;
  uint64_t mesh_axis_count;
  const sealpoint_key_value* provenance;
  uint64_t provenance_count;
  uint32_t allow_fallback;  // 1: also into a series with a marker that is damaged or of another
                            // version, which may be newer; else SEALPOINT_CORRUPT, _UNSUPPORTED
  uint32_t reserved;
} sealpoint_save_options;

// `out` and `directory` (its path) may be NULL. Errors: those of sealpoint_commit and of a blob
// writer; InvalidArgument (wrong arguments of any rank, but for a NULL saver, which is found on its
// rank alone; ranks that disagree), Comm, Timeout.
SEALPOINT_C_API int32_t sealpoint_saver_save(sealpoint_saver* saver,
                                             const sealpoint_save_options* options,
                                             const sealpoint_sources* sources,
                                             sealpoint_commit_info* out,
                                             sealpoint_buffer** directory, sealpoint_error** error);

// The same in the background: returns when the memory of the sources may change.
typedef struct sealpoint_pending_save sealpoint_pending_save;
SEALPOINT_C_API int32_t sealpoint_saver_save_async(sealpoint_saver* saver,
                                                   const sealpoint_save_options* options,
                                                   const sealpoint_sources* sources,
                                                   sealpoint_pending_save** out,
                                                   sealpoint_error** error);
enum {
  SEALPOINT_SAVE_RUNNING = 0,
  SEALPOINT_SAVE_COMMITTED = 1,  // durable
  SEALPOINT_SAVE_FAILED = 2,     // there is no such checkpoint; training can go on
  SEALPOINT_SAVE_UNKNOWN = 3,    // see sealpoint_error_outcome_is_unknown
};
// Local: carries the save on, without waiting, and says where it is. To be called once per training
// step, say. FAILED for NULL.
SEALPOINT_C_API int32_t sealpoint_pending_save_poll(sealpoint_pending_save* pending);
// Collective: waits for the outcome, the same on all ranks. May be repeated.
SEALPOINT_C_API int32_t sealpoint_pending_save_wait(sealpoint_pending_save* pending,
                                                    sealpoint_commit_info* out,
                                                    sealpoint_buffer** directory,
                                                    sealpoint_error** error);
// Local, from any thread: asks for the save to end with SEALPOINT_CANCELLED on all ranks.
SEALPOINT_C_API void sealpoint_pending_save_cancel(sealpoint_pending_save* pending);
// Abandons a save that runs.
SEALPOINT_C_API void sealpoint_pending_save_free(sealpoint_pending_save* pending);

#ifdef __cplusplus
}
#endif

#endif  // SEALPOINT_C_H_
