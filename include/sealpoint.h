// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_C_H_
#define SEALPOINT_C_H_

// Sealpoint's C API, for C (C99), C++ and every language that can call C. The library is
// libsealpoint_c.so. sealpoint_ranks.h and sealpoint_mpi.h have more functions for jobs with many
// ranks, and docs/guides/c.md has programs.
//
// These rules apply to all functions:
// Errors. A function that can fail returns an error code (enum below; 0 is success). Its last
//   parameter is the address of an error pointer, or NULL. On success, the function sets the
//   pointer to NULL. On failure, it sets the pointer to an error object, which the caller owns and
//   frees with sealpoint_error_free. C++ exceptions become SEALPOINT_INTERNAL.
// Outputs. `T** out` receives a new object, which the caller owns and frees with the type's `_free`
//   function. On failure, `*out` is set to NULL. Free objects of the library only with functions of
//   the library. The library never frees or keeps objects of the caller.
// Strings are UTF-8 and are passed and returned as a pointer and a length. A returned string
//   belongs to the object that returned it, and is valid as long as that object exists. Every
//   returned string except tensor names is followed by a zero byte, which `size` does not count.
// Structs begin with `struct_size`, which the caller sets to the size of the struct. In all other
//   fields, zero means the default. sealpoint_init sets `struct_size` and zeroes the rest. Old
//   programs work with newer libraries. New programs work with older libraries if fields unknown to
//   the library are zero; otherwise they get SEALPOINT_UNSUPPORTED. The library writes at most
//   `struct_size` bytes of an output struct. Where allowed, NULL `options` mean the defaults.
// NULL. Freeing NULL does nothing. If a required pointer is NULL, the function returns
//   SEALPOINT_INVALID_ARGUMENT. A function that returns no code returns an empty result instead.
// Lifetimes. Objects keep their parents alive: an engine, a communicator or a checkpoint may be
//   freed while objects created from it are still in use. Each function documents how long it
//   borrows tensor memory.
// Threads. Functions on different objects may run concurrently. Functions that take an object as
//   const may use it on any number of threads; other functions need exclusive access to the object.
// Callbacks receive the `user` pointer that was registered with them. They must return to the
//   library (no longjmp, no exception), and must not use the object that called them.
// Growth. Later versions may add functions and fields, but do not change or remove existing ones.
//   All exported symbols have the symbol version SEALPOINT_C_1.

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SEALPOINT_C_API __attribute__((visibility("default")))

// ---- Values -------------------------------------------------------------------------------------

// Error codes that callers may want to distinguish; see docs/guides/c.md and status.h.
enum {
  SEALPOINT_OK = 0,
  SEALPOINT_INVALID_ARGUMENT = 1,  // an argument is wrong
  SEALPOINT_NOT_FOUND = 2,         // no path, tensor or object has the given name
  SEALPOINT_ALREADY_EXISTS = 3,    // the directory already has a marker; nothing was changed
  SEALPOINT_NOT_A_CHECKPOINT = 4,  // not a Sealpoint checkpoint
  SEALPOINT_UNCOMMITTED = 5,       // no commit marker: the checkpoint does not exist
  SEALPOINT_INCOMPLETE = 6,        // a file is missing or short, for example after a partial copy
  SEALPOINT_CORRUPT = 7,           // the bytes differ from the committed ones
  SEALPOINT_UNSUPPORTED = 8,       // valid, but not supported by this build
  SEALPOINT_LIMIT_EXCEEDED = 9,    // a limit of spec/limits.md was exceeded
  SEALPOINT_MISMATCH = 10,         // the checkpoint does not satisfy the load's contract
  SEALPOINT_IO = 11,               // the storage reported an error
  SEALPOINT_NO_SPACE = 12,         // the storage is full
  SEALPOINT_DEVICE = 13,           // a CUDA call failed
  SEALPOINT_COMM = 14,             // the communicator failed, or another rank left the job
  SEALPOINT_TIMEOUT = 15,          // a deadline passed
  SEALPOINT_CANCELLED = 16,        // the caller cancelled the operation
  SEALPOINT_INTERNAL = 17,         // a bug in this library, or out of memory
};

// Element types. The file format uses the same values.
enum {
  SEALPOINT_DTYPE_NONE = 0,  // raw bytes; allowed only where a dtype is optional
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
  SEALPOINT_DTYPE_F4_E2M1_X2 = 21,  // one element is one byte that holds two values
  SEALPOINT_DTYPE_COMPLEX32 = 22,
};

// Encoding of a tensor's chunks. The file format uses the same values.
enum { SEALPOINT_CODEC_NONE = 0, SEALPOINT_CODEC_ZSTD = 1, SEALPOINT_CODEC_BYTE_SPLIT_ZSTD = 2 };

enum {
  SEALPOINT_ABI_VERSION = 1,
  SEALPOINT_NDIM_MAX = 32,            // a limit of the file format
  SEALPOINT_ID_TEXT_SIZE = 32,        // hexadecimal digits
  SEALPOINT_DIRECTORY_NAME_SIZE = 64  // bytes; enough for sealpoint_series_directory_name
};

static const uint64_t SEALPOINT_NO_STEP = UINT64_MAX;  // `step` of output structs: no step
static const int64_t SEALPOINT_FOREVER = -1;           // a deadline that never passes

typedef struct sealpoint_string {
  const char* data;  // may be NULL if size is 0
  uint64_t size;     // bytes
} sealpoint_string;
typedef struct sealpoint_bytes {
  const void* data;  // may be NULL if size is 0
  uint64_t size;
} sealpoint_bytes;
// A random id of an attempt or a blob. Sixteen zero bytes mean that there is no id.
typedef struct sealpoint_id {
  uint8_t bytes[16];
} sealpoint_id;

typedef struct sealpoint_error sealpoint_error;

// Returns the SEALPOINT_ABI_VERSION of the header that the loaded library was built with.
SEALPOINT_C_API uint32_t sealpoint_abi_version(void);
// Returns the version of the loaded library, such as "1.0.0". The string is valid forever.
SEALPOINT_C_API sealpoint_string sealpoint_version(void);
// Fills a struct with zeros and sets its struct_size, for example sealpoint_init(&options, sizeof
// options). Does nothing if the pointer is NULL or the size is less than 4 bytes.
SEALPOINT_C_API void sealpoint_init(void* sized_struct, uint32_t size_bytes);

