// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_COMPARE_REPLICAS_H_
#define SEALPOINT_LIB_SAVER_COMPARE_REPLICAS_H_

#include "lib/pipeline/engine_parts.h"
#include "lib/saver/find_replicas.h"
#include "sealpoint/communicator.h"
#include "sealpoint/declaration.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// Compares replicas (R-CMT-33). `shared_items` has numbers of the declaration of `sources`.
//
// Collective: a rank sends one digest for all data that it shares with the same ranks to the first
// of them. Only if digests differ, the digests of single tensors and objects follow. Errors, the
// same on all ranks: InvalidArgument (replicas differ; names a tensor or object, the ranks and
// their digests), Device; Comm, Timeout.
Status CompareReplicas(Communicator& comm, pipeline::EngineParts& engine, const Sources& sources,
                       const ItemsByHolders& shared_items);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_COMPARE_REPLICAS_H_
