// A click on a heading sorts each tuning track by that column; a second click turns the order round.
for (const table of document.querySelectorAll("table[data-metric], table.sortable")) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((head, column) => {
    const sort = () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      for (const body of table.tBodies) {
        const rows = [...body.rows].filter((row) => !row.classList.contains("track"));
        const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
        rows.sort((a, b) => key(a).localeCompare(key(b)));
        if (rows.every((row) => row.cells[column].dataset.value !== undefined)) rows.sort((a, b) => key(a) - key(b));
        if (down) rows.reverse();
        body.append(...rows);
      }
    };
    head.tabIndex = 0;
    head.setAttribute("aria-sort", "none");
    head.title = "Sort by this column";
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); }
    });
  });
}
