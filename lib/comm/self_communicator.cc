// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/comm/host_name.h"
#include "sealpoint/communicator.h"

namespace sealpoint {
namespace internal::comm {
namespace {

Status CheckIsSelf(int root) {
  if (root == 0) return {};
  return MakeError(Code::kComm, "root of rank 0 is ", root, ", expected below 1");
}

class SelfCommunicatorImpl final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const std::string& host() const override { return host_; }
  void set_deadline(std::chrono::milliseconds /*deadline*/) override {}

  Status Barrier() override { return {}; }
  Status Broadcast(Bytes& /*bytes*/, int root) override { return CheckIsSelf(root); }
  Result<std::vector<Bytes>> Gather(ByteSpan bytes, int root) override {
    SEALPOINT_RETURN_IF_ERROR(CheckIsSelf(root));
    return AllGather(bytes);
  }
  Result<std::vector<Bytes>> AllGather(ByteSpan bytes) override {
    return std::vector<Bytes>{Bytes(bytes.begin(), bytes.end())};
  }
  Result<std::vector<Bytes>> AllToAll(std::vector<Bytes> outgoing) override {
    if (outgoing.size() == 1) return outgoing;
    return MakeError(Code::kComm, "rank 0 has ", outgoing.size(), " messages, expected 1");
  }
  Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) override {
    return values;
  }
  Result<std::unique_ptr<BackgroundCommunicator>> DuplicateForBackground() override;

 private:
  const std::string host_ = HostName();
};

// Never waits, so that there is nothing to progress or to interrupt.
class SelfInBackground final : public BackgroundCommunicator {
 public:
  Communicator& communicator() override { return communicator_; }
  bool Progress() override { return false; }
  bool needs_progress() const override { return false; }
  void Interrupt(const Status& /*reason*/) override {}

 private:
  SelfCommunicatorImpl communicator_;
};

Result<std::unique_ptr<BackgroundCommunicator>> SelfCommunicatorImpl::DuplicateForBackground() {
  return std::unique_ptr<BackgroundCommunicator>(std::make_unique<SelfInBackground>());
}

}  // namespace
}  // namespace internal::comm

Result<std::unique_ptr<BackgroundCommunicator>> Communicator::DuplicateForBackground() {
  return internal::MakeError(Code::kUnsupported,
                             "communicator cannot be duplicated for saves in the background");
}

std::unique_ptr<Communicator> SelfCommunicator() {
  return std::make_unique<internal::comm::SelfCommunicatorImpl>();
}

}  // namespace sealpoint
