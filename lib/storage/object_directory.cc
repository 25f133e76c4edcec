// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/object_directory.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/object_readable_file.h"
#include "lib/storage/object_writable_file.h"
#include "lib/storage/path.h"

namespace sealpoint::internal::storage {
namespace {

constexpr std::size_t kKeySizeMaxBytes = 1024;  // of S3, GCS and Azure

EntryInfo FileEntry(std::string_view name, const StoredObject& info) {
  return {.name = std::string(name), .kind = EntryKind::kFile, .size_bytes = info.size_bytes};
}

EntryInfo DirectoryEntry(std::string_view name) {
  return {.name = std::string(name), .kind = EntryKind::kDirectory};
}

Status NothingThere(const std::string& path) {
  return MakeError(Code::kNotFound, "no such object").AtPath(path);
}

// Where a listing goes on. A store that comes back to a page that it gave before would be listed
// for ever: of all places the last one at a power of two is kept, which finds a circle of any
// length.
class Continuation {
 public:
  explicit Continuation(const std::string& path) : path_(path) {}

  const std::string& next() const { return next_; }

  // Errors: Io.
  Status Advance(std::string next) {
    next_ = std::move(next);
    if (next_.empty()) return {};
    if (next_ == kept_) {
      return MakeError(Code::kIo, "the listing returned the same page twice, after ", page_count_,
                       " pages")
          .AtPath(path_);
    }
    if (++page_count_ == keep_at_) {
      kept_ = next_;
      keep_at_ *= 2;
    }
    return {};
  }

 private:
  const std::string& path_;
  std::string next_;
  std::string kept_;
  std::uint64_t page_count_ = 0;
  std::uint64_t keep_at_ = 1;
};

// The name of a key or of a prefix directly below `prefix`. Empty for the prefix itself, and for
// what no name can be ("//" in a key).
std::string_view NameBelow(std::string_view key, std::string_view prefix) {
  if (!key.starts_with(prefix)) return {};
  key.remove_prefix(prefix.size());
  if (key.ends_with('/')) key.remove_suffix(1);
  return key;
}

// Whether two etags are of different contents, as far as they say: those of uploads in parts
// ("<digest>-<parts>") depend on the parts, and not all stores quote them.
bool AreOfOthers(std::string_view a, std::string_view b) {
  const auto plain = [](std::string_view etag) {
    if (etag.starts_with('"')) etag.remove_prefix(1);
    if (etag.ends_with('"')) etag.remove_suffix(1);
    return etag;
  };
  const bool is_known = !a.empty() && !b.empty() && a.find('-') == std::string_view::npos &&
                        b.find('-') == std::string_view::npos;
  return is_known && plain(a) != plain(b);
}

// Some stores list prefixes for a while after the last object below them went.
Result<bool> HasObjects(const ObjectStore& store, const std::string& prefix) {
  SEALPOINT_ASSIGN_OR_RETURN(const ObjectPage page, store.List(prefix, ""));
  if (!page.next.empty()) return true;
  for (const StoredObject& object : page.objects) {
    if (object.key != prefix) return true;
  }
  for (const std::string& inner : page.prefixes) {
    SEALPOINT_ASSIGN_OR_RETURN(const bool has_objects, HasObjects(store, inner));
    if (has_objects) return true;
  }
  return false;
}

bool IsEmptyPage(const ObjectPage& page) { return page.objects.empty() && page.prefixes.empty(); }

}  // namespace

Result<std::string> PrefixBelow(const ObjectStore& store, std::string_view path) {
  const std::string& root = store.uri();
  // Schemes do not differ by case (RFC 3986 section 3.1).
  const std::size_t scheme_size = SchemeOf(root).size();
  const auto lower = [](unsigned char c) { return std::tolower(c); };
  const bool is_below =
      path.size() >= root.size() &&
      std::ranges::equal(path.substr(0, scheme_size), root.substr(0, scheme_size), {}, lower,
                         lower) &&
      path.substr(scheme_size).starts_with(std::string_view(root).substr(scheme_size)) &&
      (path.size() == root.size() || path[root.size()] == '/');
  if (!is_below) {
    return InvalidArgument("path is not of this object store, expected ", root, "/…").AtPath(path);
  }
  std::string prefix;
  std::string_view rest = path.substr(root.size());
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (name.empty()) continue;
    SEALPOINT_RETURN_IF_ERROR(CheckName(path, name));
    prefix.append(name).push_back('/');
  }
  return prefix;
}