// Return names ("Corrupt", "f32"), the size of a dtype, or the dtype with a given name. The strings
// are valid forever. Unknown arguments give "Unknown" (codes), "unknown" (other names) or 0.
SEALPOINT_C_API sealpoint_string sealpoint_code_name(int32_t code);
SEALPOINT_C_API sealpoint_string sealpoint_dtype_name(uint32_t dtype);
SEALPOINT_C_API uint32_t sealpoint_dtype_size_bytes(uint32_t dtype);
SEALPOINT_C_API uint32_t sealpoint_dtype_of_name(sealpoint_string name);
SEALPOINT_C_API sealpoint_string sealpoint_verdict_name(uint32_t verdict);
// Creates a random id. Errors: Io.
SEALPOINT_C_API int32_t sealpoint_id_random(sealpoint_id* out, sealpoint_error** error);
// Writes SEALPOINT_ID_TEXT_SIZE lower-case hexadecimal digits without a terminating zero byte.
SEALPOINT_C_API void sealpoint_id_to_text(const sealpoint_id* id, char* out);
// Parses an id. Errors: InvalidArgument (`text` is not exactly 32 lower-case hexadecimal digits).
SEALPOINT_C_API int32_t sealpoint_id_from_text(sealpoint_string text, sealpoint_id* out,
                                               sealpoint_error** error);

// ---- Errors -------------------------------------------------------------------------------------

// An error returned by a function. Immutable; thread-safe.
SEALPOINT_C_API void sealpoint_error_free(sealpoint_error* error);
SEALPOINT_C_API int32_t sealpoint_error_code(const sealpoint_error* error);
// Returns one printable line with code, message and location, for people and logs.
SEALPOINT_C_API sealpoint_string sealpoint_error_text(const sealpoint_error* error);
SEALPOINT_C_API sealpoint_string sealpoint_error_message(const sealpoint_error* error);
// Return a part of the error's location, or an empty string if it is unknown. The parts are the
// violated rule of the specification ("R-HDR-03"), file, tensor, object, and host of the error.
SEALPOINT_C_API sealpoint_string sealpoint_error_rule(const sealpoint_error* error);
SEALPOINT_C_API sealpoint_string sealpoint_error_path(const sealpoint_error* error);
SEALPOINT_C_API sealpoint_string sealpoint_error_tensor(const sealpoint_error* error);
SEALPOINT_C_API sealpoint_string sealpoint_error_object(const sealpoint_error* error);
SEALPOINT_C_API sealpoint_string sealpoint_error_host(const sealpoint_error* error);
// Set *out to the byte offset in the file, or to the rank where the error occurred, and return 1.
// If this number is unknown, return 0 and leave *out unchanged.
SEALPOINT_C_API int32_t sealpoint_error_offset(const sealpoint_error* error, uint64_t* out);
SEALPOINT_C_API int32_t sealpoint_error_rank(const sealpoint_error* error, int32_t* out);
// Returns 1 if the commit may have taken effect: inspect the directory before deleting anything.
SEALPOINT_C_API int32_t sealpoint_error_outcome_is_unknown(const sealpoint_error* error);

// ---- Regions and memory -------------------------------------------------------------------------

// A part of a tensor: a box, or a run of the box in row-major order. All numbers count elements.
typedef struct sealpoint_region {
  uint32_t struct_size;
  uint32_t ndim;  // number of dimensions of the tensor
  const uint64_t* offset;
  const uint64_t* extent;  // if an extent is 0, the region has no elements and needs no memory
  uint64_t run_begin;      // if run_begin and run_end are both 0, the region is the whole box
  uint64_t run_end;
} sealpoint_region;

enum { SEALPOINT_MEMORY_HOST = 0, SEALPOINT_MEMORY_CUDA = 1 };

// Borrowed memory that receives elements. If there are no strides, elements are in row-major order
// without gaps. With strides (one per dimension, in bytes), element (i0, i1, …) of the box is at
// data + origin_bytes + i0*strides[0] + …; strides may be negative. For device memory, `data` is a
// device address, and accesses wait for work that was queued on `stream` before the call.
typedef struct sealpoint_destination {
  uint32_t struct_size;
  uint32_t dtype;  // dtype of the elements; 0: raw bytes, compatible with any dtype
  void* data;
  uint64_t size_bytes;           // size of the memory at `data`, including gaps
  const int64_t* strides_bytes;  // stride_count entries
  uint64_t origin_bytes;
  uint32_t stride_count;  // one per dimension of the region; 0: dense
  uint32_t reserved;
  uint32_t memory;  // SEALPOINT_MEMORY_…
  int32_t device;   // CUDA device number
  void* stream;     // cudaStream_t
} sealpoint_destination;

// Borrowed memory from which elements are read. For the fields, see sealpoint_destination.
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

// DLPack structs, which array libraries provide without a copy. To use DLPack's own types, include
// dlpack.h (version 1.x) before this header; otherwise the types below are defined, with the layout
// of version 1. Arrays may be in CPU, CUDA, CUDA host or CUDA managed memory, with any strides and
// 1 lane (2 for pairs of f4). All other arrays are SEALPOINT_UNSUPPORTED.
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
  uint64_t flags;  // a bit mask; 1: read only; 2: a copy that the consumer owns
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
  sealpoint_string phase;  // for example "write blobs"; valid forever
  uint64_t bytes_done;     // bytes that this process moved in this phase
  uint64_t bytes_total;    // 0 if unknown, or if the phase moves no payload
  uint64_t step;           // training step of a save; SEALPOINT_NO_STEP in other operations
} sealpoint_progress;

// Called from any thread, but never by two threads at the same time. Return 0 to continue; any
// other value ends the operation with SEALPOINT_CANCELLED.
typedef int32_t (*sealpoint_progress_function)(void* user, const sealpoint_progress* progress);

// ---- Storage ------------------------------------------------------------------------------------

