"""Tables as a reader sees them."""


def rows(table):
    """The visible rows of one table's body, each as the texts of its visible cells."""
    return table.evaluate(
        """(table) => [...table.querySelectorAll("tbody tr")].filter((row) => row.checkVisibility()).map((row) =>
            [...row.cells].filter((cell) => cell.checkVisibility()).map((cell) => cell.textContent.trim()))"""
    )


def values(table, column):
    """The numbers of one column behind the texts, top to bottom; None where a cell has none."""
    return table.evaluate(
        """(table, column) => [...table.querySelectorAll("tbody tr")].filter((row) => row.checkVisibility()).map(
            ({ cells }) => cells[column]?.dataset.value === undefined ? null : Number(cells[column].dataset.value))""",
        column,
    )
