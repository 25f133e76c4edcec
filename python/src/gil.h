// SPDX-License-Identifier: Apache-2.0
//
// Guards for the GIL that also hold when the interpreter ends.
#ifndef SEALPOINT_PYTHON_SRC_GIL_H_
#define SEALPOINT_PYTHON_SRC_GIL_H_

#include <nanobind/nanobind.h>
#include <unistd.h>

namespace sealpoint::python {

// Until Python 3.13 a thread that asks for the GIL when the interpreter has ended is ended itself,
// by unwinding its stack: through frames of C++ that allow no exception, which ends the process by
// an abort. Here it waits instead, as from 3.14 on: the process ends around it.
template <typename Acquire>
auto AcquireOrWaitForTheEnd(Acquire acquire) {
  try {
    return acquire();
  } catch (...) {  // nothing else is thrown
    while (true) pause();
  }
}

// Releases the GIL, and takes it again when it is destroyed.
class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() {
    AcquireOrWaitForTheEnd([this] { PyEval_RestoreThread(state_); });
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* const state_;
};

// Takes the GIL, on a thread of Python or of the library; nested use is fine.
class GilAcquire {
 public:
  GilAcquire() : state_(AcquireOrWaitForTheEnd(Ensure)) {}
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

 private:
  // A thread of the library gets no state of an interpreter that is gone. (One of Python has its
  // own, and the one that ends the interpreter goes on using it.)
  static PyGILState_STATE Ensure() {
    while (Py_IsInitialized() == 0 && PyGILState_GetThisThreadState() == nullptr) pause();
    return PyGILState_Ensure();
  }

  const PyGILState_STATE state_;
};

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_GIL_H_
