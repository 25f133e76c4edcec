// SPDX-License-Identifier: Apache-2.0
//
// A communicator that is an object of Python.
#ifndef SEALPOINT_PYTHON_SRC_COMMUNICATOR_H_
#define SEALPOINT_PYTHON_SRC_COMMUNICATOR_H_

#include <nanobind/nanobind.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sealpoint/communicator.h"

namespace sealpoint::python {

namespace nb = nanobind;

// Calls the functions of an object that sealpoint/_ranks/communicator.py describes, on whatever
// thread the library is, with the GIL. An exception there is a Comm, but for a
// sealpoint.TimeoutError. Made and destroyed with or without the GIL.
class PythonCommunicator final : public Communicator {
 public:
  // With the GIL.
  explicit PythonCommunicator(nb::object communicator);
  ~PythonCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& host() const override { return host_; }
  // sealpoint/_ranks/call.py does it.
  bool calls_are_compared() const override { return true; }
  void set_deadline(std::chrono::milliseconds deadline) override;

  Status Barrier() override;
  Status Broadcast(Bytes& bytes, int root) override;
  Result<std::vector<Bytes>> Gather(ByteSpan bytes, int root) override;
  Result<std::vector<Bytes>> AllGather(ByteSpan bytes) override;
  Result<std::vector<Bytes>> AllToAll(std::vector<Bytes> outgoing) override;
  Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) override;
  Result<std::unique_ptr<BackgroundCommunicator>> DuplicateForBackground() override;

  void Interrupt(const Status& why);
  // For Watch: a person who presses Ctrl-C does not wait for other ranks.
  std::function<void()> InterruptedBySignal();

 private:
  nb::object object_;
  int rank_ = 0;
  int size_ = 0;
  std::string host_;
};

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_COMMUNICATOR_H_
