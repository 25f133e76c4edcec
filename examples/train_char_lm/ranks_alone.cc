// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "ranks.h"

namespace char_lm {
namespace {

// One rank, whose messages are to itself.
class Alone final : public Ranks, public GradientExchange {
 public:
  GradientExchange& exchange() override { return *this; }
  sealpoint::Result<std::unique_ptr<sealpoint::Communicator>> MakeCommunicator() override {
    return sealpoint::SelfCommunicator();
  }
  void Abort(int status) override { std::exit(status); }

  [[nodiscard]] std::size_t rank() const override { return 0; }
  [[nodiscard]] std::size_t size() const override { return 1; }
  void AllToAll(std::span<const float> send, std::span<const std::size_t> /*send_counts*/,
                std::span<float> receive, std::span<const std::size_t> /*counts*/) override {
    std::copy(send.begin(), send.end(), receive.begin());
  }
  void AllGather(std::span<const float> send, std::span<float> receive,
                 std::span<const std::size_t> /*counts*/) override {
    std::copy(send.begin(), send.end(), receive.begin());
  }
};

}  // namespace

std::unique_ptr<Ranks> Ranks::Start(int& /*argc*/, char**& /*argv*/) {
  return std::make_unique<Alone>();
}

}  // namespace char_lm
