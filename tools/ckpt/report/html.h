// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_REPORT_HTML_H_
#define SEALPOINT_TOOLS_CKPT_REPORT_HTML_H_

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace sealpoint::tools::report {

// Text that a browser takes as HTML. What comes from checkpoints gets into it by Text alone: Markup
// takes nothing else than literals, numbers and other markup.
class Html {
 public:
  Html() = default;

  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  Html& operator+=(const Html& more) {
    text_ += more.text_;
    return *this;
  }
  friend Html operator+(Html a, const Html& b) { return a += b; }

 private:
  explicit Html(std::string text) : text_(std::move(text)) {}

  template <typename... Args>
  friend Html Markup(fmt::format_string<Args...> format, Args&&... args);
  friend Html Text(std::string_view text);

  std::string text_;
};

// Words that mean themselves, whatever they hold, in an element or in a quoted attribute. What
// moves or hides text is written as the tools do everywhere (Printable).
Html Text(std::string_view text);

// Literal markup with numbers and markup in it.
template <typename... Args>
Html Markup(fmt::format_string<Args...> format, Args&&... args) {
  static_assert(((std::is_arithmetic_v<std::remove_cvref_t<Args>> ||
                  std::is_same_v<std::remove_cvref_t<Args>, Html>) &&
                 ...),
                "text goes through Text()");
  return Html(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace sealpoint::tools::report

template <>
struct fmt::formatter<sealpoint::tools::report::Html> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(const sealpoint::tools::report::Html& html, Context& context) const {
    return fmt::formatter<std::string_view>::format(html.text(), context);
  }
};

#endif  // SEALPOINT_TOOLS_CKPT_REPORT_HTML_H_