// Creates a directory and its missing parents durably. As in all functions, `path` is a file system
// path or a URI. Errors: Io, NoSpace, Unsupported (the scheme of the URI is not registered).
SEALPOINT_C_API int32_t sealpoint_create_directories(sealpoint_string path,
                                                     sealpoint_error** error);

// If a field is empty, the environment or the profile sets it (docs/guides/object-stores.md).
typedef struct sealpoint_s3_options {
  uint32_t struct_size;
  uint32_t no_retries;  // 1: never retry requests
  sealpoint_string endpoint;
  sealpoint_string region;
  sealpoint_string profile;
} sealpoint_s3_options;

// Enables s3:// paths. `options` may be NULL. Errors: Unsupported (library built without S3).
SEALPOINT_C_API int32_t sealpoint_register_s3(const sealpoint_s3_options* options,
                                              sealpoint_error** error);

// ---- Reading ------------------------------------------------------------------------------------

// A committed checkpoint, open for reading. Opening a checkpoint verifies the marker and the index;
// reads verify the payload. Immutable; thread-safe.
typedef struct sealpoint_checkpoint sealpoint_checkpoint;

typedef struct sealpoint_open_options {
  uint32_t struct_size;
  uint32_t skip_file_check;  // 1: do not check that all blobs exist and have the right length
  uint32_t direct_io;  // 0: bypass the page cache for parts not in it; 1: bypass it; 2: use it
  uint32_t reserved;
  uint64_t memory_budget_bytes;  // staging memory for reads; 0: 256 MiB
} sealpoint_open_options;

// Opens a checkpoint. `path` is a directory or a URI ("s3://bucket/run/step-…", after
// sealpoint_register_s3). Errors: NotFound, NotACheckpoint, Uncommitted, Incomplete, Corrupt,
// Unsupported, LimitExceeded, Io; InvalidArgument (options).
SEALPOINT_C_API int32_t sealpoint_checkpoint_open(sealpoint_string path,
                                                  const sealpoint_open_options* options,
                                                  sealpoint_checkpoint** out,
                                                  sealpoint_error** error);
// Like sealpoint_checkpoint_open, but the caller passes the bytes of the marker and the index,
// which another process may have sent. The call verifies and copies these bytes.
SEALPOINT_C_API int32_t sealpoint_checkpoint_open_from(
    sealpoint_string path, sealpoint_bytes marker, sealpoint_bytes index,
    const sealpoint_open_options* options, sealpoint_checkpoint** out, sealpoint_error** error);
SEALPOINT_C_API void sealpoint_checkpoint_free(sealpoint_checkpoint* checkpoint);

// Return the verified marker and index, and the path. All are valid while the checkpoint exists.
SEALPOINT_C_API sealpoint_bytes sealpoint_checkpoint_marker(const sealpoint_checkpoint* checkpoint);
SEALPOINT_C_API sealpoint_bytes sealpoint_checkpoint_index(const sealpoint_checkpoint* checkpoint);
SEALPOINT_C_API sealpoint_string sealpoint_checkpoint_path(const sealpoint_checkpoint* checkpoint);

typedef struct sealpoint_checkpoint_info {
  uint32_t struct_size;
  uint32_t reserved;
  sealpoint_id attempt;
  sealpoint_id parent;  // zero if none
  uint64_t sequence;    // sequence of the parent + 1; 1 without a parent
  uint64_t step;        // SEALPOINT_NO_STEP if the checkpoint belongs to no training step
  uint64_t created_unix_ns;
  uint64_t raw_bytes;  // total size of tensors and objects
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
  uint32_t dtype;  // may be a value that is not listed above; element_size is valid for any value
  sealpoint_string name;      // valid as long as the checkpoint exists
  uint64_t index;             // position in the list of tensors, which is sorted by name
  uint32_t element_size;      // bytes
  uint32_t ndim;              // at most SEALPOINT_NDIM_MAX
  uint64_t chunk_size_bytes;  // the unit of verification
  uint64_t raw_bytes;
  uint64_t shard_count;
  uint64_t shape[SEALPOINT_NDIM_MAX];
} sealpoint_tensor_info;
// Finds a tensor by position. Errors: InvalidArgument (`index` is too large).
SEALPOINT_C_API int32_t sealpoint_checkpoint_tensor(const sealpoint_checkpoint* checkpoint,
                                                    uint64_t index, sealpoint_tensor_info* out,
                                                    sealpoint_error** error);
// Finds a tensor by name, in O(log n). Errors: NotFound.
SEALPOINT_C_API int32_t sealpoint_checkpoint_find_tensor(const sealpoint_checkpoint* checkpoint,
                                                         sealpoint_string name,
                                                         sealpoint_tensor_info* out,
                                                         sealpoint_error** error);
// Finds the tensors that match at least one pattern; a pattern must match the entire name. In a
// pattern, `*` matches any characters, `?` matches one character, and a backslash quotes the next
// character. Sets *count to the number of matching tensors. Writes their positions to `indices` in
// ascending order, but at most `capacity` positions. A capacity of tensor_count is always enough.
// Errors: NotFound (a pattern matches nothing), InvalidArgument (a pattern ends with a backslash).
SEALPOINT_C_API int32_t sealpoint_checkpoint_match_tensors(const sealpoint_checkpoint* checkpoint,
                                                           const sealpoint_string* patterns,
                                                           uint64_t pattern_count,
                                                           uint64_t* indices, uint64_t capacity,
                                                           uint64_t* count,
                                                           sealpoint_error** error);

typedef struct sealpoint_object_info {
  uint32_t struct_size;
  uint32_t reserved;
  sealpoint_string name;  // name and media_type are valid as long as the checkpoint exists
  sealpoint_string media_type;
  uint64_t size_bytes;
} sealpoint_object_info;
// Objects are sorted by name. Errors: InvalidArgument (`index` is too large); NotFound.
SEALPOINT_C_API int32_t sealpoint_checkpoint_object(const sealpoint_checkpoint* checkpoint,
                                                    uint64_t index, sealpoint_object_info* out,
                                                    sealpoint_error** error);
