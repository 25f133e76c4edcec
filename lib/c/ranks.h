// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_C_RANKS_H_
#define SEALPOINT_LIB_C_RANKS_H_

#include <memory>

#include "lib/c/boundary.h"
#include "sealpoint/communicator.h"
#include "sealpoint/declaration.h"

// All of these are shared with the objects made from them, so that C may free objects in any order.

struct sealpoint_communicator {
  std::shared_ptr<sealpoint::Communicator> communicator;
};

struct sealpoint_declaration {
  std::shared_ptr<sealpoint::Declaration> declaration;
};

struct sealpoint_sources {
  explicit sealpoint_sources(std::shared_ptr<const sealpoint::Declaration> of)
      : declaration(std::move(of)), sources(*declaration) {}
  std::shared_ptr<const sealpoint::Declaration> declaration;
  sealpoint::Sources sources;
};

#endif  // SEALPOINT_LIB_C_RANKS_H_
