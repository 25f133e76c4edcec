// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/host_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/storage/file_size_signal.h"
#include "lib/storage/posix_fd.h"
#include "sealpoint/id.h"

namespace sealpoint::internal::collective {
namespace {

// A part begins with the id by which other ranks know that they opened the right memory.
constexpr std::uint64_t kHeadBytes = 4096;
constexpr char kName[] = "sealpoint-messages";
constexpr char kLink[] = "/memfd:sealpoint-messages (deleted)";

// Where a rank's part is. The other ranks open it as a file of the process.
struct Description {
  std::uint64_t process = 0;
  std::uint64_t descriptor = 0;
  std::uint64_t size_bytes = 0;  // 0: it has none
  Id128 id{};
};

Bytes Encode(const Description& part) {
  Bytes bytes;
  WireWriter out(bytes);
  out.PutAll(std::vector{part.process, part.descriptor, part.size_bytes});
  out.Put(part.id);
  return bytes;
}

Result<Description> Decode(ByteSpan bytes) {
  WireReader in(bytes);
  Description part;
  SEALPOINT_ASSIGN_OR_RETURN(part.process, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(part.descriptor, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(part.size_bytes, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(part.id, in.Id<Id128>());
  return part;
}

MutableByteSpan Map(int descriptor, std::uint64_t size_bytes, int protection, int flags) {
  void* const at = mmap(nullptr, size_bytes, protection, MAP_SHARED | flags, descriptor, 0);
  if (at == MAP_FAILED) return {};
  madvise(at, size_bytes, MADV_DONTFORK);  // children would keep the memory
  return {static_cast<std::byte*>(at), static_cast<std::size_t>(size_bytes)};
}

void Unmap(ByteSpan memory) {
  if (!memory.empty()) munmap(const_cast<std::byte*>(memory.data()), memory.size());
}

// Takes the memory now, so that no later access can fail. Other processes cannot change the size.
bool Allocate(int file, std::uint64_t size_bytes) {
  storage::WithoutFileSizeSignal no_signal;
  int result = -1;
  do {
    result = fallocate(file, 0, 0, static_cast<off_t>(size_bytes));
  } while (result != 0 && errno == EINTR);
  if (result != 0) no_signal.NoteFailure();
  return result == 0 && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

// This rank's part with its head.
struct OwnPart {
  storage::UniqueFd file{};
  MutableByteSpan memory{};
  Id128 id{};
};
OwnPart MakeOwnPart(std::uint64_t size_bytes) {
  OwnPart part;
  const Result<Id128> id = Id128::Random();
  part.file = storage::UniqueFd(memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!id || !part.file.is_open() || !Allocate(part.file.get(), size_bytes)) return part;
  part.id = *id;
  part.memory = Map(part.file.get(), size_bytes, PROT_READ | PROT_WRITE, MAP_POPULATE);
  if (!part.memory.empty()) std::memcpy(part.memory.data(), &part.id, sizeof(part.id));
  return part;
}

// Empty if it cannot be mapped, or is another one: processes of another container have the same
// numbers. Only such memory is opened; a pipe, for example, would wait for its writer.
ByteSpan MapPart(const Description& part) {
  const std::string path = StrCat("/proc/", part.process, "/fd/", part.descriptor);
  std::array<char, sizeof(kLink)> link{};
  const ssize_t length = readlink(path.c_str(), link.data(), link.size());
  if (length < 0 || std::string_view(link.data(), static_cast<std::size_t>(length)) != kLink) {
    return {};
  }
  const auto file = storage::OpenAt(AT_FDCWD, path, O_RDONLY, 0, path);
  if (!file || lseek(file->get(), 0, SEEK_END) != static_cast<off_t>(part.size_bytes)) return {};
  const ByteSpan memory = Map(file->get(), part.size_bytes, PROT_READ, MAP_POPULATE);
  if (memory.empty() || std::memcmp(memory.data(), &part.id, sizeof(part.id)) == 0) return memory;
  Unmap(memory);
  return {};
}

}  // namespace

Result<std::unique_ptr<HostMemory>> HostMemory::Create(Communicator& comm, const SizeOf& size_of) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> hosts, comm.AllGather(AsBytes(comm.host())));
  const auto own_rank = static_cast<std::size_t>(comm.rank());
  const auto host_ranks = std::ranges::count(hosts, hosts[own_rank]);
  OwnPart own = MakeOwnPart(kHeadBytes + size_of(static_cast<std::size_t>(host_ranks)));
  std::unique_ptr<HostMemory> memory(new HostMemory(static_cast<std::size_t>(comm.size())));
  if (!own.memory.empty()) memory->own_ = own.memory.subspan(kHeadBytes);
  const Description described{.process = static_cast<std::uint64_t>(getpid()),
                              .descriptor = static_cast<std::uint64_t>(own.file.get()),
                              .size_bytes = own.memory.size(),
                              .id = own.id};
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.AllGather(Encode(described)));
  std::uint64_t has_failed = own.memory.empty() ? 1 : 0;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (rank == own_rank || hosts[rank] != hosts[own_rank]) continue;
    const Result<Description> part = Decode(all[rank]);
    const bool has_part = part.ok() && part->size_bytes >= kHeadBytes;
    const ByteSpan mapped = has_part ? MapPart(*part) : ByteSpan();
    if (mapped.empty()) has_failed = 1;
    if (!mapped.empty()) memory->of_ranks_[rank] = mapped.subspan(kHeadBytes);
  }
  // Until all have opened it, the file stays open.
  const std::uint64_t has_others = host_ranks > 1 ? 1 : 0;
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> agreed,
                             comm.AllReduceMax({has_failed, has_others}));
  if (agreed[0] != 0 || agreed[1] == 0) memory.reset();
  return memory;
}