SEALPOINT_C_API int32_t sealpoint_checkpoint_find_object(const sealpoint_checkpoint* checkpoint,
                                                         sealpoint_string name,
                                                         sealpoint_object_info* out,
                                                         sealpoint_error** error);
// Reads and verifies an object. Errors: NotFound; the errors of sealpoint_checkpoint_read.
SEALPOINT_C_API int32_t sealpoint_checkpoint_read_object(const sealpoint_checkpoint* checkpoint,
                                                         sealpoint_string name,
                                                         sealpoint_buffer** out,
                                                         sealpoint_error** error);

// Return one entry of the provenance, or one axis of the mesh, that the writer stored. The strings
// are valid as long as the checkpoint exists. Errors: InvalidArgument (`index` is too large).
SEALPOINT_C_API int32_t sealpoint_checkpoint_provenance(const sealpoint_checkpoint* checkpoint,
                                                        uint64_t index, sealpoint_string* key,
                                                        sealpoint_string* value,
                                                        sealpoint_error** error);
SEALPOINT_C_API int32_t sealpoint_checkpoint_mesh_axis(const sealpoint_checkpoint* checkpoint,
                                                       uint64_t index, sealpoint_string* name,
                                                       uint32_t* size, sealpoint_error** error);

// A list of regions to read. The memory of destinations is borrowed until the read returns.
typedef struct sealpoint_read_request sealpoint_read_request;
enum { SEALPOINT_ROUND_EXACT = 0, SEALPOINT_ROUND_NEAREST_EVEN = 1 };
typedef struct sealpoint_item_options {
  uint32_t struct_size;
  uint32_t expected_dtype;  // if the stored dtype differs, the contract applies; 0: not checked
  // expected shape; if the stored shape differs, the contract applies; NULL: not checked
  const uint64_t* expected_shape;
  uint32_t expected_ndim;
  uint32_t convert_to;  // dtype of the destination; 0: the stored dtype
  uint32_t rounding;    // SEALPOINT_ROUND_…, for conversions
  uint32_t reserved;
} sealpoint_item_options;

SEALPOINT_C_API int32_t sealpoint_read_request_create(sealpoint_read_request** out,
                                                      sealpoint_error** error);
SEALPOINT_C_API void sealpoint_read_request_free(sealpoint_read_request* request);
// Adds a region (NULL: the whole tensor). `options` may be NULL. Only planning checks whether the
// request fits the checkpoint. Errors: InvalidArgument (arguments that are always wrong).
SEALPOINT_C_API int32_t sealpoint_read_request_add(sealpoint_read_request* request,
                                                   sealpoint_string tensor,
                                                   const sealpoint_region* region,
                                                   const sealpoint_destination* destination,
                                                   const sealpoint_item_options* options,
                                                   sealpoint_error** error);
// Adds a region with a DLPack array as its destination. The array must have the shape of the
// region; for a run, it must have one dimension. The call reads the structs. The memory of the
// array is borrowed until the read returns. For device memory, `stream` is a cudaStream_t.
SEALPOINT_C_API int32_t sealpoint_read_request_add_dlpack(
    sealpoint_read_request* request, sealpoint_string tensor, const sealpoint_region* region,
    const sealpoint_dl_tensor* destination, void* stream, const sealpoint_item_options* options,
    sealpoint_error** error);
// Adds a managed DLPack array. The caller still owns the array, and its deleter is not called.
// Errors: InvalidArgument (the array is read only), Unsupported (its DLPack version is not 1).
SEALPOINT_C_API int32_t sealpoint_read_request_add_dlpack_managed(
    sealpoint_read_request* request, sealpoint_string tensor, const sealpoint_region* region,
    const sealpoint_dl_managed_tensor* destination, void* stream,
    const sealpoint_item_options* options, sealpoint_error** error);

// Reaction to a difference between request and checkpoint. ERROR: planning fails. REPORT: planning
// continues and adds a finding to the plan. ALLOW: planning continues.
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
  uint32_t dtype;       // stored dtype differs from expected_dtype; default ERROR
  uint32_t shape;       // stored shape differs from expected_shape; default ERROR
  uint32_t coverage;    // a tensor is requested only in part; default ALLOW
} sealpoint_contract;

// An immutable list of reads, with the addresses of the destinations. Thread-safe.
typedef struct sealpoint_read_plan sealpoint_read_plan;

// Plans a request. Reads the records of the needed chunks but no payload. A NULL `contract` means
// the defaults: all tensors must be requested. Errors: Mismatch (contract), InvalidArgument (a
// region outside the shape; a destination that is null or has the wrong size or dtype; destinations
// that overlap), and the errors of sealpoint_checkpoint_open.
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
  uint64_t bytes_read;  // includes the unrequested parts of chunks, which are read whole
  uint64_t table_bytes_read;
  uint64_t file_count;
  uint64_t request_count;  // number of file ranges to read
  uint64_t chunk_count;
  uint64_t finding_count;
} sealpoint_plan_summary;
SEALPOINT_C_API int32_t sealpoint_read_plan_summary(const sealpoint_read_plan* plan,
                                                    sealpoint_plan_summary* out,
                                                    sealpoint_error** error);
// Describes the reads from each file in human-readable lines. Errors: InvalidArgument.
SEALPOINT_C_API int32_t sealpoint_read_plan_explain(const sealpoint_read_plan* plan,
                                                    sealpoint_buffer** out,
                                                    sealpoint_error** error);
// Returns one finding of the contract. The strings are valid as long as the plan exists.
SEALPOINT_C_API int32_t sealpoint_read_plan_finding(const sealpoint_read_plan* plan, uint64_t index,
                                                    sealpoint_string* tensor,
                                                    sealpoint_string* detail,
                                                    sealpoint_error** error);

typedef struct sealpoint_read_options {
  uint32_t struct_size;
  uint32_t threads;           // 0: available CPUs divided by the ranks that share them, at most 16
  uint32_t isolate;           // 1: write only verified data to destinations
  uint32_t verify_on_device;  // 1: verify data again after its copy to device memory
  sealpoint_progress_function on_progress;  // may be NULL
  void* user;
} sealpoint_read_options;

