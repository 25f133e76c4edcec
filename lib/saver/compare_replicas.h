// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_COMPARE_REPLICAS_H_
#define SEALPOINT_LIB_SAVER_COMPARE_REPLICAS_H_

#include "lib/pipeline/engine_parts.h"
#include "lib/saver/find_replicas.h"
#include "sealpoint/communicator.h"
#include "sealpoint/declaration.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// Compares what the ranks hold in common (R-CMT-33). `shared_items` has numbers of the declaration
// of `sources`.
//
// Collective: a rank sends one digest for all that it holds together with the same ranks, to the
// first of them; only if some differ, the digests of single tensors and objects follow. Errors, the
// same on all ranks: InvalidArgument (they differ; names a tensor or object, the ranks and their
// digests), Device; Comm, Timeout.
Status CompareReplicas(Communicator& comm, pipeline::EngineParts& engine, const Sources& sources,
                       const ItemsByHolders& shared_items);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_COMPARE_REPLICAS_H_
