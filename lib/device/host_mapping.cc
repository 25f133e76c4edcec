// SPDX-License-Identifier: Apache-2.0
#include "lib/device/host_mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::device {
namespace {

constexpr std::uint64_t kHugePageBytes = 2 * kMiB;

Status NoMemory(std::uint64_t size_bytes, std::string_view call, int error_number) {
  return ErrnoError(StrCat("staging memory of ", size_bytes, " bytes, ", call), error_number);
}

void TouchPages(MutableByteSpan bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += kPageBytes) {
    *const_cast<volatile std::byte*>(bytes.data() + i) = std::byte{0};
  }
}

// A mapping that begins at a multiple of `alignment`: maps more and gives the ends back. The size
// is one of whole pages, or the end could not be given back.
Result<MutableByteSpan> MapAligned(std::uint64_t size_bytes, std::uint64_t alignment) {
  const std::size_t padded = size_bytes + (alignment - kPageBytes);
  void* const mapped =
      mmap(nullptr, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return NoMemory(size_bytes, "mmap", errno);
  auto* const base = static_cast<std::byte*>(mapped);
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  const std::size_t before = AlignUp(address, alignment) - address;
  const std::size_t after = padded - before - size_bytes;
  if (before != 0) munmap(base, before);
  if (after != 0) munmap(base + before + size_bytes, after);
  return MutableByteSpan{base + before, size_bytes};
}

// Makes every page present now: the first touch of a page costs more than the copy that follows.
Status Populate(MutableByteSpan bytes) {
#if defined(MADV_POPULATE_WRITE)
  if (madvise(bytes.data(), bytes.size(), MADV_POPULATE_WRITE) == 0) return {};
  if (errno == ENOMEM) return NoMemory(bytes.size(), "madvise(MADV_POPULATE_WRITE)", ENOMEM);
#endif
  TouchPages(bytes);  // kernels before 5.14
  return {};
}

}  // namespace

std::uint64_t SystemPageBytes() {
  static const auto size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

Result<MutableByteSpan> MapHostMemory(std::uint64_t size_bytes) {
  SEALPOINT_CHECK(size_bytes != 0 && size_bytes % kPageBytes == 0);
  SEALPOINT_CHECK(size_bytes <= std::uint64_t{1} << 63);
  const std::uint64_t page = SystemPageBytes();
  const std::uint64_t alignment = size_bytes >= kHugePageBytes ? kHugePageBytes : page;
  SEALPOINT_ASSIGN_OR_RETURN(const MutableByteSpan pages,
                             MapAligned(AlignUp(size_bytes, page), alignment));
  const MutableByteSpan bytes = pages.first(size_bytes);
  // Only a request: without huge pages all is the same, but slower.
  if (alignment == kHugePageBytes) madvise(bytes.data(), bytes.size(), MADV_HUGEPAGE);
  Status status;
  if (madvise(bytes.data(), bytes.size(), MADV_DONTFORK) != 0) {
    status = NoMemory(size_bytes, "madvise(MADV_DONTFORK)", errno);
  } else {
    status = Populate(bytes);
  }
  if (!status.ok()) {
    UnmapHostMemory(bytes);
    return status;
  }
  return bytes;
}

void UnmapHostMemory(MutableByteSpan bytes) { munmap(bytes.data(), bytes.size()); }

}  // namespace sealpoint::internal::device
