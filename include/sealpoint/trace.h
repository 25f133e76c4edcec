// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TRACE_H_
#define SEALPOINT_TRACE_H_

#include <memory>
#include <string>

#include "sealpoint/export.h"
#include "sealpoint/phases.h"
#include "sealpoint/status.h"

namespace sealpoint {

// Identifies the traced process.
struct TraceOptions {
  int rank = 0;
  std::string host{};
};

// Writes the phases of saves and loads of one process to a file in Chrome's trace event format (an
// array of complete events), for https://ui.perfetto.dev or chrome://tracing. The process id is the
// rank. Thread 0 is the thread that creates the trace (the training thread); thread 1 stands for
// the threads of a saver. An event "save" spans the phases of a save on a thread, "load" those of a
// load. Times are from the system clock, so that traces of several ranks can be merged
// (docs/guides/tracing.md).
//
// Each event is written when it ends. The file of a process that dies is therefore readable,
// because the format does not require the closing bracket. An I/O error ends only the trace; Close
// reports it.
//
// Thread-safe. Does nothing in a child after fork.
class SEALPOINT_EXPORT Trace {
 public:
  // Replaces an existing file. Errors: NotFound, Io, NoSpace.
  static Result<std::unique_ptr<Trace>> Create(const std::string& path,
                                               const TraceOptions& options);
  virtual ~Trace() = default;  // see Close
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // For a PhaseCallback.
  virtual void OnPhase(const PhaseEvent& event) = 0;
  // Ends the array; later events are ignored. Returns the first write error.
  virtual Status Close() = 0;

 protected:
  Trace() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_TRACE_H_