Result<std::unique_ptr<Directory>> ObjectDirectory::Open(std::shared_ptr<ObjectTree> tree,
                                                         std::string path, std::string prefix) {
  std::unique_ptr<ObjectDirectory> directory(
      new ObjectDirectory(std::move(tree), std::move(path), std::move(prefix)));
  if (directory->IsMade()) return std::unique_ptr<Directory>(std::move(directory));
  SEALPOINT_ASSIGN_OR_RETURN(ObjectPage page, directory->store().List(directory->prefix_, ""));
  if (IsEmptyPage(page) && !directory->prefix_.empty()) {
    return directory->NothingBelow();
  }
  if (page.next.empty()) directory->AddPage(std::move(page), directory->listed_);
  return std::unique_ptr<Directory>(std::move(directory));
}

// NotFound, or Io if the path is that of an object: whoever gives a file for a directory must not
// take it for an empty one.
Status ObjectDirectory::NothingBelow() const {
  const auto object = store().Head(prefix_.substr(0, prefix_.size() - 1));
  if (object.ok()) return MakeError(Code::kIo, "not a directory, but an object").AtPath(path_);
  if (object.error().code() != Code::kNotFound) return object.error();
  return MakeError(Code::kNotFound, "no object exists below this path").AtPath(path_);
}

bool ObjectDirectory::IsMade() const {
  const std::lock_guard lock(tree_->mutex);
  return tree_->made.find(prefix_) != tree_->made.end();
}

Result<std::string> ObjectDirectory::KeyOf(std::string_view name) const {
  SEALPOINT_RETURN_IF_ERROR(CheckName(path_, name));
  if (prefix_.size() + name.size() <= kKeySizeMaxBytes) return prefix_ + std::string(name);
  return MakeError(Code::kIo, "the key has ", prefix_.size() + name.size(), " bytes, at most ",
                   kKeySizeMaxBytes)
      .AtPath(JoinPath(path_, name));
}

// Replacing what has a random name can only be a repetition of the same put. For all other names a
// look finds what is there, and the condition of a small object decides between two that are made
// at once; of two large ones the later stays.
Result<std::unique_ptr<WritableFile>> ObjectDirectory::CreateExclusive(std::string_view name,
                                                                       CreateOptions options) {
  SEALPOINT_ASSIGN_OR_RETURN(std::string key, KeyOf(name));
  Forget(name);
  if (!options.is_name_random) {
    const auto there = Stat(name);
    if (there.ok()) {
      return MakeError(Code::kAlreadyExists, "an object of this name exists")
          .AtPath(JoinPath(path_, name));
    }
    if (there.error().code() != Code::kNotFound) return there.error();
  }
  std::unique_ptr<WritableFile> file = std::make_unique<ObjectWritableFile>(
      tree_->store, tree_->buffers, std::move(key),
      options.is_name_random ? ObjectWritableFile::OnTaken::kReplace
                             : ObjectWritableFile::OnTaken::kRefuse);
  return file;
}

std::optional<StoredObject> ObjectDirectory::KnownLarge(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto found = large_.find(name);
  if (found == large_.end()) return std::nullopt;
  return found->second;
}

void ObjectDirectory::Forget(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto found = large_.find(name); found != large_.end()) large_.erase(found);
  if (const auto found = listed_.find(name); found != listed_.end()) listed_.erase(found);
}

