// SPDX-License-Identifier: Apache-2.0
//
// Made by scripts/options.py from python/sealpoint/_option_table.py.
#ifndef SEALPOINT_PYTHON_SRC_SAVER_OPTIONS_H_
#define SEALPOINT_PYTHON_SRC_SAVER_OPTIONS_H_

#include "sealpoint/saver.h"

namespace sealpoint::python {

// Calls `visit(name, field)` for each option that Python sets.
template <typename Options, typename Visit>
void ForEachSaverOption(Options& options, const Visit& visit) {
  visit("stored_cuts", options.stored_cuts);
  visit("fingerprints", options.fingerprints);
  visit("compare_replicas", options.compare_replicas);
  visit("writer_ranks", options.writer_ranks);
  visit("learn_frozen", options.learn_frozen);
  visit("frozen_full_every", options.frozen_full_every);
  visit("keep_local", options.keep_local);
  visit("unpromoted_max", options.unpromoted_max);
  visit("unpromoted_wait", options.unpromoted_wait);
  visit("promote_memory_bytes", options.promote_memory_bytes);
  visit("deadline", options.deadline);
  visit("background_deadline", options.background_deadline);
}

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_SAVER_OPTIONS_H_
