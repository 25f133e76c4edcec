// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_RANKS_FORWARDING_COMMUNICATOR_H_
#define SEALPOINT_TESTS_SUPPORT_RANKS_FORWARDING_COMMUNICATOR_H_

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/communicator.h"

namespace sealpoint::testing {

// Passes each call on to another communicator, which must outlive it. Subclasses intervene.
class ForwardingCommunicator : public Communicator {
 public:
  explicit ForwardingCommunicator(Communicator& inner) : inner_(inner) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const std::string& host() const override { return inner_.host(); }
  void set_deadline(std::chrono::milliseconds deadline) override { inner_.set_deadline(deadline); }
  Status Barrier() override { return inner_.Barrier(); }
  Status Broadcast(Bytes& bytes, int root) override { return inner_.Broadcast(bytes, root); }
  Result<std::vector<Bytes>> Gather(ByteSpan bytes, int root) override {
    return inner_.Gather(bytes, root);
  }
  Result<std::vector<Bytes>> AllGather(ByteSpan bytes) override { return inner_.AllGather(bytes); }
  Result<std::vector<Bytes>> AllToAll(std::vector<Bytes> outgoing) override {
    return inner_.AllToAll(std::move(outgoing));
  }
  Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) override {
    return inner_.AllReduceMax(values);
  }

 private:
  Communicator& inner_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_RANKS_FORWARDING_COMMUNICATOR_H_
