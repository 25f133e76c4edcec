// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_C_ATTRIBUTES_H_
#define SEALPOINT_LIB_C_ATTRIBUTES_H_

#include <functional>
#include <map>
#include <string>

#include "lib/c/boundary.h"
#include "sealpoint/attributes.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint_attributes.h"

namespace sealpoint::c_api {

// The attributes that a program has set for tensors.
class TensorAttributes {
 public:
  Status Set(sealpoint_string tensor, const sealpoint_attribute* attributes, std::uint64_t count);
  void ApplyTo(TensorSpec& tensor) const;

 private:
  std::map<std::string, Attributes, std::less<>> by_name_;
};

}  // namespace sealpoint::c_api

#endif  // SEALPOINT_LIB_C_ATTRIBUTES_H_
