// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_ALL_H_
#define SEALPOINT_ALL_H_

// Includes the headers that a typical program needs to declare and save its state, and to find,
// load and verify the newest checkpoint.

#include "sealpoint/checkpoint.h"         // IWYU pragma: export
#include "sealpoint/collective_reader.h"  // IWYU pragma: export
#include "sealpoint/declaration.h"        // IWYU pragma: export
#include "sealpoint/saver.h"              // IWYU pragma: export
#include "sealpoint/series.h"             // IWYU pragma: export
#include "sealpoint/verify.h"             // IWYU pragma: export

#endif  // SEALPOINT_ALL_H_
