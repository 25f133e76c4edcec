// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/mapped_tensor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/blob_files.h"
#include "lib/container/blob_tables.h"
#include "lib/device/host_mapping.h"
#include "lib/digest/hasher.h"
#include "lib/pipeline/load_threads.h"
#include "lib/pipeline/thread_pool.h"
#include "lib/storage/posix_fd.h"
#include "readers/load/checkpoint_impl.h"
#include "sealpoint/digest.h"

namespace sealpoint {

std::optional<ByteSpan> MappedTensor::whole() const {
  if (shards().empty())
    return info().raw_bytes == 0 ? std::optional<ByteSpan>(ByteSpan()) : std::nullopt;
  if (shards().size() != 1) return std::nullopt;
  return shards().front().bytes;
}

namespace internal::load {
namespace {

constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, which older headers of libc lack
constexpr int kSeals = F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
// Populated and hashed at a time by one thread: some chunks of the default size.
constexpr std::uint64_t kStretchBytes = 16 * kMiB;

// Pages of a file, or anonymous ones; unmapped at the end.
class Pages {
 public:
  Pages() = default;
  ~Pages() {
    if (data_ != nullptr) munmap(data_, size_);
  }
  Pages(Pages&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Pages& operator=(Pages&&) = delete;

  // [offset, offset + size) of the file. `offset` is a multiple of the page size.
  static Result<Pages> Map(int fd, std::uint64_t offset, std::uint64_t size, int protection) {
    void* const data = mmap(nullptr, size, protection, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (data == MAP_FAILED) return ErrnoError("mmap", errno);
    Pages pages;
    pages.data_ = static_cast<std::byte*>(data);
    pages.size_ = size;
    return pages;
  }
  MutableByteSpan bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
};

// Reads the pages in, so that one that the file no longer has is an error here and no signal when
// it is touched. Does nothing where the kernel cannot (before Linux 5.14).
Status Populate(ByteSpan bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()) / device::SystemPageBytes() *
                     device::SystemPageBytes();
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size();
  void* const from = reinterpret_cast<void*>(begin);  // NOLINT(performance-no-int-to-ptr)
  while (madvise(from, end - begin, kPopulateRead) != 0) {
    if (errno == EINVAL) return {};
    if (errno == EFAULT) {
      return Status(Code::kIncomplete, "file became shorter while it was mapped")
          .AtRule("R-BLB-01");
    }
    if (errno != EINTR && errno != EAGAIN) return ErrnoError("madvise", errno);
  }
  return {};
}

// A shard as it is stored: without a codec its bytes are back to back in one blob.
struct StoredShard {
  Region region;
  std::uint32_t blob = 0;
  std::uint64_t size = 0;  // of its elements
  std::vector<format::ChunkRecord> chunks;
  std::uint64_t begin() const { return chunks.front().offset; }
};

class MappedTensorImpl final : public MappedTensor {
 public:
  MappedTensorImpl(TensorInfo info, std::vector<Pages> pages, std::vector<MappedShard> shards,
                   storage::UniqueFd fd)
      : info_(std::move(info)),
        pages_(std::move(pages)),
        shards_(std::move(shards)),
        fd_(std::move(fd)) {}
  const TensorInfo& info() const override { return info_; }
  std::span<const MappedShard> shards() const override { return shards_; }
  std::optional<int> descriptor() const override {
    return fd_.is_open() ? std::optional<int>(fd_.get()) : std::nullopt;
  }

 private:
  const TensorInfo info_;
  const std::vector<Pages> pages_;
  const std::vector<MappedShard> shards_;
  const storage::UniqueFd fd_;  // of a host copy
};

std::shared_ptr<const MappedTensor> MakeMapped(TensorInfo info, std::vector<Pages> pages,
                                               std::vector<MappedShard> shards,
                                               storage::UniqueFd fd) {
  return std::make_shared<const MappedTensorImpl>(std::move(info), std::move(pages),
                                                  std::move(shards), std::move(fd));
}

class Mapper {
 public:
  Mapper(const CheckpointImpl& checkpoint, TensorInfo info)
      : checkpoint_(checkpoint), info_(std::move(info)) {}

  std::uint64_t size_bytes() const { return info_.raw_bytes; }

  // Errors: those of the tables.
  Status FindShards() {
    const auto number = checkpoint_.index().FindTensor(info_.name);
    const metadata::TensorView tensor = checkpoint_.index().tensor(*number);
    Status status;
    std::uint64_t table_bytes = 0;
    tensor.ForEachShard([&](std::size_t shard, Region region) {
      if (!status.ok()) return;
      const std::uint64_t size = region.element_count() * info_.element_size;
      const container::ShardChunks chunks{
          .shard = tensor.shard_ref(shard),
          .shape = {.raw_size = size, .chunk_size = info_.chunk_size_bytes},
          .count = static_cast<std::uint32_t>(metadata::ChunkCount(size, info_.chunk_size_bytes))};
      auto records = checkpoint_.ChunkRecords(chunks, table_bytes);
      if (!records) {
        status = records.error();
        return;
      }
      shards_.push_back({std::move(region), chunks.shard.blob, size, *std::move(records)});
    });
    return status;
  }

