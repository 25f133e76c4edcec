// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_REPORT_STYLE_H_
#define SEALPOINT_TOOLS_CKPT_REPORT_STYLE_H_

#include <string_view>

namespace sealpoint::tools::report {

// Colours after Okabe and Ito, "Color universal design", 2008: told apart by all readers. What a
// colour says is said by a word or a sign as well.
inline constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#59636e;--line:#d9dee4;--card:#f5f7f9;--blue:#0067a5;--pale:#a6cde8;
--bad:#c23b06;--warn:#d99a00}
@media(prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e4e7ea;--dim:#9aa4af;--line:#343b43;--card:#1d2227;--blue:#5bb3e8;
--pale:#2c5470;--bad:#ff8552;--warn:#f0b93a}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem 1rem 3rem;max-width:72rem;background:var(--bg);color:var(--fg);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2.25rem 0 .5rem}
h3{font-size:.95rem;margin:0;font-weight:600}
p{margin:.5rem 0;max-width:46rem;overflow-wrap:anywhere}
code{font:.9em ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
.dim,small,figcaption{color:var(--dim)}
small,figcaption{font-size:.85rem}
.bad{color:var(--bad)}
.sum{font-size:1.05rem}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,10.25rem),1fr));gap:.75rem;margin:1rem 0}
.card{background:var(--card);border-radius:.5rem;padding:.7rem .9rem;min-width:0}
.card b{display:block;font-size:1.35rem;line-height:1.3;font-weight:600;overflow-wrap:anywhere}
.card small{display:block;overflow-wrap:anywhere}
.figs{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1.25rem 2rem}
figure{margin:.25rem 0;min-width:0;break-inside:avoid}
svg{display:block}
.chart{width:100%;height:auto;margin-top:.35rem}
.chart text{font-size:11px;fill:var(--dim)}
.g{stroke:var(--line);fill:none;vector-effect:non-scaling-stroke}
.b{stroke:var(--blue);fill:none}
.pale{stroke:var(--pale)}
.l{stroke:var(--blue);stroke-width:1.6;fill:none;stroke-linejoin:round;vector-effect:non-scaling-stroke}
.d{stroke:var(--blue);stroke-width:5;stroke-linecap:round;fill:none;vector-effect:non-scaling-stroke}
.h{fill:transparent}
.h:hover{fill:var(--fg);fill-opacity:.08}
.strips{display:grid;grid-template-columns:max-content 1fr;gap:.4rem .9rem;align-items:center;margin:.75rem 0;max-width:none}
.strip{width:100%;height:1.1rem}
.strips small{grid-column:2;margin-top:-.35rem}
.k0{fill:var(--line)}.k1{fill:var(--blue)}.k2{fill:var(--warn)}.k3{fill:var(--bad)}
.spark{width:120px;height:28px}
.scroll{overflow-x:auto;margin:.75rem 0}
.tall{max-height:34rem;overflow-y:auto}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .75rem .3rem 0;text-align:left;vertical-align:top;white-space:nowrap;border-bottom:1px solid var(--line)}
th{position:sticky;top:0;background:var(--bg);font-weight:600;color:var(--dim)}
td.n,th.n{text-align:right}
td.w{white-space:normal;min-width:14rem;overflow-wrap:anywhere}
td small{display:block;white-space:normal;min-width:11rem;max-width:26rem;overflow-wrap:anywhere}
ul{margin:.5rem 0;padding-left:1.2rem}
li{margin:.3rem 0;overflow-wrap:anywhere}
.note{border-left:4px solid var(--bad);background:var(--card);padding:.5rem .9rem;border-radius:0 .5rem .5rem 0}
.note ul{margin:.25rem 0}
footer{margin-top:2.5rem;border-top:1px solid var(--line);padding-top:.75rem;font-size:.85rem;color:var(--dim)}
@media(max-width:30rem){body{padding:1rem .75rem 2rem}.chart text{font-size:14px}.strips{grid-template-columns:1fr;gap:.2rem}
.strips small{grid-column:1;margin:0 0 .5rem}}
@media print{:root{color-scheme:light}body{max-width:none;padding:0;font-size:10pt}.tall{max-height:none;overflow:visible}
th{position:static}.scroll{overflow:visible}h2{break-after:avoid}.card{border:1px solid var(--line)}
.strip,.chart,.spark{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
)";

}  // namespace sealpoint::tools::report

#endif  // SEALPOINT_TOOLS_CKPT_REPORT_STYLE_H_
