// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_HOST_INTAKE_H_
#define SEALPOINT_LIB_TRANSFER_HOST_INTAKE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "lib/digest/hasher.h"
#include "lib/transfer/intake.h"
#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"
#include "sealpoint/fingerprint.h"

namespace sealpoint::internal::transfer {

// Copies host memory into the stream and hashes it in the same pass, strided memory gathered first.
class CopyIntake final : public Intake {
 public:
  explicit CopyIntake(const IntakeContext& context) : context_(context) {}
  Status Begin(SourceReader& source, const ShardEncoding& encoding) override;

 private:
  const IntakeContext context_;
  digest::Hasher hasher_;
};

// Writes dense host memory block by block without a staging buffer, which would add a second,
// uncached copy. Precondition: the stream has a file that is not direct.
class BorrowIntake final : public Intake {
 public:
  explicit BorrowIntake(const IntakeContext& context) : context_(context) {}
  ~BorrowIntake() override;  // Waits: the digests are being filled in.
  BorrowIntake(const BorrowIntake&) = delete;
  BorrowIntake& operator=(const BorrowIntake&) = delete;

  Status Begin(SourceReader& source, const ShardEncoding& encoding) override;
  Status Release() override;

 private:
  struct Part {
    std::size_t first_record = 0;
    // Filled in by jobs of the stream until WaitForBorrowed.
    std::vector<Digest> digests{};
    std::mutex mutex{};
    Fingerprint fingerprint{};  // of all chunks of the part
    std::uint32_t tensor = 0;
  };

  const IntakeContext context_;
  std::deque<Part> parts_;
};

// Copies dense host memory into buffers kept by a stream that has no file yet. Begin only records
// the copy; Release makes all copies together on several threads. The digests are computed before
// the writes begin, so that waiting for the copies does not include the digests.
class SnapshotIntake final : public Intake {
 public:
  explicit SnapshotIntake(const IntakeContext& context) : context_(context) {}
  Status Begin(SourceReader& source, const ShardEncoding& encoding) override;
  Status Release() override;
  void BeforeWrites() override;

 private:
  struct Copy {
    ByteSpan from{};  // empty once it is made
    std::vector<MutableByteSpan> to{};
    std::size_t record = 0;
    ShardEncoding encoding{};
    std::uint64_t begin = 0;  // in the shard
  };
  static void Run(Copy& copy);

  const IntakeContext context_;
  std::vector<Copy> copies_;
  std::size_t made_count_ = 0;
};

// Copies without using the caches, if the processor can: for memory that will not be accessed soon.
// Twice as fast as memcpy for a few MiB, and the content of the caches is kept. Precondition: equal
// sizes, no overlap.
void CopyPastCaches(ByteSpan from, MutableByteSpan to);

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_HOST_INTAKE_H_
