// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_DECLARATION_CODEC_H_
#define SEALPOINT_LIB_WRITER_DECLARATION_CODEC_H_

#include "lib/base/wire.h"
#include "lib/writer/held_tensors.h"
#include "sealpoint/declaration.h"

namespace sealpoint::internal::writer {

// Declarations as bytes between the ranks of one job (lib/base/wire.h).
void EncodeHeldTensor(const HeldView& held, WireWriter& out);
void EncodeHeldObject(const HeldObject& object, WireWriter& out);
// A list of more replicas than there are ranks is malformed.
Result<HeldTensor> DecodeHeldTensor(WireReader& in, int rank_count);
Result<HeldObject> DecodeHeldObject(WireReader& in);

}  // namespace sealpoint::internal::writer

#endif  // SEALPOINT_LIB_WRITER_DECLARATION_CODEC_H_
