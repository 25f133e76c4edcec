// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_PLACE_H_
#define SEALPOINT_LIB_STORAGE_PLACE_H_

#include <string_view>

#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::storage {

// True if two paths lead to the same directory, or one of them into the other. Errors: Io.
Result<bool> Overlap(const Storage& a_storage, std::string_view a, const Storage& b_storage,
                     std::string_view b);

// R-STG-12. Errors: InvalidArgument: `from` and `to` overlap; Io.
Status CheckApart(const Storage& from_storage, std::string_view from, const Storage& to_storage,
                  std::string_view to);

// Result of Storage::Locate for storages that identify paths by their text.
Location LocateByText(std::string_view root, std::string_view path);

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_PLACE_H_
