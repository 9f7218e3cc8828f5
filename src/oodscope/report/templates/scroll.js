// Tables that are wider than their card: reached by keyboard, with a word that there is more, and shrunk to fit on paper.
{
  const PAPER = 660; // CSS pixels between the margins of an A4 page, less the edge of a card and the marks that hang out
  const check = (box) => {
    const wider = box.scrollWidth > box.clientWidth + 1;
    const hint = box.nextElementSibling?.classList.contains("sideways") ? box.nextElementSibling : null;
    if (wider) {
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", "Table, wider than the page: scroll sideways");
      if (!hint) box.after(Object.assign(document.createElement("p"), { className: "sideways", textContent: "More columns to the right →" }));
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
      hint?.remove();
    }
  };
  addEventListener("DOMContentLoaded", () => {
    const seen = new ResizeObserver((entries) => entries.forEach(({ target }) => check(target)));
    document.querySelectorAll(".scroll").forEach((box) => seen.observe(box));
  });
  addEventListener("beforeprint", () => {
    for (const box of document.querySelectorAll(".scroll")) {
      const table = box.querySelector("table");
      if (!table) continue;
      Object.assign(table.style, { width: "min-content", fontSize: "8.5pt" }); // how wide it must be, in the letters of paper
      const width = table.offsetWidth;
      Object.assign(table.style, { width: "", fontSize: "" });
      if (width > PAPER) table.style.zoom = PAPER / width;
    }
  });
  addEventListener("afterprint", () => document.querySelectorAll(".scroll table").forEach((table) => { table.style.zoom = ""; }));
}