// Small objects are read whole, and afresh: the marker is one.
Result<std::unique_ptr<ReadableFile>> ObjectDirectory::OpenForRead(std::string_view name,
                                                                   IoMode mode) const {
  SEALPOINT_ASSIGN_OR_RETURN(const std::string key, KeyOf(name));
  std::optional<StoredObject> info = KnownLarge(name);
  Bytes front;
  if (!info) {
    auto got = store().GetFirst(key, kObjectFrontBytes, front);
    if (!got.ok() && got.error().code() == Code::kNotFound) {
      return NothingThere(JoinPath(path_, name));
    }
    SEALPOINT_ASSIGN_OR_RETURN(info, std::move(got));
    info->key = key;
  }
  std::unique_ptr<ReadableFile> file =
      std::make_unique<ObjectReadableFile>(tree_->store, *std::move(info), std::move(front), mode);
  return file;
}

Result<EntryInfo> ObjectDirectory::Stat(std::string_view name) const {
  SEALPOINT_ASSIGN_OR_RETURN(const std::string key, KeyOf(name));
  const auto info = store().Head(key);
  if (info.ok()) return FileEntry(name, *info);
  if (info.error().code() != Code::kNotFound) return info.error();
  SEALPOINT_ASSIGN_OR_RETURN(const ObjectPage below, store().List(key + "/", ""));
  if (!IsEmptyPage(below)) return DirectoryEntry(name);
  const std::lock_guard lock(tree_->mutex);
  if (tree_->made.find(key + "/") != tree_->made.end()) return DirectoryEntry(name);
  return NothingThere(JoinPath(path_, name));
}

void ObjectDirectory::AddPage(ObjectPage page, Listing& listing) const {
  const std::lock_guard lock(mutex_);
  for (StoredObject& object : page.objects) {
    const std::string name(NameBelow(object.key, prefix_));
    if (name.empty() || object.key.ends_with('/')) continue;
    if (object.size_bytes > kObjectFrontBytes) large_.insert_or_assign(name, object);
    listing.emplace(name, std::move(object));
  }
}

Result<ObjectDirectory::Listing> ObjectDirectory::ListObjects() const {
  Listing listing;
  Continuation at(path_);
  do {
    SEALPOINT_ASSIGN_OR_RETURN(ObjectPage page, store().List(prefix_, at.next()));
    SEALPOINT_RETURN_IF_ERROR(at.Advance(page.next));
    AddPage(std::move(page), listing);
  } while (!at.next().empty());
  return listing;
}

// An older listing says what is there, but not what is not: an object may have come since. So if
// it lacks one of the names, there is a new one. What it said of a name it says once: who asks
// again wants to know what is there now.
Result<std::vector<Result<EntryInfo>>> ObjectDirectory::StatEach(
    std::span<const std::string> names) const {
  std::unique_lock lock(mutex_);
  const bool is_known = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return listed_.find(name) != listed_.end();
  });
  if (!is_known) {
    lock.unlock();
    SEALPOINT_ASSIGN_OR_RETURN(Listing listing, ListObjects());
    lock.lock();
    listed_ = std::move(listing);
  }
  std::vector<Result<EntryInfo>> found;
  found.reserve(names.size());
  for (const std::string& name : names) {
    const auto info = listed_.find(name);
    found.push_back(info != listed_.end() ? Result<EntryInfo>(FileEntry(name, info->second))
                                          : Result<EntryInfo>(NothingThere(JoinPath(path_, name))));
  }
  for (const std::string& name : names) listed_.erase(name);
  return found;
}

// What was made and is still empty is seen, too, as long as this process lives.
std::set<std::string, std::less<>> ObjectDirectory::MadeNames() const {
  std::set<std::string, std::less<>> names;
  const std::lock_guard lock(tree_->mutex);
  for (auto made = tree_->made.lower_bound(prefix_);
       made != tree_->made.end() && made->starts_with(prefix_); ++made) {
    const std::string_view name = NameBelow(*made, prefix_);
    if (!name.empty() && name.find('/') == std::string_view::npos) names.emplace(name);
  }
  return names;
}

