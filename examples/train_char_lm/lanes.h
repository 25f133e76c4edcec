// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace char_lm {

// Samples in a micro-batch. Activations are stored feature-major, [feature][sample], so that one
// row is one vector of lanes and no sum ever runs across lanes: the order of additions does not
// depend on the width of the machine's vector unit.
inline constexpr std::size_t kLanes = 8;

}  // namespace char_lm