  Result<std::shared_ptr<const MappedTensor>> MapFiles(int threads) {
    std::vector<Pages> pages;
    std::vector<MappedShard> mapped;
    container::BlobFiles files = checkpoint_.BufferedBlobs();
    for (const StoredShard& shard : shards_) {
      SEALPOINT_RETURN_IF_ERROR(CheckPlain(shard));
      auto shard_pages = MapFile(files, shard);
      if (!shard_pages) return At(shard, shard.begin(), shard_pages.error());
      const std::uint64_t before = shard.begin() % device::SystemPageBytes();
      mapped.push_back({shard.region, shard_pages->bytes().subspan(before, shard.size)});
      pages.push_back(*std::move(shard_pages));
    }
    SEALPOINT_RETURN_IF_ERROR(Verify(mapped, threads));
    return MakeMapped(std::move(info_), std::move(pages), std::move(mapped), storage::UniqueFd());
  }

  Result<std::shared_ptr<const MappedTensor>> CopyToHost(int threads) {
    storage::UniqueFd fd(memfd_create("sealpoint", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd.is_open()) return ErrnoError("memfd_create", errno);
    SEALPOINT_RETURN_IF_ERROR(Fill(fd.get(), threads));
    return Adopt(std::move(fd));
  }

  Result<std::shared_ptr<const MappedTensor>> MapCopy(int fd) {
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & kSeals) != kSeals) {
      return InvalidArgument(
          "memory is not sealed against changes, expected memory from MapTensor");
    }
    struct stat status{};
    if (fstat(fd, &status) != 0) return ErrnoError("fstat", errno);
    if (static_cast<std::uint64_t>(status.st_size) != CopySize()) {
      return InvalidArgument(StrCat("memory has ", status.st_size, " bytes, expected ", CopySize(),
                                    " for this tensor"));
    }
    storage::UniqueFd own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!own.is_open()) return ErrnoError("fcntl", errno);
    return Adopt(std::move(own));
  }

 private:
  Status CheckPlain(const StoredShard& shard) const {
    for (const format::ChunkRecord& chunk : shard.chunks) {
      if (chunk.codec != Codec::kNone) {
        return Status(Code::kUnsupported,
                      "a chunk is stored with a codec, expected none: read the tensor instead");
      }
    }
    return {};
  }

  // Shards begin at pages there. The end is not rounded up, so that tensors of different sizes have
  // copies of different sizes; never 0, since nothing of that size can be mapped.
  std::uint64_t CopySize() const {
    std::uint64_t size = 0;
    for (const StoredShard& shard : shards_) {
      size = AlignUp(size, device::SystemPageBytes()) + shard.size;
    }
    return std::max<std::uint64_t>(size, 1);
  }

  Result<Pages> MapFile(container::BlobFiles& files, const StoredShard& shard) const {
    SEALPOINT_ASSIGN_OR_RETURN(const auto file, files.Open(shard.blob));
    const std::optional<int> fd = file->descriptor();
    if (!fd) {
      return Status(Code::kUnsupported,
                    "the storage has no files that can be mapped: read the tensor instead");
    }
    const std::uint64_t before = shard.begin() % device::SystemPageBytes();
    return Pages::Map(*fd, shard.begin() - before, before + shard.size, PROT_READ);
  }

  // Copies the shards into memory that nobody can change any more.
  Status Fill(int fd, int threads) {
    if (ftruncate(fd, static_cast<off_t>(CopySize())) != 0) return ErrnoError("ftruncate", errno);
    {
      SEALPOINT_ASSIGN_OR_RETURN(const Pages pages,
                                 Pages::Map(fd, 0, CopySize(), PROT_READ | PROT_WRITE));
      ReadRequest request;
      std::uint64_t at = 0;
      for (const StoredShard& shard : shards_) {
        at = AlignUp(at, device::SystemPageBytes());
        request.Add(info_.name, shard.region,
                    MutableMemoryView::Host(pages.bytes().subspan(at, shard.size)));
        at += shard.size;
      }
      SEALPOINT_RETURN_IF_ERROR(
          checkpoint_.Load(request, LoadContract::Partial(), {.threads = threads}).status());
    }
    if (fcntl(fd, F_ADD_SEALS, kSeals) != 0) return ErrnoError("fcntl(F_ADD_SEALS)", errno);
    return {};
  }