// Executes a plan of this checkpoint. After success, all requested data is verified and in its
// destination. After an error, destinations may contain anything, but with `isolate` no unverified
// data. `options` may be NULL. Errors: Corrupt, Incomplete, Io, Device, Cancelled, …
SEALPOINT_C_API int32_t sealpoint_checkpoint_read(const sealpoint_checkpoint* checkpoint,
                                                  const sealpoint_read_plan* plan,
                                                  const sealpoint_read_options* options,
                                                  sealpoint_error** error);

// Requests, plans and reads one region (NULL: the whole tensor) in one call.
SEALPOINT_C_API int32_t sealpoint_checkpoint_read_tensor(const sealpoint_checkpoint* checkpoint,
                                                         sealpoint_string tensor,
                                                         const sealpoint_region* region,
                                                         const sealpoint_destination* destination,
                                                         const sealpoint_read_options* options,
                                                         sealpoint_error** error);
// Reads a region into new host memory, aligned to 256 bytes. Returns this memory as a DLPack array
// that the caller owns (flag 2). The array's deleter may run on any thread, even after the
// checkpoint is freed. Further errors: Unsupported (DLPack has no such dtype).
SEALPOINT_C_API int32_t sealpoint_checkpoint_read_dlpack(const sealpoint_checkpoint* checkpoint,
                                                         sealpoint_string tensor,
                                                         const sealpoint_region* region,
                                                         const sealpoint_read_options* options,
                                                         sealpoint_dl_managed_tensor** out,
                                                         sealpoint_error** error);

// ---- Verification -------------------------------------------------------------------------------

// Result of examining a directory.
enum {
  SEALPOINT_VERDICT_COMMITTED = 0,  // valid according to all checks that were made
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
  SEALPOINT_VERIFY_FULL = 3,  // SEALPOINT_VERIFY_STRUCTURE and every chunk
};

typedef struct sealpoint_verify_options {
  uint32_t struct_size;
  uint32_t level;
  uint32_t threads;                         // 0: 1 thread
  uint32_t buffered_io;                     // 1: use the page cache
  uint64_t violations_per_file_max;         // maximum number of listed violations; 0: 1000
  sealpoint_progress_function on_progress;  // may be NULL
  // Called for every violation as soon as the violation is found. Any thread may make the call, but
  // never two threads at the same time. The error is valid only during the callback. May be NULL.
  void (*on_violation)(void* user, const sealpoint_error* violation);
  void* user;  // for both callbacks
} sealpoint_verify_options;

// The result of a verification. Immutable; thread-safe.
typedef struct sealpoint_verify_report sealpoint_verify_report;

// Verifies a checkpoint without changing it. Damage is listed in the report and does not affect the
// returned code. Errors: InvalidArgument (options), Cancelled (by on_progress).
SEALPOINT_C_API int32_t sealpoint_verify(sealpoint_string path,
                                         const sealpoint_verify_options* options,
                                         sealpoint_verify_report** out, sealpoint_error** error);
SEALPOINT_C_API void sealpoint_verify_report_free(sealpoint_verify_report* report);

typedef struct sealpoint_verify_info {
  uint32_t struct_size;
  uint32_t verdict;
  uint64_t violation_count;         // number of all violations, listed or not
  uint64_t listed_violation_count;  // returned by sealpoint_verify_report_violation
  uint64_t note_count;
  uint64_t leftover_bytes;
  sealpoint_id attempt;  // the fields from here to `step` are valid if the marker is intact
  sealpoint_id parent;
  uint64_t sequence;
  uint64_t step;
  uint64_t tensor_count;  // the fields from here to `chunk_count` are valid if the index is intact
  uint64_t object_count;
  uint64_t blob_count;
  uint64_t chunk_count;
  uint64_t bytes_checked;
  double seconds;
} sealpoint_verify_info;
SEALPOINT_C_API int32_t sealpoint_verify_report_get_info(const sealpoint_verify_report* report,
                                                         sealpoint_verify_info* out,
                                                         sealpoint_error** error);
// Returns a violation, which the report owns, or NULL if `index` is too large.
SEALPOINT_C_API const sealpoint_error* sealpoint_verify_report_violation(
    const sealpoint_verify_report* report, uint64_t index);
// Returns a note on a leftover, foreign name or ignored feature; empty if `index` is too large.
SEALPOINT_C_API sealpoint_string sealpoint_verify_report_note(const sealpoint_verify_report* report,
                                                              uint64_t index);

// ---- Series -------------------------------------------------------------------------------------

// A snapshot of the directories of a series. Immutable; thread-safe.
typedef struct sealpoint_series sealpoint_series;

typedef struct sealpoint_series_entry {
  uint32_t struct_size;
  uint32_t verdict;       // based on the marker alone
  sealpoint_string name;  // directory name; strings are valid as long as the series object exists
  sealpoint_string path;
  uint32_t is_void;
  uint32_t is_kept;
  sealpoint_id attempt;
  sealpoint_id parent;
  uint64_t sequence;
  uint64_t step;
  uint64_t size_bytes;             // total size of all Sealpoint files in the directory
  const sealpoint_error* problem;  // reason if not committed, else NULL; owned by the series object
} sealpoint_series_entry;

// Lists all directories of a series: first the committed checkpoints (newest first), then the other
// directories by name. If the series directory does not exist, the list is empty. Errors: Io.
SEALPOINT_C_API int32_t sealpoint_series_list(sealpoint_string path, sealpoint_series** out,
                                              sealpoint_error** error);
// Finds the newest committed checkpoint, checks its marker, its index and the lengths of its blobs,
// and returns this checkpoint as entry 0. If `allow_fallback` is 1, damaged checkpoints are skipped
// and returned as further entries. Errors: NotFound (no checkpoint was ever committed in the
// series), InvalidArgument, Io, and the errors of opening the newest checkpoint.
SEALPOINT_C_API int32_t sealpoint_series_newest(sealpoint_string path, int32_t allow_fallback,
                                                sealpoint_series** out, sealpoint_error** error);
SEALPOINT_C_API void sealpoint_series_free(sealpoint_series* series);
SEALPOINT_C_API uint64_t sealpoint_series_count(const sealpoint_series* series);
SEALPOINT_C_API int32_t sealpoint_series_get_entry(const sealpoint_series* series, uint64_t index,
                                                   sealpoint_series_entry* out,
                                                   sealpoint_error** error);
