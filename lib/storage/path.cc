// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/path.h"

#include "lib/base/errors.h"
#include "sealpoint/storage.h"

namespace sealpoint {

std::string JoinPath(std::string_view directory, std::string_view name) {
  std::string joined(directory);
  while (joined.size() > 1 && joined.back() == '/') joined.pop_back();
  if (!joined.empty() && joined.back() != '/') joined.push_back('/');
  joined.append(name);
  return joined;
}

namespace internal {

Status CheckName(std::string_view directory, std::string_view name) {
  const bool is_component =
      !name.empty() && name != "." && name != ".." &&
      name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
  if (is_component) return {};
  return InvalidArgument("'", name, "' is not a valid name of a directory entry")
      .AtPath(JoinPath(directory, name));
}

Status CheckPath(std::string_view path) {
  if (path.empty()) return InvalidArgument("path is empty");
  if (path.find('\0') != std::string_view::npos) {
    return InvalidArgument("path has a NUL byte").AtPath(path);
  }
  return {};
}

std::string ParentPath(std::string_view path) {
  const std::size_t last = path.find_last_not_of('/');
  if (last == std::string_view::npos) return "/";
  const std::size_t slash = path.find_last_of('/', last);
  if (slash == std::string_view::npos) return ".";
  const std::size_t end = path.find_last_not_of('/', slash);
  return end == std::string_view::npos ? "/" : std::string(path.substr(0, end + 1));
}

std::string_view LastComponent(std::string_view path) {
  const std::size_t last = path.find_last_not_of('/');
  if (last == std::string_view::npos) return {};
  path = path.substr(0, last + 1);
  return path.substr(path.find_last_of('/') + 1);  // npos + 1 is 0
}

std::vector<std::string> PathPrefixes(std::string_view path) {
  std::vector<std::string> prefixes;
  std::size_t begin = path.find_first_not_of('/');
  while (begin != std::string_view::npos) {
    const std::size_t end = path.find('/', begin);
    prefixes.emplace_back(path.substr(0, end));
    begin = path.find_first_not_of('/', end);
  }
  return prefixes;
}

}  // namespace internal
}  // namespace sealpoint
