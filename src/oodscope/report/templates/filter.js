// Above the tables of a section: a box that keeps detectors by name, and a tick for each group of columns.
for (const section of document.querySelectorAll("[data-filter]")) {
  const tables = [...section.querySelectorAll("table[data-metric], table.scorecard")];
  const bar = document.createElement("div");
  bar.className = "filter";
  const box = document.createElement("input");
  box.type = "search";
  box.placeholder = "Filter detectors";
  box.setAttribute("aria-label", "Filter detectors by name");
  box.addEventListener("input", () => {
    const wanted = box.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    for (const head of tables.flatMap((table) => [...table.querySelectorAll("tbody th[scope=row]")])) {
      const name = head.textContent.toLowerCase();
      head.parentElement.hidden = wanted.length > 0 && !wanted.some((part) => name.includes(part));
    }
  });
  bar.append(box);
  const groups = new Map();
  for (const table of tables) {
    let column = 0;
    for (const head of table.tHead.rows[0].cells) {
      if (head.classList.contains("group")) {
        const name = head.textContent;
        if (!groups.has(name)) groups.set(name, []);
        groups.get(name).push({ table, head, first: column, last: column + head.colSpan });
      }
      column += head.colSpan;
    }
  }
  if (groups.size > 1) {
    for (const [name, places] of groups) {
      const label = document.createElement("label");
      const tick = document.createElement("input");
      tick.type = "checkbox";
      tick.checked = true;
      tick.addEventListener("change", () => {
        for (const { table, head, first, last } of places) {
          head.hidden = !tick.checked;
          for (const row of [...table.rows].slice(1)) {
            if (row.classList.contains("track")) continue;
            for (let column = first; column < last; column += 1) row.cells[column].hidden = !tick.checked;
          }
        }
      });
      label.append(tick, ` ${name}`);
      bar.append(label);
    }
  }
  section.querySelector(".scroll").before(bar);
}
