// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/path.h"

#include <algorithm>

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

namespace internal::storage {

Status CheckName(std::string_view directory, std::string_view name) {
  const bool is_component =
      !name.empty() && name != "." && name != ".." &&
      name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
  if (is_component) return {};
  return InvalidArgument("'", name, "' is not a valid name of a directory entry")
      .AtPath(JoinPath(directory, name));
}

constexpr std::string_view kSchemeEnd = "://";

std::string_view SchemeOf(std::string_view path) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto may_follow = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  };
  const std::size_t end = path.find(kSchemeEnd);
  if (end == std::string_view::npos || end == 0 || !is_letter(path.front())) return {};
  const std::string_view scheme = path.substr(0, end);
  return std::all_of(scheme.begin(), scheme.end(), may_follow) ? scheme : std::string_view();
}

// To the system "s3://bucket/x" is a folder "s3:" in the working directory: what is saved there is
// not where it was wanted.
Status CheckPath(std::string_view path) {
  if (path.empty()) return InvalidArgument("path is empty");
  if (const std::string_view scheme = SchemeOf(path); !scheme.empty()) {
    return MakeError(Code::kUnsupported, scheme, kSchemeEnd,
                     " is not supported, expected a path of a mounted file system")
        .AtPath(path);
  }
  if (path.find('\0') != std::string_view::npos) {
    return InvalidArgument("path has a NUL byte").AtPath(path);
  }
  return {};
}

std::string_view AuthorityOf(std::string_view path) {
  const std::size_t scheme = SchemeOf(path).size();
  if (scheme == 0) return {};
  return path.substr(0, path.find('/', scheme + kSchemeEnd.size()));
}

std::string ParentPath(std::string_view path) {
  if (const std::string_view root = AuthorityOf(path); !root.empty()) {
    const std::string_view below = path.substr(root.size());
    const std::size_t slash = below.find_last_of('/', below.find_last_not_of('/'));
    const std::size_t end = below.find_last_not_of('/', slash);
    const bool is_at_root = slash == std::string_view::npos || end == std::string_view::npos;
    return std::string(is_at_root ? root : path.substr(0, root.size() + end + 1));
  }
  const std::size_t last = path.find_last_not_of('/');
  if (last == std::string_view::npos) return "/";
  const std::size_t slash = path.find_last_of('/', last);
  if (slash == std::string_view::npos) return ".";
  const std::size_t end = path.find_last_not_of('/', slash);
  return end == std::string_view::npos ? "/" : std::string(path.substr(0, end + 1));
}

std::string_view LastComponent(std::string_view path) {
  path.remove_prefix(AuthorityOf(path).size());
  const std::size_t last = path.find_last_not_of('/');
  if (last == std::string_view::npos) return {};
  path = path.substr(0, last + 1);
  return path.substr(path.find_last_of('/') + 1);  // npos + 1 is 0
}

std::vector<std::string> PathPrefixes(std::string_view path) {
  std::vector<std::string> prefixes;
  std::size_t begin = path.find_first_not_of('/', AuthorityOf(path).size());
  while (begin != std::string_view::npos) {
    const std::size_t end = path.find('/', begin);
    prefixes.emplace_back(path.substr(0, end));
    begin = path.find_first_not_of('/', end);
  }
  return prefixes;
}

}  // namespace internal::storage
}  // namespace sealpoint
