// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/path.h"
#include "lib/storage/posix_directory.h"

// What a file system documents and what a mount of it does may differ, so everything is tried with
// real files.

namespace sealpoint::internal::storage {
namespace {

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};

class Prober {
 public:
  Prober(PosixDirectory& directory, std::string_view probe_name)
      : directory_(directory), probe_name_(probe_name) {}
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;
  ~Prober() { (void)RemoveFiles(); }

  Result<Capabilities> Run() {
    Capabilities found;
    SEALPOINT_RETURN_IF_ERROR(ProbeFile(found));
    Status synced = directory_.Sync();
    found.directory_sync = synced.ok();
    if (!synced.ok() && synced.code() != Code::kUnsupported) return synced;
    SEALPOINT_RETURN_IF_ERROR(ProbePublish(found));
    SEALPOINT_RETURN_IF_ERROR(RemoveFiles());
    return found;
  }

 private:
  std::string Name(std::string_view suffix) const { return StrCat(probe_name_, ".", suffix); }

  Result<std::unique_ptr<PosixWritableFile>> Create(std::string_view suffix, IoMode mode) {
    auto file = directory_.CreatePosixFile(Name(suffix), mode);
    // Only files that were made here are removed: another rank may use the same probe name.
    if (file.ok()) made_.push_back(Name(suffix));
    return file;
  }

  // Direct writing, direct reading and preallocation of one block.
  Status ProbeFile(Capabilities& found) {
    constexpr std::size_t kBlock = kDirectIoAlignmentBytes;
    const std::unique_ptr<std::byte, FreeMemory> block(
        static_cast<std::byte*>(std::aligned_alloc(kBlock, kBlock)));
    if (!block) return MakeError(Code::kIo, "out of memory for a probe");
    const MutableByteSpan bytes(block.get(), kBlock);
    std::fill(bytes.begin(), bytes.end(), std::byte{0x5a});

    SEALPOINT_ASSIGN_OR_RETURN(const auto file, Create("file", IoMode::kDirect));
    SEALPOINT_RETURN_IF_ERROR(file->TryPreallocate(kBlock, &found.preallocate));
    SEALPOINT_RETURN_IF_ERROR(file->WriteAt(0, bytes));
    SEALPOINT_RETURN_IF_ERROR(file->Sync());
    const bool wrote_directly = file->is_direct();
    SEALPOINT_RETURN_IF_ERROR(file->Close());

    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    SEALPOINT_ASSIGN_OR_RETURN(const auto reader,
                               directory_.OpenForRead(Name("file"), IoMode::kDirect));
    SEALPOINT_RETURN_IF_ERROR(reader->ReadAt(0, bytes));
    if (bytes.front() != std::byte{0x5a} || bytes.back() != std::byte{0x5a}) {
      return MakeError(Code::kIo, "probe file does not read back what was written")
          .AtPath(JoinPath(directory_.path(), Name("file")));
    }
    found.direct_io = wrote_directly && reader->is_direct();
    return {};
  }

  Status ProbePublish(Capabilities& found) {
    for (const PublishMethod method : {PublishMethod::kLink, PublishMethod::kRenameNoReplace}) {
      SEALPOINT_ASSIGN_OR_RETURN(const bool works, Publishes(method));
      if (!works) continue;
      found.publish = method;
      return {};
    }
    return {};
  }

  // True if a name can be taken once and not twice. The second try is the one that matters: a file
  // system that ignores RENAME_NOREPLACE passes the first.
  Result<bool> Publishes(PublishMethod method) {
    const std::string_view kind = method == PublishMethod::kLink ? "link" : "rename";
    const std::string first = StrCat(kind, "-first");
    const std::string second = StrCat(kind, "-second");
    const std::string target = Name(StrCat(kind, "-target"));
    SEALPOINT_RETURN_IF_ERROR(Create(first, IoMode::kBuffered).status());
    SEALPOINT_RETURN_IF_ERROR(Create(second, IoMode::kBuffered).status());
    const Status published = directory_.PublishExclusive(Name(first), target, method);
    if (published.code() == Code::kAlreadyExists || published.code() == Code::kNoSpace) {
      return published;
    }
    if (!published.ok()) return false;
    made_.push_back(target);
    return directory_.PublishExclusive(Name(second), target, method).code() == Code::kAlreadyExists;
  }

  // Removes all files that were made here. Tries all of them and returns the first error.
  Status RemoveFiles() {
    Status result;
    for (const std::string& name : std::exchange(made_, {})) {
      Status removed = directory_.Remove(name);
      if (removed.code() == Code::kNotFound) continue;  // renamed
      if (result.ok()) result = std::move(removed);
    }
    return result;
  }

  PosixDirectory& directory_;
  const std::string probe_name_;
  std::vector<std::string> made_;
};

}  // namespace

Result<Capabilities> PosixDirectory::Probe(std::string_view probe_name) {
  SEALPOINT_RETURN_IF_ERROR(CheckName(path_, probe_name));
  return Prober(*this, probe_name).Run();
}

}  // namespace sealpoint::internal::storage
