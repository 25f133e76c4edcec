// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_DECLARATION_CODEC_H_
#define SEALPOINT_LIB_WRITER_DECLARATION_CODEC_H_

#include "sealpoint/declaration.h"

namespace sealpoint::internal {

// Declarations as bytes between the ranks of one job, never in a file. Canonical: equal values have
// equal bytes. Appended to `out`.
void EncodeHeldTensor(const HeldTensor& held, Bytes& out);
void EncodeHeldObject(const HeldObject& object, Bytes& out);

// Reads what EncodeHeld* wrote, one after the other.
class DeclarationDecoder {
 public:
  explicit DeclarationDecoder(ByteSpan bytes) : bytes_(bytes) {}

  bool at_end() const { return at_ == bytes_.size(); }
  // Which of the two comes next. Precondition: !at_end().
  bool next_is_tensor() const;
  // Errors: Comm (the bytes are not what a rank of this version sends).
  Result<HeldTensor> NextTensor();
  Result<HeldObject> NextObject();

 private:
  Result<std::uint64_t> NextNumber();
  Result<std::vector<std::uint64_t>> NextNumbers();
  Result<std::string> NextText();

  ByteSpan bytes_;
  std::size_t at_ = 0;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_WRITER_DECLARATION_CODEC_H_