// Writes a directory name, such as "step-000000000042-1f2e3d4c", and a zero byte. Errors:
// InvalidArgument (the buffer is too small; SEALPOINT_DIRECTORY_NAME_SIZE bytes always suffice).
SEALPOINT_C_API int32_t sealpoint_series_directory_name(uint64_t step, const sealpoint_id* attempt,
                                                        char* out, uint64_t out_size,
                                                        sealpoint_error** error);

// ---- Writing without a communicator -------------------------------------------------------------

// Resources that saves share: staging memory and threads. Create one engine per process.
typedef struct sealpoint_engine sealpoint_engine;

typedef struct sealpoint_engine_options {
  uint32_t struct_size;
  uint32_t io_threads;                 // 0: 1 thread
  uint64_t memory_budget_bytes;        // staging memory; 0: 256 MiB
  uint64_t staging_buffer_size_bytes;  // a multiple of 4096 bytes; 0: 4 MiB
  uint32_t snapshot_threads;           // 0: 2 threads
  uint32_t buffered_io;                // 1: write through the page cache
} sealpoint_engine_options;
SEALPOINT_C_API int32_t sealpoint_engine_create(const sealpoint_engine_options* options,
                                                sealpoint_engine** out, sealpoint_error** error);
SEALPOINT_C_API void sealpoint_engine_free(sealpoint_engine* engine);

// Describes a global tensor. All writers of this tensor pass the same description.
typedef struct sealpoint_tensor_spec {
  uint32_t struct_size;
  uint32_t dtype;
  sealpoint_string name;
  const uint64_t* shape;
  uint32_t ndim;
  uint32_t element_size;      // bytes; 0: size of the dtype
  uint64_t chunk_size_bytes;  // 0: 4 MiB
  uint32_t codec;
  int32_t codec_level;     // 0: 1
  sealpoint_string group;  // tensors of different groups are stored in different blobs
} sealpoint_tensor_spec;

// Writes tensors and objects of one process into blobs in an existing directory, which any number
// of writers may share. Only one call may run at a time. After the first error, every call returns
// this error. A child process cannot use a writer that was created before the fork.
typedef struct sealpoint_blob_writer sealpoint_blob_writer;

typedef struct sealpoint_blob_writer_options {
  uint32_t struct_size;
  uint32_t has_step;  // 1: `step` is set
  uint64_t step;
  uint64_t size_max_bytes;  // maximum size of a blob; 0: 64 GiB
  sealpoint_id attempt;     // zero if unknown
  // Called on the caller's thread with the number of payload bytes staged so far. May be NULL.
  void (*on_bytes)(void* user, uint64_t bytes);
  void* user;
} sealpoint_blob_writer_options;

// No file is created before the first byte is added. Errors: InvalidArgument, NotFound, Io.
SEALPOINT_C_API int32_t sealpoint_blob_writer_create(const sealpoint_engine* engine,
                                                     sealpoint_string directory,
                                                     const sealpoint_blob_writer_options* options,
                                                     sealpoint_blob_writer** out,
                                                     sealpoint_error** error);
// Frees the writer. If the writer was not finished, removes its files.
SEALPOINT_C_API void sealpoint_blob_writer_free(sealpoint_blob_writer* writer);
// Stores a region (NULL: the whole tensor) from `source`. The memory may change after the call. If
// the tensor or the region is empty (an extent is 0), `source` may be NULL. Errors: InvalidArgument
// (the message names the tensor, the actual value and the expected value), NoSpace, Io.
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
// Stores a named byte string. The bytes are copied during the call.
SEALPOINT_C_API int32_t sealpoint_blob_writer_add_object(sealpoint_blob_writer* writer,
                                                         sealpoint_string name,
                                                         sealpoint_string media_type,
                                                         sealpoint_bytes bytes, uint32_t codec,
                                                         sealpoint_error** error);

// Summaries of finished blobs, for the process that commits. Small compared to the payload.
typedef struct sealpoint_summaries sealpoint_summaries;

// Makes all blobs durable: they survive a crash, but only sealpoint_commit makes them a checkpoint.
// Afterwards, only sealpoint_blob_writer_abandon and sealpoint_blob_writer_free may be called.
SEALPOINT_C_API int32_t sealpoint_blob_writer_finish(sealpoint_blob_writer* writer,
                                                     sealpoint_summaries** out,
                                                     sealpoint_error** error);
// Removes the writer's files. May be called after sealpoint_blob_writer_finish if the attempt
// failed in another process. If the attempt may have been committed, or its commit is still
// running, the call keeps the files and returns SEALPOINT_INVALID_ARGUMENT.
SEALPOINT_C_API int32_t sealpoint_blob_writer_abandon(sealpoint_blob_writer* writer,
                                                      sealpoint_error** error);

SEALPOINT_C_API int32_t sealpoint_summaries_create(sealpoint_summaries** out,
                                                   sealpoint_error** error);
SEALPOINT_C_API void sealpoint_summaries_free(sealpoint_summaries* summaries);
SEALPOINT_C_API uint64_t sealpoint_summaries_count(const sealpoint_summaries* summaries);
// Returns the id of a blob, the size of its file, and the size of its tensors and objects. Each of
// these pointers may be NULL. Errors: InvalidArgument (`index` is too large).
SEALPOINT_C_API int32_t sealpoint_summaries_get(const sealpoint_summaries* summaries,
                                                uint64_t index, sealpoint_id* blob,
                                                uint64_t* file_size_bytes, uint64_t* raw_bytes,
                                                sealpoint_error** error);
// Serializes all summaries into one byte string, to be sent through a pipe or a gather.
SEALPOINT_C_API int32_t sealpoint_summaries_serialize(const sealpoint_summaries* summaries,
                                                      sealpoint_buffer** out,
                                                      sealpoint_error** error);
