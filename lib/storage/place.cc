// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/place.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/path.h"

namespace sealpoint::internal::storage {
namespace {

// Components without "", "." and what ".." takes back.
std::vector<std::string> Components(std::string_view path) {
  std::vector<std::string> components;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view one = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (one == "..") {
      if (!components.empty()) components.pop_back();
    } else if (!one.empty() && one != ".") {
      components.emplace_back(one);
    }
  }
  return components;
}

bool HasFirstOf(const Location& place, const Location& other) {
  return std::ranges::find(place.identities, other.identities.front()) != place.identities.end();
}

}  // namespace

Location LocateByText(std::string_view root, std::string_view path) {
  Location place{.path = std::string(root), .identities = {std::string(root)}};
  for (const std::string& component : Components(path)) {
    place.path = StrCat(place.path, "/", component);
    place.identities.insert(place.identities.begin(), place.path);
  }
  return place;
}

Result<bool> Overlap(const Storage& a_storage, std::string_view a, const Storage& b_storage,
                     std::string_view b) {
  SEALPOINT_ASSIGN_OR_RETURN(const Location a_place, a_storage.Locate(a));
  SEALPOINT_ASSIGN_OR_RETURN(const Location b_place, b_storage.Locate(b));
  return HasFirstOf(a_place, b_place) || HasFirstOf(b_place, a_place);
}

Status CheckApart(const Storage& from_storage, std::string_view from, const Storage& to_storage,
                  std::string_view to) {
  SEALPOINT_ASSIGN_OR_RETURN(const bool overlap, Overlap(from_storage, from, to_storage, to));
  if (!overlap) return {};
  return RuleError(Code::kInvalidArgument, "R-STG-12", "this place and ", to,
                   " are the same directory, or one contains the other; expected separate "
                   "directories, such as one on a node-local disk and that of the series")
      .AtPath(std::string(from));
}

}  // namespace sealpoint::internal::storage

namespace sealpoint {

// Paths of one text are one place if one storage, or one authority, has them.
Result<Location> Storage::Locate(std::string_view path) const {
  const std::string_view authority = internal::storage::AuthorityOf(path);
  if (!authority.empty()) {
    return internal::storage::LocateByText(authority, path.substr(authority.size()));
  }
  Location place = internal::storage::LocateByText("", path);
  for (std::string& identity : place.identities) {
    identity = internal::StrCat(reinterpret_cast<std::uintptr_t>(this), ":", identity);
  }
  return place;
}

}  // namespace sealpoint
