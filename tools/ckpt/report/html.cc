// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/report/html.h"

#include "sealpoint/bytes.h"

namespace sealpoint::tools::report {

Html Text(std::string_view text) {
  std::string escaped;
  for (const char c : Printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return Html(std::move(escaped));
}

}  // namespace sealpoint::tools::report
