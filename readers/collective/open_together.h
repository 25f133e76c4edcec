// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_OPEN_TOGETHER_H_
#define SEALPOINT_READERS_COLLECTIVE_OPEN_TOGETHER_H_

#include <memory>
#include <string>

#include "sealpoint/checkpoint.h"
#include "sealpoint/collective_reader.h"
#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::collective {

// CollectiveReader::Open without its first exchange, for callers who know already that all ranks
// open the same checkpoint.
Result<std::unique_ptr<CollectiveReader>> OpenTogether(Communicator& comm, const std::string& path,
                                                       const OpenOptions& options);

}  // namespace sealpoint::internal::collective

#endif  // SEALPOINT_READERS_COLLECTIVE_OPEN_TOGETHER_H_
