# SPDX-License-Identifier: Apache-2.0
"""A picture per workload: the rate of each peer at each operation."""

from peers.peer import OURS
from peers.rounds import median

COLORS = {"raw": "#b8b8b8", "sealpoint": "#0b6e4f", "dcp": "#d1495b", "torch": "#edae49", "safetensors": "#8c6239",
          "tensorstore": "#3d6cb9", "hdf5": "#8d6a9f", "hdf5-fletcher32": "#c39bd3"}


def draw(results, workloads, peers, folder):
    """Returns the files; raises ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    files = []
    for workload in workloads:
        rows = results.rows(workload)
        if rows:
            file = folder / f"{workload.name}.png"
            draw_one(results, workload, rows, list(peers), file)
            files.append(file)
    return files


def draw_one(results, workload, rows, names, file):
    from matplotlib import pyplot

    names = [name for name in names if any(results.of(workload, operation, name) for operation in rows)]
    width = 0.84 / len(names)
    inches = max(8.0, 1.5 * len(rows))
    figure, axes = pyplot.subplots(figsize=(inches, 4.2), layout="constrained")
    for i, name in enumerate(names):
        for j, operation in enumerate(rows):
            figures = results.of(workload, operation, name)
            if figures is None:
                continue
            rates = figures.rates()
            middle = median(rates)
            axes.bar(j + (i - (len(names) - 1) / 2) * width, middle, width * 0.92, color=COLORS.get(name, "#444444"),
                     yerr=[[middle - min(rates)], [max(rates) - middle]], ecolor="#555555", error_kw={"linewidth": 0.8})
    # Rates differ by a thousand.
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("GB/s (logarithmic)")
    axes.set_xticks(range(len(rows)), [operation.replace(", ", ",\n") for operation in rows])
    axes.set_title(f"{workload.name}: {workload.what}", fontsize=9, wrap=True)
    axes.grid(axis="y", which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=COLORS.get(name, "#444444")) for name in names]
    labels = ["Sealpoint" if name == OURS else "raw (the limit)" if name == "raw" else name for name in names]
    columns = min(len(names), int(inches / 1.4))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=8, frameon=False)
    figure.savefig(file, dpi=140)
    pyplot.close(figure)
