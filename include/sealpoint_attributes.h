// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_ATTRIBUTES_C_H_
#define SEALPOINT_ATTRIBUTES_C_H_

// The part of Sealpoint's C API for attributes: named values of a tensor or of a checkpoint, such
// as units and names of dimensions (docs/guides/attributes.md). libsealpoint_c.so implements the
// functions, and the rules of sealpoint.h apply to them.

#include "sealpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

// Types of values, and of their arrays: sealpoint_string, int64_t, double, or uint8_t (0 or 1).
enum {
  SEALPOINT_ATTRIBUTE_STRING = 1,
  SEALPOINT_ATTRIBUTE_INT64 = 2,
  SEALPOINT_ATTRIBUTE_FLOAT64 = 3,
  SEALPOINT_ATTRIBUTE_BOOL = 4
};

typedef struct sealpoint_attribute {
  sealpoint_string name;
  const void* values;  // array of `count` values
  uint64_t count;      // 1 if is_list is 0
  uint32_t type;
  uint32_t is_list;
} sealpoint_attribute;

// Set the attributes of a tensor, for all later calls that add regions of this tensor. All ranks
// and writers of a tensor set the same attributes. The arrays are copied. Errors: InvalidArgument
// (name, type, count, text that is not UTF-8, more than 1 MiB).
SEALPOINT_C_API int32_t sealpoint_declaration_set_attributes(sealpoint_declaration* declaration,
                                                             sealpoint_string tensor,
                                                             const sealpoint_attribute* attributes,
                                                             uint64_t count,
                                                             sealpoint_error** error);
SEALPOINT_C_API int32_t sealpoint_blob_writer_set_attributes(sealpoint_blob_writer* writer,
                                                             sealpoint_string tensor,
                                                             const sealpoint_attribute* attributes,
                                                             uint64_t count,
                                                             sealpoint_error** error);
// Set the attributes of the checkpoint, for saves of these sources or commits of these summaries.
// A collective save stores those of rank 0. Errors: as above.
SEALPOINT_C_API int32_t sealpoint_sources_set_attributes(sealpoint_sources* sources,
                                                         const sealpoint_attribute* attributes,
                                                         uint64_t count, sealpoint_error** error);
SEALPOINT_C_API int32_t sealpoint_summaries_set_attributes(sealpoint_summaries* summaries,
                                                           const sealpoint_attribute* attributes,
                                                           uint64_t count, sealpoint_error** error);

// Attributes that were read, sorted by name. Immutable; thread-safe.
typedef struct sealpoint_attributes sealpoint_attributes;
// Return those of the checkpoint, or of a tensor. Errors: NotFound.
SEALPOINT_C_API int32_t sealpoint_checkpoint_attributes(const sealpoint_checkpoint* checkpoint,
                                                        sealpoint_attributes** out,
                                                        sealpoint_error** error);
SEALPOINT_C_API int32_t sealpoint_checkpoint_tensor_attributes(
    const sealpoint_checkpoint* checkpoint, sealpoint_string tensor, sealpoint_attributes** out,
    sealpoint_error** error);
SEALPOINT_C_API void sealpoint_attributes_free(sealpoint_attributes* attributes);
SEALPOINT_C_API uint64_t sealpoint_attributes_count(const sealpoint_attributes* attributes);
// `out` is valid as long as the attributes exist. Errors: InvalidArgument (`index` is too large).
SEALPOINT_C_API int32_t sealpoint_attributes_get(const sealpoint_attributes* attributes,
                                                 uint64_t index, sealpoint_attribute* out,
                                                 sealpoint_error** error);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // SEALPOINT_ATTRIBUTES_C_H_
