"""A format of tables: values between tabs."""

from oodscope.document.formats import Format


def _write(table):
    head = [each.name for each in (*table.labels, *table.columns)]
    rows = [[row.name, *("" if each is None else f"{each.value:.6f}" for each in row.numbers)] for row in table.rows]
    return "\n".join("\t".join(line) for line in [head, *rows]) + "\n"


TSV = Format("tsv", _write, "values between tabs")