Status ObjectDirectory::ForEachEntry(
    const std::function<bool(const EntryInfo& entry)>& visit) const {
  std::set<std::string, std::less<>> made = MadeNames();
  Continuation at(path_);
  do {
    SEALPOINT_ASSIGN_OR_RETURN(const ObjectPage page, store().List(prefix_, at.next()));
    SEALPOINT_RETURN_IF_ERROR(at.Advance(page.next));
    for (const StoredObject& info : page.objects) {
      const std::string_view name = NameBelow(info.key, prefix_);
      if (name.empty() || info.key.ends_with('/')) continue;
      if (!visit(FileEntry(name, info))) return {};
    }
    for (const std::string& prefix : page.prefixes) {
      const std::string_view name = NameBelow(prefix, prefix_);
      if (!name.empty() && !visit(DirectoryEntry(name))) return {};
      if (const auto also = made.find(name); also != made.end()) made.erase(also);
    }
  } while (!at.next().empty());
  for (const std::string& name : made) {
    if (!visit(DirectoryEntry(name))) return {};
  }
  return {};
}

Result<std::vector<EntryInfo>> ObjectDirectory::List() const {
  std::vector<EntryInfo> entries;
  SEALPOINT_RETURN_IF_ERROR(ForEachEntry([&](const EntryInfo& entry) {
    entries.push_back(entry);
    return true;
  }));
  std::sort(entries.begin(), entries.end(), [](const EntryInfo& a, const EntryInfo& b) {
    return std::tie(a.name, a.kind) < std::tie(b.name, b.kind);
  });
  return entries;
}

Result<Bytes> ObjectDirectory::ReadFileIn(std::string_view subdirectory, std::string_view name,
                                          std::size_t size_max) const {
  SEALPOINT_RETURN_IF_ERROR(CheckName(path_, subdirectory));
  SEALPOINT_RETURN_IF_ERROR(CheckName(path_, name));
  Bytes bytes;
  const auto got = store().GetFirst(prefix_ + JoinPath(subdirectory, name), size_max, bytes);
  if (got.ok()) return bytes;
  if (got.error().code() != Code::kNotFound) return got.error();
  return NothingThere(JoinPath(JoinPath(path_, subdirectory), name));
}

Result<std::unique_ptr<Directory>> ObjectDirectory::OpenSubdirectory(std::string_view name) const {
  SEALPOINT_ASSIGN_OR_RETURN(const std::string key, KeyOf(name));
  return Open(tree_, JoinPath(path_, name), key + "/");
}

Status ObjectDirectory::Remove(std::string_view name) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::string key, KeyOf(name));
  Forget(name);
  return store().Delete({&key, 1});
}

// A prefix goes with its last object: what is removed is only the memory of its making.
Status ObjectDirectory::RemoveSubdirectory(std::string_view name) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::string key, KeyOf(name));
  const std::string own = key + "/";
  SEALPOINT_ASSIGN_OR_RETURN(const bool has_objects, HasObjects(store(), own));
  const std::lock_guard lock(tree_->mutex);
  const auto first_inside = tree_->made.upper_bound(own);
  const bool has_made = first_inside != tree_->made.end() && first_inside->starts_with(own);
  if (has_objects || has_made) {
    return MakeError(Code::kIo, "the directory is not empty").AtPath(JoinPath(path_, name));
  }
  tree_->made.erase(own);
  return {};
}

Status ObjectDirectory::PublishExclusive(std::string_view from, std::string_view to,
                                         PublishMethod /*method*/) {
  SEALPOINT_RETURN_IF_ERROR(KeyOf(from).status());
  SEALPOINT_RETURN_IF_ERROR(KeyOf(to).status());
  return MakeError(Code::kUnsupported, "an object store has no links, expected PutIfAbsent")
      .AtPath(JoinPath(path_, to));
}

