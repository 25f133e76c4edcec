// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TRACE_H_
#define SEALPOINT_TRACE_H_

#include <memory>
#include <string>

#include "sealpoint/export.h"
#include "sealpoint/phases.h"
#include "sealpoint/status.h"

namespace sealpoint {

// Names the process that is traced.
struct TraceOptions {
  int rank = 0;
  std::string host{};
};

// Writes the phases of saves and loads of one process into a file in Chrome's trace event format
// (an array of complete events), for https://ui.perfetto.dev or chrome://tracing. The process is
// the rank; its thread 0 is the one that makes the trace, the training thread, and thread 1
// those of a saver. An event "save" spans the phases of a save on a thread, "load" those of a
// load. Times are those of the system's clock, so that traces of several ranks can be
// put together (docs/guides/tracing.md).
//
// Events are in the file as soon as they are over: what a process that dies leaves can be read, for
// the format lets the closing bracket be missing. A file system that fails ends the trace and
// nothing else (Close tells).
//
// Thread safety: any calls from any threads. In a child after fork it does nothing.
class SEALPOINT_EXPORT Trace {
 public:
  // Replaces a file that is there. Errors: NotFound, Io, NoSpace.
  static Result<std::unique_ptr<Trace>> Create(const std::string& path,
                                               const TraceOptions& options);
  virtual ~Trace() = default;  // as Close
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // For a PhaseCallback.
  virtual void OnPhase(const PhaseEvent& event) = 0;
  // Ends the array; later events are ignored. Returns the first error of writing.
  virtual Status Close() = 0;

 protected:
  Trace() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_TRACE_H_