// Verify serialized summaries, or the header, trailer and manifest of a finished blob, and append
// the summaries. On failure, nothing is appended. Errors: Corrupt, Unsupported, LimitExceeded; for
// a blob also NotFound, Incomplete, NotACheckpoint, Io.
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
  uint32_t has_step;  // 1: `step` is set
  uint64_t step;
  sealpoint_id attempt;      // attempt that the writers used; zero: a new random id
  sealpoint_id parent;       // attempt of the preceding checkpoint; zero: none
  uint64_t parent_sequence;  // sequence of the parent
  const sealpoint_mesh_axis* mesh_axes;
  uint64_t mesh_axis_count;
  const sealpoint_key_value* provenance;
  uint64_t provenance_count;
  uint32_t allow_empty;  // 1: allow a checkpoint without tensors and objects
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
  uint64_t total_bytes;  // size of the blobs
  uint64_t index_bytes;
} sealpoint_commit_info;

// Commits the blobs of these summaries atomically as one checkpoint. Exactly one process calls this
// function, after all blobs are finished. `out` may be NULL. After success, the checkpoint survives
// a crash. Errors: InvalidArgument (holes, overlaps, conflicting declarations), AlreadyExists,
// Incomplete, Unsupported, LimitExceeded, NoSpace, Io; see sealpoint_error_outcome_is_unknown.
SEALPOINT_C_API int32_t sealpoint_commit(sealpoint_string directory,
                                         const sealpoint_commit_options* options,
                                         const sealpoint_summaries* summaries,
                                         sealpoint_commit_info* out, sealpoint_error** error);

// ---- Ranks --------------------------------------------------------------------------------------

// One call to a communicator callback. Valid until the callback returns.
typedef struct sealpoint_call sealpoint_call;
// Returns a buffer for the `size_bytes` bytes that rank `source` sent (for a broadcast, pass 0).
// Fill the buffer before the callback returns. Call this function once per source. Returns NULL if
// memory is exhausted or `source` is invalid; the callback must then return SEALPOINT_COMM.
SEALPOINT_C_API void* sealpoint_call_receive(sealpoint_call* call, int32_t source,
                                             uint64_t size_bytes);
// Sets the message of the error that the callback is about to return. The message is copied.
SEALPOINT_C_API void sealpoint_call_set_message(sealpoint_call* call, sealpoint_string message);

// Connects the processes of a collective save, for example over MPI, a key-value store or sockets.
// Transfers metadata, never payload. Functions with a `call` parameter are collective: all ranks
// call them in the same order. Within the deadline, they return SEALPOINT_OK, SEALPOINT_TIMEOUT or
// SEALPOINT_COMM; any other value counts as SEALPOINT_COMM. After an error the library does not use
// the communicator again. Messages may exceed 2 GiB. The library calls one function at a time, on
// the thread that called the library. A function may be NULL only if its comment says so.
typedef struct sealpoint_communicator_table {
  uint32_t struct_size;
  int32_t rank;
  int32_t size;
  uint32_t needs_progress;  // in a duplicate: 1 if calls complete only inside `progress`
  sealpoint_string host;    // host name of this rank; copied
  void* user;
  int32_t (*barrier)(void* user, sealpoint_call* call);
  // Sends the `bytes` of rank `root`. The other ranks receive these bytes from source 0.
  int32_t (*broadcast)(void* user, sealpoint_call* call, sealpoint_bytes bytes, int32_t root);
  // gather: `root` receives from all ranks and itself. all_gather: all ranks receive from all.
  int32_t (*gather)(void* user, sealpoint_call* call, sealpoint_bytes bytes, int32_t root);
  int32_t (*all_gather)(void* user, sealpoint_call* call, sealpoint_bytes bytes);
  // `outgoing` has one entry per destination rank. All ranks receive from all ranks.
  int32_t (*all_to_all)(void* user, sealpoint_call* call, const sealpoint_bytes* outgoing);
  // Replaces `values` with the element-wise maximum over all ranks. MPI_MAX of MPICH 4.0 compares
  // MPI_UINT64_T as signed: the first collective call returns SEALPOINT_COMM (docs/guides/c.md).
  int32_t (*all_reduce_max)(void* user, sealpoint_call* call, uint64_t* values, uint64_t count);
  // Sets the time limit of a collective call (SEALPOINT_FOREVER: no limit). Default: 30 minutes.
  void (*set_deadline)(void* user, int64_t milliseconds);
  // Collective. Fills *out (struct_size is already set) with a second communicator of the same
  // ranks for background saves. Messages of the two communicators must never mix. A thread of the
  // library calls the functions of *out. If the library rejects *out, it calls out->release before
  // sealpoint_saver_save_async returns. Without `duplicate`, that function is Unsupported.
  int32_t (*duplicate)(void* user, sealpoint_call* call, struct sealpoint_communicator_table* out);
  // Advances the current call of the library's thread on a duplicate, without waiting. Called on
  // the program's own thread. Returns 1 if the call made progress. Required if needs_progress is 1.
  int32_t (*progress)(void* user);
  // Makes the current call and all later calls on a duplicate return `code` soon. Called from any
  // thread. Required in a duplicate and in a table with `duplicate`.
  void (*interrupt)(void* user, int32_t code);
  // Called once, when the library no longer needs `user`. May be NULL.
  void (*release)(void* user);
} sealpoint_communicator_table;

typedef struct sealpoint_communicator sealpoint_communicator;
// Copies the table. If the call fails, `release` is not called. Errors: InvalidArgument.
SEALPOINT_C_API int32_t sealpoint_communicator_create(const sealpoint_communicator_table* table,
                                                      sealpoint_communicator** out,
                                                      sealpoint_error** error);
// Create a one-rank communicator, or `size` communicators for threads of this process.
SEALPOINT_C_API int32_t sealpoint_communicator_self(sealpoint_communicator** out,
                                                    sealpoint_error** error);
SEALPOINT_C_API int32_t sealpoint_communicator_threads(int32_t size, sealpoint_communicator** out,
                                                       sealpoint_error** error);
SEALPOINT_C_API void sealpoint_communicator_free(sealpoint_communicator* communicator);

// Lists the tensors and objects of this rank, without their memory. Create a declaration once per
// training run. If an add function fails, every later save of the declaration fails.
typedef struct sealpoint_declaration sealpoint_declaration;
SEALPOINT_C_API int32_t sealpoint_declaration_create(sealpoint_declaration** out,
                                                     sealpoint_error** error);
