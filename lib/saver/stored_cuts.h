// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_STORED_CUTS_H_
#define SEALPOINT_LIB_SAVER_STORED_CUTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sealpoint/communicator.h"
#include "sealpoint/declaration.h"
#include "sealpoint/digest.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// Divides the sources of a save into the boxes of TensorSpec::stored_cuts and
// SaverOptions::stored_cuts, one slot per box, before anything else is planned: replicas, frozen
// groups and the checks of declarations then handle boxes as any other regions. A saver keeps it
// from save to save.
class SourceCutter {
 public:
  explicit SourceCutter(const SaverOptions& options) : options_(options) {}

  // Local. nullopt if no tensor may have cuts. The result borrows the memory of `held`, and this
  // object until the next call. Precondition: `held` passed CheckSources. Errors: InvalidArgument
  // (a pattern with cuts for a different number of dimensions), LimitExceeded (too many boxes).
  Result<std::optional<Sources>> Cut(const Sources& held);

 private:
  Status CutDeclaration(const Declaration& held);
  Status AddBoxes(DeclaredTensor tensor, std::uint64_t& box_count);

  const SaverOptions& options_;
  std::optional<Digest> cut_for_;  // digest of the declaration that was cut
  Declaration cut_;
  std::vector<std::size_t>
      slot_ends_{};  // by slot of that declaration: the end of its boxes in cut_
};

// Collective. InvalidArgument if a pattern of SaverOptions::stored_cuts matches no tensor of any
// rank. The outcome is the same on all ranks. Errors: Comm, Timeout.
Status CheckCutPatterns(Communicator& comm, const SaverOptions& options,
                        const Declaration& declaration);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_STORED_CUTS_H_
