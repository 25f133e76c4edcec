// SPDX-License-Identifier: Apache-2.0
#include "lib/comm/agree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string>
#include <vector>

#include "lib/comm/status_codec.h"

namespace sealpoint::internal::comm {
namespace {

// A faulty communicator, which gives answers that it must not give.
class LyingCommunicator final : public Communicator {
 public:
  explicit LyingCommunicator(std::vector<std::uint64_t> maxima) : maxima_(std::move(maxima)) {}

  int rank() const override { return 1; }
  int size() const override { return 2; }
  const std::string& host() const override { return host_; }
  void set_deadline(std::chrono::milliseconds) override {}
  Status Barrier() override { return {}; }
  Status Broadcast(Bytes& bytes, int) override {
    bytes.clear();
    return {};
  }
  Result<std::vector<Bytes>> Gather(ByteSpan, int) override { return std::vector<Bytes>(); }
  Result<std::vector<Bytes>> AllGather(ByteSpan) override { return std::vector<Bytes>(); }
  Result<std::vector<Bytes>> AllToAll(std::vector<Bytes>) override { return std::vector<Bytes>(); }
  Result<std::vector<std::uint64_t>> AllReduceMax(const std::vector<std::uint64_t>&) override {
    return maxima_;
  }

 private:
  const std::string host_ = "host";
  const std::vector<std::uint64_t> maxima_;
};

TEST(AgreeOnStatus, RefusesAReductionToSomethingElse) {
  const std::vector<std::vector<std::uint64_t>> answers = {{}, {0, 0}, {3}};
  for (const std::vector<std::uint64_t>& answer : answers) {
    LyingCommunicator comm(answer);
    const Status status = AgreeOnStatus(comm, Status());
    EXPECT_EQ(status.code(), Code::kComm);
    EXPECT_THAT(status.message(), ::testing::StartsWith("all-reduce of one number gave"));
  }
}

TEST(BroadcastResult, RefusesAnEmptyMessage) {
  LyingCommunicator comm({0});
  EXPECT_EQ(BroadcastResult(comm, 0, Bytes()).error().code(), Code::kComm);
}

// The bytes end where the memory does.
TEST(StatusCodec, LooksAtNothingBehindItsBytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const mapped =
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const end = static_cast<std::byte*>(mapped) + page;
  ASSERT_EQ(mprotect(end, page, PROT_NONE), 0);
  const Bytes encoded = EncodeStatus(Status(Code::kIo, std::string(300, 'x')));
  for (std::size_t length = 0; length < encoded.size(); ++length) {
    std::byte* const begin = end - length;
    std::copy_n(encoded.begin(), length, begin);
    EXPECT_FALSE(DecodeStatus(ByteSpan(begin, length)).has_value()) << length;
  }
  munmap(mapped, 2 * page);
}

TEST(StatusCodec, KeepsTheGreatestRank) {
  const Status status = Status(Status(Code::kIo, "m").AtRank(INT_MAX, "h"));
  EXPECT_EQ(DecodeStatus(EncodeStatus(status)), status);
}

}  // namespace
}  // namespace sealpoint::internal::comm