  // Maps sealed memory.
  Result<std::shared_ptr<const MappedTensor>> Adopt(storage::UniqueFd fd) {
    std::vector<Pages> pages;
    SEALPOINT_ASSIGN_OR_RETURN(Pages all, Pages::Map(fd.get(), 0, CopySize(), PROT_READ));
    std::vector<MappedShard> mapped;
    std::uint64_t at = 0;
    for (const StoredShard& shard : shards_) {
      at = AlignUp(at, device::SystemPageBytes());
      mapped.push_back({shard.region, all.bytes().subspan(at, shard.size)});
      at += shard.size;
    }
    pages.push_back(std::move(all));
    return MakeMapped(std::move(info_), std::move(pages), std::move(mapped), std::move(fd));
  }

  // Some chunks of one shard, which one thread verifies.
  struct Stretch {
    std::size_t shard = 0;
    std::size_t first = 0;
    std::size_t end = 0;
  };
  std::vector<Stretch> Stretches() const {
    std::vector<Stretch> found;
    for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
      const auto& chunks = shards_[shard].chunks;
      for (std::size_t i = 0; i < chunks.size(); ++i) {
        const bool fits =
            !found.empty() && found.back().shard == shard &&
            chunks[i].offset + chunks[i].raw_size - chunks[found.back().first].offset <=
                kStretchBytes;
        if (!fits) found.push_back({shard, i, i});
        found.back().end = i + 1;
      }
    }
    return found;
  }

  Status Verify(const std::vector<MappedShard>& mapped, int threads) const {
    const std::vector<Stretch> stretches = Stretches();
    return pipeline::ParallelFor(threads, stretches.size(), [&](int, std::size_t i) -> Status {
      const StoredShard& shard = shards_[stretches[i].shard];
      const ByteSpan bytes = mapped[stretches[i].shard].bytes;
      const auto chunks = std::span(shard.chunks)
                              .subspan(stretches[i].first, stretches[i].end - stretches[i].first);
      const std::uint64_t size = chunks.back().offset + chunks.back().raw_size - chunks[0].offset;
      Status populated = Populate(bytes.subspan(chunks[0].offset - shard.begin(), size));
      if (!populated.ok()) return At(shard, chunks[0].offset, std::move(populated));
      for (const format::ChunkRecord& chunk : chunks) {
        const Digest found =
            ComputeDigest(bytes.subspan(chunk.offset - shard.begin(), chunk.raw_size));
        if (found == chunk.raw_digest) continue;
        return At(shard, chunk.offset, DigestError("R-CHK-02", "chunk", found, chunk.raw_digest));
      }
      return {};
    });
  }

  Status At(const StoredShard& shard, std::uint64_t offset, Status error) const {
    return std::move(error).AtPath(checkpoint_.BlobPath(shard.blob)).AtOffset(offset);
  }

  const CheckpointImpl& checkpoint_;
  TensorInfo info_;
  std::vector<StoredShard> shards_;
};

Result<Mapper> MapperFor(const Checkpoint& checkpoint, std::string_view name) {
  const auto* const own = dynamic_cast<const CheckpointImpl*>(&checkpoint);
  if (own == nullptr) {
    return InvalidArgument("unsupported class of Checkpoint, expected that of Checkpoint::Open");
  }
  auto info = checkpoint.FindTensor(name);
  if (!info) {
    return Status(Code::kNotFound, "tensor is not in the checkpoint").AtTensor(name);
  }
  Mapper mapper(*own, *std::move(info));
  Status found = mapper.FindShards();
  if (!found.ok()) return std::move(found).AtTensor(name);
  return mapper;
}

Result<std::shared_ptr<const MappedTensor>> Named(Result<std::shared_ptr<const MappedTensor>> made,
                                                  std::string_view name) {
  if (made) return made;
  return std::move(made).error().AtTensor(name);
}

}  // namespace
}  // namespace internal::load

Result<std::shared_ptr<const MappedTensor>> MapTensor(const Checkpoint& checkpoint,
                                                      std::string_view name,
                                                      const MapOptions& options) {
  SEALPOINT_ASSIGN_OR_RETURN(internal::load::Mapper mapper,
                             internal::load::MapperFor(checkpoint, name));
  SEALPOINT_ASSIGN_OR_RETURN(
      const int threads, internal::pipeline::LoadThreads(
                             "threads", options.threads,
                             internal::pipeline::ProcessesByEnvironment(), mapper.size_bytes()));
  return internal::load::Named(
      options.host_copy ? mapper.CopyToHost(threads) : mapper.MapFiles(threads), name);
}

Result<std::shared_ptr<const MappedTensor>> MapSealed(const Checkpoint& checkpoint,
                                                      std::string_view name, int descriptor) {
  SEALPOINT_ASSIGN_OR_RETURN(internal::load::Mapper mapper,
                             internal::load::MapperFor(checkpoint, name));
  return internal::load::Named(mapper.MapCopy(descriptor), name);
}

}  // namespace sealpoint
