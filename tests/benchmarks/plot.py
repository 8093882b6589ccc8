"""Draws the sweep of bench_speed.py."""


def draw(found, path):
    """Draws {(axis, kind): {column: list of (x, ms)}} into the file `path`."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(
        1, len(found), figsize=(4.5 * len(found), 4), squeeze=False
    )
    for panel, ((axis, kind), lines) in zip(panels[0], found.items()):
        for column, points in lines.items():
            panel.loglog(*zip(*points), marker="o", label=column)
        panel.set_title(f"A step of LARS, {kind}")
        panel.set_xlabel(axis)
        panel.set_ylabel("ms")
        panel.grid(alpha=0.3)
        panel.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
