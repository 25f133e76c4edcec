// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_C_RANKS_H_
#define SEALPOINT_LIB_C_RANKS_H_

#include <limits>
#include <memory>

#include "lib/c/attributes.h"
#include "lib/c/boundary.h"
#include "sealpoint/communicator.h"
#include "sealpoint/declaration.h"
#include "sealpoint/engine.h"
#include "sealpoint/saver.h"

// All of these are shared with the objects made from them, so that C may free objects in any order.

struct sealpoint_communicator {
  std::shared_ptr<sealpoint::Communicator> communicator;
};

struct sealpoint_declaration {
  std::shared_ptr<sealpoint::Declaration> declaration;
  sealpoint::c_api::TensorAttributes attributes{};
};

struct sealpoint_sources {
  explicit sealpoint_sources(std::shared_ptr<const sealpoint::Declaration> of)
      : declaration(std::move(of)), sources(*declaration) {}
  std::shared_ptr<const sealpoint::Declaration> declaration;
  sealpoint::Sources sources;
  sealpoint::Attributes attributes{};  // of the checkpoint
};

// In the order in which they may go: the saver before what it uses.
struct sealpoint_saver {
  struct Parts {
    std::shared_ptr<sealpoint::Engine> engine;
    std::shared_ptr<sealpoint::Communicator> communicator;
    std::unique_ptr<sealpoint::Saver> saver;
  };
  std::shared_ptr<Parts> parts;
};

namespace sealpoint::c_api {

// Counts that C passes without a sign.
inline constexpr std::uint32_t kCountMax = std::numeric_limits<std::int32_t>::max();

// Sources borrow their declaration, which must not change any more.
inline Status CheckHasNoSources(const sealpoint_declaration& handle) {
  if (handle.declaration.use_count() == 1) return {};
  return {Code::kInvalidArgument, "the declaration has sources; free them before it changes"};
}

// Runs `call`, whose error is kept for the save, like those that the library finds. `slot`: of a
// source.
template <typename Target, typename Call, typename... Slot>
Status Noting(Target& target, const Call& call, Slot... slot) {
  Status status = call();
  target.NoteFailure(slot..., status);
  return status;
}

}  // namespace sealpoint::c_api

#endif  // SEALPOINT_LIB_C_RANKS_H_