SEALPOINT_C_API void sealpoint_declaration_free(sealpoint_declaration* declaration);
// Adds a region (NULL: the whole tensor) of this rank. If several ranks hold the region, `replicas`
// lists them in ascending order, including this rank. *slot receives the number for binding memory;
// `slot` may be NULL. Errors: InvalidArgument (wrong arguments; sources of this declaration exist).
SEALPOINT_C_API int32_t sealpoint_declaration_add(sealpoint_declaration* declaration,
                                                  const sealpoint_tensor_spec* tensor,
                                                  const sealpoint_region* region,
                                                  const int32_t* replicas, uint64_t replica_count,
                                                  uint64_t* slot, sealpoint_error** error);
SEALPOINT_C_API int32_t sealpoint_declaration_add_object(sealpoint_declaration* declaration,
                                                         sealpoint_string name,
                                                         sealpoint_string media_type,
                                                         uint32_t codec, sealpoint_error** error);

// Memory for one save. Binding is local. A missing or failed binding fails the save on all ranks.
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
  uint32_t find_replicas;     // 1: detect which ranks hold the same region
  uint32_t compare_replicas;  // 1: require replicas to hold the same bytes
  uint32_t reserved;
  uint64_t blob_size_max_bytes;    // 0: 64 GiB
  int64_t deadline_ms;             // for one exchange; 0: 30 minutes, SEALPOINT_FOREVER: no limit
  int64_t background_deadline_ms;  // for a background save; 0: 2 hours, SEALPOINT_FOREVER: no limit
  sealpoint_progress_function on_progress;  // may be NULL; may run on a thread of the saver
  void* user;
  uint32_t keep_local;            // promoted staged saves to keep on local storage
  uint32_t unpromoted_max;        // staged saves awaiting promotion, with the new one; 0: 3
  int64_t unpromoted_wait_ms;     // wait for one of them; 0: 1 minute
  uint64_t promote_memory_bytes;  // payload in memory; 0: 16 MiB
} sealpoint_saver_options;

// Collective saves. All ranks make the same calls in the same order. If one rank fails, all ranks
// return the same error, which names the failed rank.
typedef struct sealpoint_saver sealpoint_saver;
SEALPOINT_C_API int32_t sealpoint_saver_create(const sealpoint_engine* engine,
                                               const sealpoint_communicator* communicator,
                                               const sealpoint_saver_options* options,
                                               sealpoint_saver** out, sealpoint_error** error);
// Collective. Before this call, wait for all background saves and free their handles.
SEALPOINT_C_API void sealpoint_saver_free(sealpoint_saver* saver);

typedef struct sealpoint_save_options {
  uint32_t struct_size;
  uint32_t in_series;     // 1: `path` is a series; the save creates a new directory in it
  sealpoint_string path;  // of the series if in_series is 1, otherwise of the checkpoint
  uint32_t has_step;      // 1: `step` is set; must be 1 in a series
  uint32_t allow_empty;
  uint64_t step;
  sealpoint_id parent;  // preceding checkpoint; used only if in_series is 0; zero: none
  uint64_t parent_sequence;
  const sealpoint_mesh_axis* mesh_axes;
  uint64_t mesh_axis_count;
  const sealpoint_key_value* provenance;
  uint64_t provenance_count;
  // If a marker that may be the newest is damaged or has a different format version: 1: save
  // anyway; 0: fail with SEALPOINT_CORRUPT or SEALPOINT_UNSUPPORTED.
  uint32_t allow_fallback;
  uint32_t reserved;
  sealpoint_string local;  // directory for a staged save, which is promoted to `path`; empty: none
} sealpoint_save_options;

// Saves the data bound to `sources`. `out` and `directory` (the checkpoint's path) may be NULL.
// Errors: the errors of sealpoint_commit and of a blob writer; Comm, Timeout; InvalidArgument
// (wrong arguments on any rank; ranks disagree). Only its own rank reports a NULL saver.
SEALPOINT_C_API int32_t sealpoint_saver_save(sealpoint_saver* saver,
                                             const sealpoint_save_options* options,
                                             const sealpoint_sources* sources,
                                             sealpoint_commit_info* out,
                                             sealpoint_buffer** directory, sealpoint_error** error);

// A background save. When the call that starts it returns, the memory of the sources may change.
typedef struct sealpoint_pending_save sealpoint_pending_save;
SEALPOINT_C_API int32_t sealpoint_saver_save_async(sealpoint_saver* saver,
                                                   const sealpoint_save_options* options,
                                                   const sealpoint_sources* sources,
                                                   sealpoint_pending_save** out,
                                                   sealpoint_error** error);
enum {
  SEALPOINT_SAVE_RUNNING = 0,
  SEALPOINT_SAVE_COMMITTED = 1,  // durable
  SEALPOINT_SAVE_FAILED = 2,     // no checkpoint was created; training can continue
  SEALPOINT_SAVE_UNKNOWN = 3,    // see sealpoint_error_outcome_is_unknown
};
// Local. Advances the save without waiting and returns its state, or SEALPOINT_SAVE_FAILED if
// `pending` is NULL. Call this function regularly, for example once per training step.
SEALPOINT_C_API int32_t sealpoint_pending_save_poll(sealpoint_pending_save* pending);
// Collective. Waits for the outcome, which is the same on all ranks. May be called repeatedly.
SEALPOINT_C_API int32_t sealpoint_pending_save_wait(sealpoint_pending_save* pending,
                                                    sealpoint_commit_info* out,
                                                    sealpoint_buffer** directory,
                                                    sealpoint_error** error);
// Local; thread-safe. Asks the save to end with SEALPOINT_CANCELLED on all ranks.
SEALPOINT_C_API void sealpoint_pending_save_cancel(sealpoint_pending_save* pending);
// Frees the handle. If the save is still running, it is cancelled.
SEALPOINT_C_API void sealpoint_pending_save_free(sealpoint_pending_save* pending);

#ifdef __cplusplus
}
#endif

#endif  // SEALPOINT_C_H_
