// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PYTHON_SRC_ENGINE_H_
#define SEALPOINT_PYTHON_SRC_ENGINE_H_

#include <memory>
#include <utility>

#include "python/src/gil.h"
#include "sealpoint/engine.h"

namespace sealpoint::python {

// An Engine that lives as long as the last writer or saver that uses it.
struct EngineHandle {
  explicit EngineHandle(std::shared_ptr<Engine> made) : engine(std::move(made)) {}
  ~EngineHandle() {
    const GilRelease released;  // its threads may be in a storage of Python
    engine.reset();
  }
  EngineHandle(const EngineHandle&) = delete;
  EngineHandle& operator=(const EngineHandle&) = delete;

  std::shared_ptr<Engine> engine;
};

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_ENGINE_H_
