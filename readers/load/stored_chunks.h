// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_STORED_CHUNKS_H_
#define SEALPOINT_READERS_LOAD_STORED_CHUNKS_H_

#include "lib/container/blob_tables.h"
#include "lib/metadata/metadata.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::load {

// Adds up the chunk records of a tensor, which it reads some at a time. Errors: those of
// BlobTables::Load.
Result<StoredChunks> CountChunks(container::BlobTables& tables, const metadata::TensorView& tensor);

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_STORED_CHUNKS_H_