Status ObjectDirectory::PutIfAbsent(std::string_view name, ByteSpan content) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::string key, KeyOf(name));
  Forget(name);
  return store().PutIfAbsent(key, content);
}

Status ObjectDirectory::Replace(std::string_view name, ByteSpan content) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::string key, KeyOf(name));
  Forget(name);
  return store().Put(key, content);
}

// Some stores give a copy another etag though it has the same bytes (encrypted by keys of a
// service): such a copy is not trusted, and goes again.
Status ObjectDirectory::LinkFrom(std::string_view directory, std::string_view name,
                                 std::uint64_t name_count_max) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::string key, KeyOf(name));
  const auto refuse = [&](std::string_view why) {
    return MakeError(Code::kUnsupported, "cannot copy: ", why).AtPath(JoinPath(directory, name));
  };
  const auto prefix = PrefixBelow(store(), directory);
  if (!prefix.ok()) return refuse("another store");
  if (name_count_max <= 1) return refuse("no file may be shared");
  SEALPOINT_ASSIGN_OR_RETURN(StoredObject from, store().Head(*prefix + std::string(name)));
  from.key = *prefix + std::string(name);
  Forget(name);
  const auto copied = store().Copy(from, key);
  Status status = copied.status();
  if (copied.ok() && AreOfOthers(from.etag, *copied)) {
    status = MakeError(Code::kIo, "the copy has the etag ", *copied, ", expected ", from.etag)
                 .AtPath(JoinPath(path_, name));
  }
  const bool may_be_there = !status.ok() && status.code() != Code::kUnsupported;
  if (may_be_there) static_cast<void>(store().Delete({&key, 1}));
  return status;
}

Result<SpaceInfo> ObjectDirectory::FreeSpace() const {
  return SpaceInfo{.free_bytes = std::numeric_limits<std::uint64_t>::max(),
                   .free_inodes = std::numeric_limits<std::uint64_t>::max()};
}

// Some servers take the condition and ignore it: there, two savers that publish at once would both
// be told that they committed. So it is tried.
Result<Capabilities> ObjectDirectory::Probe(std::string_view probe_name) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::string key, KeyOf(probe_name));
  const auto refuse = [this](std::string_view found) {
    return RuleError(
               Code::kUnsupported, "R-CMT-04", store().uri(), ": the store ", found,
               ", expected it to refuse a put of an existing key (If-None-Match: *); otherwise two "
               "savers could both commit a checkpoint. Use a store or gateway that honours "
               "conditional puts, or save to a file system and copy")
        .AtPath(path_);
  };
  const Bytes first(1, std::byte{1});
  const Bytes second(1, std::byte{2});
  Status taken = store().PutIfAbsent(key, first);
  // A lost answer that was sent again says that the name is taken: so it is, by this probe.
  if (taken.ok() || taken.code() == Code::kAlreadyExists) taken = store().PutIfAbsent(key, second);
  Status removed = store().Delete({&key, 1});
  if (taken.ok()) return refuse("accepted a second put of the same key");
  if (taken.code() == Code::kUnsupported) {
    return refuse(StrCat("does not support this condition (", taken.message(), ")"));
  }
  if (taken.code() != Code::kAlreadyExists) {
    // Whether the probe is there is of no matter: the outcome of nothing is unknown.
    return MakeError(taken.code(), taken.message()).AtPath(JoinPath(path_, probe_name));
  }
  SEALPOINT_RETURN_IF_ERROR(std::move(removed));
  return Capabilities{.publish = PublishMethod::kPutIfAbsent,
                      .direct_io = false,
                      .preallocate = false,
                      .directory_sync = true};
}

}  // namespace sealpoint::internal::storage
