// SPDX-License-Identifier: Apache-2.0
//
// Chunks that cross the parts in which a blob is read, from memory and from a file system.
#include <array>
#include <string>
#include <vector>

#include "tests/support/process/temp_dir.h"
#include "tests/unit/verify/verify_fixture.h"

namespace sealpoint::testing {
namespace {

using internal::format::ChunkRecord;

// Half of the bytes are noise, so that a coded chunk keeps more than a part of 4 MiB.
Bytes HalfNoise(std::uint64_t size) {
  Bytes bytes = NoiseBytes(5, size);
  for (std::size_t i = 0; i < size; i += 2) bytes[i] = std::byte{7};
  return bytes;
}

MiniTensor Whole(const std::string& name, DType dtype, const Bytes& bytes,
                 std::uint64_t chunk_size) {
  const Shape shape = {bytes.size() / DTypeSizeBytes(dtype)};
  MiniTensor tensor{.name = name, .dtype = dtype, .shape = shape, .chunk_size = chunk_size};
  tensor.shards.push_back({.region = Region::Whole(shape), .bytes = bytes, .blob = 0});
  return tensor;
}

// 4 MiB chunks off the parts' borders, chunks of 16 MiB plain and coded, many small ones.
MiniSpec LargeSpec() {
  MiniSpec spec;
  spec.tensors.push_back(Whole("a", DType::kUInt8, NoiseBytes(1, 9 * kMiB + 123), 4 * kMiB));
  spec.tensors.push_back(Whole("b", DType::kF32, NoiseBytes(2, 20 * kMiB), 16 * kMiB));
  spec.tensors.push_back(Whole("c", DType::kBf16, HalfNoise(20 * kMiB), 16 * kMiB));
  spec.tensors.back().codec = Codec::kByteSplitZstd;
  spec.tensors.push_back(Whole("d", DType::kF64, NoiseBytes(4, 2 * kMiB + 8), 4096));
  return spec;
}

#ifdef SEALPOINT_TEST_SANITIZED
constexpr std::array kDamagedRecords = {5u, 300u};
#else
constexpr std::array kDamagedRecords = {0u, 3u, 5u, 300u};
#endif

class LargeBlob : public VerifyFixture, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    static const MiniContainer large = BuildMini(LargeSpec());
    container_ = large;
    StoreAgain();
    for (const ChunkRecord& record : container_.blobs.at(0).records) {
      coded_parts_ += record.codec != Codec::kNone && record.stored_size > 4 * kMiB ? 1 : 0;
    }
  }
  // Everything is good; then the first and the last byte of each of some chunks is not.
  void ExpectDamageIsFound(const std::function<VerifyReport()>& check,
                           const std::function<void()>& store) {
    const VerifyReport good = check();
    ASSERT_EQ(good.verdict, Verdict::kCommitted) << good.violations.front().ToString();
    const std::vector<ChunkRecord>& records = container_.blobs.at(0).records;
    for (const std::size_t i : kDamagedRecords) {
      const ChunkRecord& record = records.at(i);
      for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{record.stored_size} - 1}) {
        container_.blob(0)[record.offset + at] ^= std::byte{4};
        store();
        const VerifyReport report = check();
        container_.blob(0)[record.offset + at] ^= std::byte{4};
        ASSERT_EQ(report.violations.size(), 1u) << i << " " << at;
        const std::string rule = record.codec == Codec::kNone ? "R-CHK-02" : "R-CHK-01";
        EXPECT_THAT(report.violations[0],
                    Violates(Code::kCorrupt, rule, report.path + "/" + container_.blobs.at(0).name,
                             record.offset));
      }
    }
  }
  int coded_parts_ = 0;
};

TEST_P(LargeBlob, InMemory) {
  EXPECT_GT(coded_parts_, 0);
  ExpectDamageIsFound([this] { return Check(VerifyLevel::kFull, GetParam()); },
                      [this] { StoreAgain(); });
}

TEST_P(LargeBlob, InAFileSystemPastThePageCache) {
  const TempDir temp;
  const std::string path = temp.path() + "/ckpt";
  const auto storage = PosixStorage();
  StoreFiles(*storage, path, container_.files);
  ExpectDamageIsFound(
      [&] { return Verify(path, {.threads = GetParam(), .storage = storage}).value(); },
      [&] { ReplaceFile(*storage, path, container_.blobs.at(0).name, &container_.blob(0)); });
}

TEST_P(LargeBlob, EveryByteIsCounted) {
  std::uint64_t total = 0;
  for (const auto& [name, bytes] : container_.files) total += bytes.size();
  EXPECT_EQ(Check(VerifyLevel::kFull, GetParam()).bytes_checked, total);
}

INSTANTIATE_TEST_SUITE_P(Threads, LargeBlob, ::testing::Values(1, 3));

}  // namespace
}  // namespace sealpoint::testing
