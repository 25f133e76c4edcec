// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_ALL_H_
#define SEALPOINT_ALL_H_

// What a typical program needs: declare and save, find the newest checkpoint, load, verify.

#include "sealpoint/checkpoint.h"         // IWYU pragma: export
#include "sealpoint/collective_reader.h"  // IWYU pragma: export
#include "sealpoint/declaration.h"        // IWYU pragma: export
#include "sealpoint/open_newest.h"        // IWYU pragma: export
#include "sealpoint/saver.h"              // IWYU pragma: export
#include "sealpoint/series.h"             // IWYU pragma: export
#include "sealpoint/verify.h"             // IWYU pragma: export

#endif  // SEALPOINT_ALL_H_
