// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_S3_XML_READER_H_
#define SEALPOINT_LIB_S3_XML_READER_H_

#include <functional>
#include <string>
#include <string_view>

#include "sealpoint/status.h"

namespace sealpoint::internal::s3 {

// Calls on_end("ListBucketResult/Contents/Key", text) at the end of each element, in document
// order, with the text directly inside it. Documents with a DOCTYPE and elements deeper than 16 are
// refused: S3 servers do not send them. Names are without namespace. Errors: Io.
Status ReadXml(std::string_view document,
               const std::function<void(std::string_view path, const std::string& text)>& on_end);

// Text within an element.
std::string XmlEscape(std::string_view text);

}  // namespace sealpoint::internal::s3

#endif  // SEALPOINT_LIB_S3_XML_READER_H_
