// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PYTHON_SRC_ENGINE_H_
#define SEALPOINT_PYTHON_SRC_ENGINE_H_

#include <memory>
#include <utility>

#include "sealpoint/engine.h"

namespace sealpoint::python {

// An Engine that lives as long as the last writer or saver that uses it.
struct EngineHandle {
  std::shared_ptr<Engine> engine;
};

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_ENGINE_H_
