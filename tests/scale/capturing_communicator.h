// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SCALE_CAPTURING_COMMUNICATOR_H_
#define SEALPOINT_TESTS_SCALE_CAPTURING_COMMUNICATOR_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/communicator.h"

namespace sealpoint::testing {

// One rank of a job that does not exist. Keeps what the rank sends in its exchange and its gather
// to all. An exchange is answered with what it was given, or nothing; a gather with what it was
// given, or Timeout; reductions see this rank alone.
class CapturingCommunicator final : public Communicator {
 public:
  // Keeps the sizes of its messages, and the message to `owner`.
  CapturingCommunicator(int rank, int size, std::size_t owner)
      : rank_(rank), size_(size), checker_(owner) {}
  CapturingCommunicator(int rank, std::vector<Bytes> exchanged, std::vector<Bytes> gathered)
      : rank_(rank),
        size_(static_cast<int>(gathered.size())),
        checker_(0),
        exchanged_(std::move(exchanged)),
        gathered_(std::move(gathered)) {}

  const std::vector<std::uint64_t>& sent_sizes() const { return sent_sizes_; }
  const Bytes& to_owner() const { return to_owner_; }
  const Bytes& told_to_all() const { return told_to_all_; }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& host() const override { return host_; }
  void set_deadline(std::chrono::milliseconds) override {}
  Status Barrier() override { return Status(); }
  Status Broadcast(Bytes&, int) override { return Status(); }
  Result<std::vector<Bytes>> Gather(ByteSpan, int) override { return NoAnswer(); }
  Result<std::vector<Bytes>> AllGather(ByteSpan bytes) override {
    told_to_all_.assign(bytes.begin(), bytes.end());
    if (gathered_.empty()) return NoAnswer();
    return gathered_;
  }
  Result<std::vector<Bytes>> AllToAll(std::vector<Bytes> outgoing) override {
    sent_sizes_.clear();
    for (const Bytes& message : outgoing) sent_sizes_.push_back(message.size());
    to_owner_ = std::move(outgoing[checker_]);
    return exchanged_;
  }
  Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) override {
    return values;
  }

 private:
  static Status NoAnswer() { return Status(Code::kTimeout, "nobody is there"); }

  const int rank_;
  const int size_;
  const std::size_t checker_;
  const std::string host_ = "nowhere";
  const std::vector<Bytes> exchanged_;
  const std::vector<Bytes> gathered_;
  std::vector<std::uint64_t> sent_sizes_;
  Bytes to_owner_;
  Bytes told_to_all_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SCALE_CAPTURING_COMMUNICATOR_H_
