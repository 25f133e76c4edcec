// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_DECLARATION_CODEC_H_
#define SEALPOINT_LIB_WRITER_DECLARATION_CODEC_H_

#include "lib/base/wire.h"
#include "lib/writer/declared_tensors.h"
#include "sealpoint/declaration.h"

namespace sealpoint::internal::writer {

// Declarations as bytes between the ranks of one job (lib/base/wire.h).
void EncodeDeclaredTensor(const DeclaredView& held, WireWriter& out);
void EncodeObjectSpec(const ObjectSpec& object, WireWriter& out);
// A list of more replicas than there are ranks is malformed.
Result<DeclaredTensor> DecodeDeclaredTensor(WireReader& in, int rank_count);
Result<ObjectSpec> DecodeObjectSpec(WireReader& in);

}  // namespace sealpoint::internal::writer

#endif  // SEALPOINT_LIB_WRITER_DECLARATION_CODEC_H_
