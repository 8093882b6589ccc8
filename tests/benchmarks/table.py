"""Tables in Markdown, written row by row."""

import statistics

from turns import ratio


class Table:
    """Prints a table, from its first row on.

    Args:
      title: what stands above it.
      columns: the headings of what is measured.
      ratios: {heading: (numerator, denominator)}, two of `columns`.
      at_most: {heading: a limit}; what is above it is set in bold.
      digits: of what is measured.
    """

    def __init__(self, title, columns, ratios=(), at_most=(), digits=2):
        self._columns, self._ratios = columns, dict(ratios)
        self._at_most, self._digits = dict(at_most), digits
        self._notes = []
        headings = [
            f"{h} (at most {self._at_most[h]})" if h in self._at_most else h
            for h in [*columns, *self._ratios]
        ]
        self._above = title, headings

    def row(self, what, values, errors=()):
        """Prints a row of {column: list of values, one a round}."""
        if self._above:
            title, headings = self._above
            self._above = None
            print(f"\n{title}\n")
            self._print(["", *headings])
            self._print(["---", *["---:"] * len(headings)])
        cells = [what]
        for column in self._columns:
            found = values.get(column)
            number = statistics.median(found) if found else None
            cells.append(self._cell(column, number, self._digits))
        for heading, (a, b) in self._ratios.items():
            both = values.get(a) and values.get(b)
            number = ratio(values[a], values[b]) if both else None
            cells.append(self._cell(heading, number, 2))
        self._print(cells)
        for column, error in dict(errors).items():
            self._notes.append(f"{what}, {column}: {error.splitlines()[0][:150]}")

    def close(self):
        """Prints why cells are empty."""
        for note in self._notes:
            print(f"- {note}" if note is not self._notes[0] else f"\n- {note}")

    def _cell(self, heading, number, digits):
        if number is None:
            return ""
        text = f"{number:.{digits}f}"
        above = round(number, digits) > self._at_most.get(heading, float("inf"))
        return f"**{text}**" if above else text

    def _print(self, cells):
        print("| " + " | ".join(cells) + " |", flush=True)
