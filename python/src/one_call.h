// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PYTHON_SRC_ONE_CALL_H_
#define SEALPOINT_PYTHON_SRC_ONE_CALL_H_

#include <atomic>
#include <string>

#include "python/src/status.h"

namespace sealpoint::python {

// The turn of one call of an object that takes one call at a time. Any thread.
class OneCall {
 public:
  // Throws InvalidArgument during another call. `what` names the object.
  OneCall(std::atomic<bool>& is_busy, const char* what) : is_busy_(is_busy) {
    if (is_busy_.exchange(true)) {
      throw StatusError(
          Status(Code::kInvalidArgument,
                 std::string(what) + " is in another call, expected one call at a time"));
    }
  }
  ~OneCall() { is_busy_ = false; }
  OneCall(const OneCall&) = delete;
  OneCall& operator=(const OneCall&) = delete;

 private:
  std::atomic<bool>& is_busy_;
};

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_ONE_CALL_H_
