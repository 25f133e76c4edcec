# SPDX-License-Identifier: Apache-2.0
"""The style sheet of the page, with the colors of ``ckpt report``. The page never expresses a fact by color alone."""

STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#59636e;--line:#d9dee4;--card:#f5f7f9;--blue:#0067a5;--pale:#a6cde8;
--bad:#c23b06}
@media(prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e4e7ea;--dim:#9aa4af;--line:#343b43;--card:#1d2227;--blue:#5bb3e8;
--pale:#2c5470;--bad:#ff8552}}
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
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,10.25rem),1fr));gap:.75rem;margin:1rem 0}
.card{background:var(--card);border-radius:.5rem;padding:.7rem .9rem;min-width:0}
.card b{display:block;font-size:1.35rem;line-height:1.3;font-weight:600;overflow-wrap:anywhere}
.card small{display:block;overflow-wrap:anywhere}
.figs{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:1.5rem 2.5rem}
figure{margin:.25rem 0;min-width:0;break-inside:avoid}
.bars{display:grid;grid-template-columns:minmax(6rem,11rem) 1fr;gap:.15rem .75rem;margin-top:.5rem;align-items:center}
.bars span{font-size:.9rem;overflow-wrap:anywhere;line-height:1.25}
.bars small{grid-column:2;margin-bottom:.35rem;font-variant-numeric:tabular-nums;line-height:1.3}
svg{display:block;width:100%;height:.9rem}
.ours{fill:var(--blue)}.theirs{fill:var(--pale)}
.range{stroke:var(--fg);stroke-width:1.5;vector-effect:non-scaling-stroke}
.scroll{overflow-x:auto;margin:.75rem 0}
table{border-collapse:collapse;font-size:.9rem}
th,td{padding:.3rem .75rem .3rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
th{font-weight:600;color:var(--dim)}
td{overflow-wrap:anywhere;min-width:7rem}
ul{margin:.5rem 0;padding-left:1.2rem}
li{margin:.3rem 0;overflow-wrap:anywhere}
.note{border-left:4px solid var(--blue);background:var(--card);padding:.5rem .9rem;border-radius:0 .5rem .5rem 0;margin:1rem 0}
.note.slow{border-color:var(--bad)}
.note h2{margin:.1rem 0}
footer{margin-top:2.5rem;border-top:1px solid var(--line);padding-top:.75rem;font-size:.85rem;color:var(--dim)}
@media(max-width:30rem){body{padding:1rem .75rem 2rem}.bars{grid-template-columns:1fr}.bars small{grid-column:1}}
@media print{:root{color-scheme:light}body{max-width:none;padding:0;font-size:10pt}h2{break-after:avoid}
.card{border:1px solid var(--line)}svg{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""
