// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/path.h"
#include "sealpoint/storage.h"

namespace sealpoint {
namespace internal::storage {
namespace {

constexpr std::string_view kFileScheme = "file";

// "file:///a/b" names "/a/b". What follows is taken as it is: no %xx.
Result<std::string> PathOfFileUri(std::string_view uri) {
  const std::string_view root = AuthorityOf(uri);
  if (root.size() > kFileScheme.size() + std::string_view("://").size()) {
    return InvalidArgument("a file URI with a host, expected file:///path").AtPath(uri);
  }
  const std::string_view path = uri.substr(root.size());
  return std::string(path.empty() ? "/" : path);
}

class FileUriStorage final : public Storage {
 public:
  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override {
    SEALPOINT_ASSIGN_OR_RETURN(const std::string plain, PathOfFileUri(path));
    return PosixStorage()->OpenDirectory(plain);
  }
  Status CreateDirectories(std::string_view path) override {
    SEALPOINT_ASSIGN_OR_RETURN(const std::string plain, PathOfFileUri(path));
    return PosixStorage()->CreateDirectories(plain);
  }
  Status SyncAll(std::string_view path) override {
    SEALPOINT_ASSIGN_OR_RETURN(const std::string plain, PathOfFileUri(path));
    return PosixStorage()->SyncAll(plain);
  }
  Status Move(std::string_view from, std::string_view to) override {
    SEALPOINT_ASSIGN_OR_RETURN(const std::string plain_from, PathOfFileUri(from));
    SEALPOINT_ASSIGN_OR_RETURN(const std::string plain_to, PathOfFileUri(to));
    return PosixStorage()->Move(plain_from, plain_to);
  }
  Result<Location> Locate(std::string_view path) const override {
    SEALPOINT_ASSIGN_OR_RETURN(const std::string plain, PathOfFileUri(path));
    return PosixStorage()->Locate(plain);
  }
};

class DefaultStorageImpl final : public Storage {
 public:
  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override {
    SEALPOINT_ASSIGN_OR_RETURN(const auto storage, StorageFor(path));
    return storage->OpenDirectory(path);
  }
  Status CreateDirectories(std::string_view path) override {
    SEALPOINT_ASSIGN_OR_RETURN(const auto storage, StorageFor(path));
    return storage->CreateDirectories(path);
  }
  Status SyncAll(std::string_view path) override {
    SEALPOINT_ASSIGN_OR_RETURN(const auto storage, StorageFor(path));
    return storage->SyncAll(path);
  }
  Status Move(std::string_view from, std::string_view to) override {
    SEALPOINT_ASSIGN_OR_RETURN(const auto storage, StorageFor(to));
    return storage->Move(from, to);
  }
  Result<std::vector<UnfinishedFile>> ListUnfinished(std::string_view path) const override {
    SEALPOINT_ASSIGN_OR_RETURN(const auto storage, StorageFor(path));
    return storage->ListUnfinished(path);
  }
  Status AbortUnfinished(std::string_view path, const UnfinishedFile& file) override {
    SEALPOINT_ASSIGN_OR_RETURN(const auto storage, StorageFor(path));
    return storage->AbortUnfinished(path, file);
  }
  Result<Location> Locate(std::string_view path) const override {
    SEALPOINT_ASSIGN_OR_RETURN(const auto storage, StorageFor(path));
    return storage->Locate(path);
  }
  std::uint64_t part_size_bytes(std::string_view path) const override {
    const auto storage = StorageFor(path);
    return storage.ok() ? (*storage)->part_size_bytes(path) : 0;
  }
};

struct Scheme {
  StorageFactory factory;
  std::uint64_t number = 0;                                                 // of the registration
  std::map<std::string, std::shared_ptr<Storage>, std::less<>> storages{};  // by authority
};

struct Registry {
  std::mutex mutex;
  std::uint64_t registrations = 0;
  std::map<std::string, Scheme, std::less<>> schemes;
};

// Never destroyed: storages that are implemented in Python must not go after the interpreter did,
// and a save in the background may outlive what the end of a program destroys.
Registry& TheRegistry() {
  static Registry& registry = *new Registry;
  return registry;
}

// Schemes do not differ by case (RFC 3986 section 3.1).
std::string LowerCase(std::string_view scheme) {
  std::string lower(scheme);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

Status NotRegistered(std::string_view path, std::string_view scheme) {
  return MakeError(Code::kUnsupported, "no storage is registered for ", scheme, "://; expected ",
                   scheme == "s3" ? "sealpoint::s3 to be linked and registered, or in Python: "
                                  : "a call of RegisterStorage, or in Python: ",
                   "pip install obstore")
      .AtPath(path);
}

}  // namespace
}  // namespace internal::storage

Status RegisterStorage(std::string_view scheme, StorageFactory factory) {
  const std::string name = internal::storage::LowerCase(scheme);
  if (name.empty() || internal::storage::SchemeOf(name + "://") != name ||
      name == internal::storage::kFileScheme) {
    return internal::InvalidArgument("'", scheme,
                                     "' is not a scheme that can be registered, "
                                     "expected a letter, then letters, digits, '+', '-' and '.'; "
                                     "not 'file'");
  }
  if (!factory) return internal::InvalidArgument("the factory of ", scheme, ":// is null");
  internal::storage::Registry& registry = internal::storage::TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.schemes[name] = {.factory = std::move(factory), .number = ++registry.registrations};
  return {};
}

// The factory runs without the lock: it may wait for Python's, whose owner may wait for this one.
Result<std::shared_ptr<Storage>> StorageFor(std::string_view path) {
  const std::string scheme = internal::storage::LowerCase(internal::storage::SchemeOf(path));
  if (scheme.empty()) return PosixStorage();
  if (scheme == internal::storage::kFileScheme) {
    return std::shared_ptr<Storage>(std::make_shared<internal::storage::FileUriStorage>());
  }
  const std::string authority(internal::storage::AuthorityOf(path));
  internal::storage::Registry& registry = internal::storage::TheRegistry();
  StorageFactory factory;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(registry.mutex);
    const auto found = registry.schemes.find(scheme);
    if (found == registry.schemes.end()) return internal::storage::NotRegistered(path, scheme);
    const auto known = found->second.storages.find(authority);
    if (known != found->second.storages.end()) return known->second;
    factory = found->second.factory;
    number = found->second.number;
  }
  SEALPOINT_ASSIGN_OR_RETURN(std::shared_ptr<Storage> made, factory(authority));
  if (made == nullptr) {
    return internal::InvalidArgument("the factory of ", scheme, ":// made no storage").AtPath(path);
  }
  const std::lock_guard lock(registry.mutex);
  internal::storage::Scheme& entry = registry.schemes[scheme];
  // Registered anew meanwhile: what the older factory made serves this call only.
  if (entry.number != number) return made;
  return entry.storages.try_emplace(authority, std::move(made)).first->second;
}

std::shared_ptr<Storage> DefaultStorage() {
  // Never destroyed, as the registry.
  static const auto& storage =
      *new std::shared_ptr<Storage>(std::make_shared<internal::storage::DefaultStorageImpl>());
  return storage;
}

}  // namespace sealpoint
