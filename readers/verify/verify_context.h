// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_VERIFY_CONTEXT_H_
#define SEALPOINT_READERS_VERIFY_VERIFY_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/macros.h"
#include "lib/codec/chunk_codec.h"
#include "lib/device/staging_pool.h"
#include "lib/pipeline/range_reader.h"
#include "readers/load/checkpoint_impl.h"
#include "readers/verify/findings.h"
#include "readers/verify/rate_limit.h"
#include "readers/verify/verified_chunks.h"
#include "sealpoint/bytes.h"
#include "sealpoint/storage.h"
#include "sealpoint/verify.h"

namespace sealpoint::internal::verify {

// Counts checked bytes and reports them to the caller's function, which may throw to cancel the
// verification. Thread safety: all functions.
class Meter {
 public:
  explicit Meter(PhaseCallback on_progress) : on_progress_(std::move(on_progress)) {}

  void set_total(std::uint64_t bytes);
  void Add(std::uint64_t bytes);
  // These bytes are not checked, since they are known to be good, or are of no part to be checked.
  void PassOver(std::uint64_t bytes, bool is_known);
  std::uint64_t bytes_done() const;
  std::uint64_t bytes_known() const;
  // Cancelled, once the caller's function has thrown; it is called no more then.
  Status failure() const;

 private:
  const PhaseCallback on_progress_;
  mutable std::mutex mutex_;
  PhaseEvent progress_{.phase = Phase::kVerify, .kind = PhaseEvent::Kind::kProgress};
  std::uint64_t bytes_known_ = 0;
  Status failure_;
};

// Size of one read of payload; the knee of the rate of direct reads.
inline constexpr std::uint64_t kReadSizeBytes = 4 * kMiB;

// Resources of one thread. Its pool is large enough for everything held simultaneously: a read, the
// stored bytes of a chunk and its raw bytes; memory is mapped on first use.
struct Worker {
  std::unique_ptr<device::StagingPool> pool;
  codec::ChunkCodec codec;
  load::ChunkDecoder base_decoder{};  // of a delta's base
  // `read_size_bytes`: of one read of payload.
  static Result<Worker> Create(std::uint64_t read_size_bytes);
};

// The directory under verification and where findings go. Borrowed by all parts of one check.
struct VerifyContext {
  const Directory& directory;
  const VerifyOptions& options;
  Findings& findings;
  Meter& meter;
  RateLimit& limit;
  VerifiedChunksImpl* verified = nullptr;      // may be null
  const load::CheckpointImpl* base = nullptr;  // of a delta; null if it cannot be read

  IoMode io_mode() const {
    const bool direct = options.level == VerifyLevel::kFull && options.direct_io;
    return direct ? IoMode::kDirect : IoMode::kBuffered;
  }
  // Every read of it waits for the limit.
  Result<std::unique_ptr<ReadableFile>> Open(std::string_view name) const {
    SEALPOINT_ASSIGN_OR_RETURN(auto file, directory.OpenForRead(name, io_mode()));
    return Limited(std::move(file), limit);
  }
  std::string PathOf(std::string_view name) const { return JoinPath(directory.path(), name); }
};

// Reads all of [offset, offset + size) in parts, into new memory. Errors: those of ReadRange, Io
// (out of memory).
Result<Bytes> ReadBytes(const ReadableFile& file, device::StagingPool& pool, std::uint64_t offset,
                        std::uint64_t size);

}  // namespace sealpoint::internal::verify

#endif  // SEALPOINT_READERS_VERIFY_VERIFY_CONTEXT_H_