HostMemory::~HostMemory() {
  const auto unmap = [](ByteSpan part) {
    if (part.data() != nullptr) Unmap({part.data() - kHeadBytes, part.size() + kHeadBytes});
  };
  unmap(own_);
  for (const ByteSpan part : of_ranks_) unmap(part);
}

namespace {

// The first byte of a message to a rank of this host: its place follows, or its content.
constexpr std::byte kPlace{0};
constexpr std::byte kInline{1};

// Memory is used again, and may have had another size. It is replaced, not grown, where it is too
// small, since growing copies what is not needed, and it is not kept where it is much too large.
void SetSize(Bytes& message, std::uint64_t size) {
  if (message.capacity() < size || message.capacity() / 2 > size) message = Bytes();
  message.resize(size);
}

}  // namespace

std::vector<MutableByteSpan> Outbox::Allot(const std::vector<std::uint64_t>& sizes) {
  messages_.resize(sizes.size());
  std::vector<MutableByteSpan> spans(sizes.size());
  std::uint64_t used = 0;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    if (memory_ == nullptr || !memory_->Reaches(rank)) {
      SetSize(messages_[rank], sizes[rank]);
      spans[rank] = messages_[rank];
      continue;
    }
    if (sizes[rank] > size_ - used) {
      SetSize(messages_[rank], 1 + sizes[rank]);
      messages_[rank].front() = kInline;
      spans[rank] = MutableByteSpan(messages_[rank]).subspan(1);
      continue;
    }
    spans[rank] = memory_->own().subspan(begin_ + used, sizes[rank]);
    messages_[rank].assign(1, kPlace);
    WireWriter(messages_[rank]).PutAll(std::vector{begin_ + used, sizes[rank]});
    used += sizes[rank];
  }
  return spans;
}

Result<std::vector<ByteSpan>> Outbox::Exchange(Communicator& comm) {
  std::atomic_thread_fence(std::memory_order_release);
  SEALPOINT_ASSIGN_OR_RETURN(messages_, comm.AllToAll(std::move(messages_)));
  std::atomic_thread_fence(std::memory_order_acquire);
  std::vector<ByteSpan> arrived(messages_.begin(), messages_.end());
  for (std::size_t rank = 0; rank < arrived.size(); ++rank) {
    if (memory_ == nullptr || !memory_->Reaches(rank)) continue;
    if (arrived[rank].empty()) return MalformedMessage();
    const std::byte kind = arrived[rank].front();
    arrived[rank] = arrived[rank].subspan(1);
    if (kind == kInline) continue;
    WireReader place(arrived[rank]);
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t begin, place.Number());
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t size, place.Number());
    if (!RangeFits(begin, size, memory_->Of(rank).size())) return MalformedMessage();
    arrived[rank] = memory_->Of(rank).subspan(begin, size);
  }
  return arrived;
}

}  // namespace sealpoint::internal::collective
