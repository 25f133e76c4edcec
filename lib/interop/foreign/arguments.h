// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_ARGUMENTS_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_ARGUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/interop/foreign/pickle.h"
#include "sealpoint/region.h"

// Arguments of objects described by a pickle. All functions throw std::invalid_argument.

namespace sealpoint::internal::foreign {

[[noreturn]] void InvalidValue(const std::string& message);

// An item of a tuple or list. Throws if it has less.
const Pickled& At(const PickledItems& items, std::size_t i);
const PickledItems& ArgsOf(const Pickled& object);
const PickledItems& SequenceOf(const Pickled& value);
// A number from 0 to 2^62 - 1, and lists of them (also torch.Size).
std::uint64_t NaturalOf(const Pickled& value);
Shape SizesOf(const Pickled& value);
// A string of UTF-8.
std::string NameOf(const Pickled& value);

// The entries of a mapping.
const PickledPairs& PairsOf(const Pickled& value);
// The value of a key of a mapping. Find: null if there is none, or if it is None.
const Pickled* Find(const Pickled& mapping, std::string_view key);
const Pickled& Get(const Pickled& mapping, std::string_view key);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_ARGUMENTS_H_
