// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_SAVE_CALL_H_
#define SEALPOINT_LIB_SAVER_SAVE_CALL_H_

#include <string_view>

#include "lib/comm/same_call.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// Errors: InvalidArgument. `size`: the number of ranks.
Status CheckOptions(const SaverOptions& options, int size);

// Values that must be equal on all ranks that begin a save (R-CMT-17).
comm::CollectiveCall CallOf(std::string_view kind, const SaverOptions& options,
                            const SaveTarget& target, const SaveOptions& save);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_SAVE_CALL_H_
