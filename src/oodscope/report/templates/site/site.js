// Sorting, filtering and search. What the reader sees lives in the address behind the #, so that a link shows it again:
// "#q=knn&tier=retrained&sort=-near.mean" is a view, "#e-some-entry" is one row.
"use strict";
(() => {
  // the policy of the page allows no style in an element; what a script sets is allowed: data-x-at="0.3" becomes --x-at
  for (const element of document.querySelectorAll("[data-value-at], [data-x-at], [data-y-at]")) {
    for (const [key, place] of Object.entries(element.dataset)) {
      if (key.endsWith("At")) element.style.setProperty(`--${key.slice(0, -2)}-at`, place);
    }
  }

  const form = document.getElementById("filters");
  const found = document.getElementById("found");
  const nothing = document.getElementById("nothing");

  const keyOf = (cell) => {
    if (cell === undefined || cell.classList.contains("none")) return null;
    const value = cell.dataset.value;
    return value === undefined ? cell.textContent.trim().toLowerCase() : Number(value);
  };
  const order = (a, b) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1);

  const boards = [...document.querySelectorAll("table.board")].map((table) => {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    const places = new Map(heads.map((head, place) => [head.dataset.sort, place]));
    places.delete(undefined);
    const rows = [...body.rows].map((element, place) => ({ element, place, words: null, keys: new Map(), fits: true }));
    return { table, body, heads, places, rows, section: table.closest(".ranking"), sorted: "", limit: Infinity, more: null };
  });
  const filtered = boards.filter((board) => board.section && form);
  const total = filtered.reduce((sum, board) => sum + board.rows.length, 0);

  // a browser lays out every row that is seen, so of a large page each table begins with its first rows
  const BUDGET = 100;
  const ask = (board, button) => { board.limit = Infinity; showRows(board); button.blur(); };
  if (total > 2 * BUDGET) {
    for (const board of filtered) {
      board.limit = Math.max(10, Math.floor(BUDGET / filtered.length));
      board.more = document.createElement("button");
      board.more.type = "button";
      board.more.className = "more";
      board.more.addEventListener("click", () => ask(board, board.more));
      board.table.parentElement.after(board.more);
    }
  }
  const showRows = (board) => {
    let fitting = 0;
    for (const { element, fits } of board.rows) {
      fitting += fits;
      const hide = !fits || fitting > board.limit;
      if (element.hidden !== hide) element.hidden = hide;
    }
    if (board.more) {
      board.more.hidden = fitting <= board.limit;
      board.more.textContent = `Show all ${fitting} rows`;
    }
    return fitting;
  };

  const wordsOf = (row) => (row.words ??= `${row.element.textContent} ${row.element.dataset.more ?? ""}`.toLowerCase());
  const keyFor = (row, place) => {
    if (!row.keys.has(place)) row.keys.set(place, keyOf(row.element.cells[place]));
    return row.keys.get(place);
  };

  // sort is a column's name, with "-" in front for largest first; empty is the order in which the page came
  const sortBoard = (board, sort) => {
    if (board.sorted === sort) return;
    const name = sort.replace(/^-/, "");
    if (sort && !board.places.has(name)) return;
    const place = board.places.get(name);
    const sign = sort.startsWith("-") ? -1 : 1;
    board.rows.sort((a, b) => {
      if (!sort) return a.place - b.place;
      const [x, y] = [keyFor(a, place), keyFor(b, place)];
      if (x === null || y === null) return (x === null) - (y === null) || a.place - b.place;
      return sign * order(x, y) || a.place - b.place;
    });
    board.body.append(...board.rows.map((row) => row.element));
    board.heads.forEach((head, index) => {
      if (sort && index === place) head.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    board.sorted = sort;
  };

  const filterBoards = (state) => {
    const wanted = (name) => new Set((state.get(name) ?? "").split(",").filter(Boolean).map(decodeURIComponent));
    const [track, tuning, tier, architecture] = ["track", "tuning", "tier", "architecture"].map(wanted);
    const words = (state.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (set, value) => set.size === 0 || set.has(value);
    let shown = 0;
    for (const board of filtered) {
      const here = fits(track, board.section.dataset.track) && fits(tuning, board.section.dataset.tuning);
      for (const row of board.rows) {
        const data = row.element.dataset;
        row.fits = here && fits(tier, data.tier) && fits(architecture, data.architecture)
          && words.every((word) => wordsOf(row).includes(word));
      }
      const inside = showRows(board);
      board.section.hidden = inside === 0;
      shown += inside;
    }
    if (found) found.textContent = shown === total ? `${total} rows` : `${shown} of ${total} rows`;
    if (nothing) nothing.hidden = shown > 0;
  };

  // the address, the controls and the tables, each made from the one before it
  const isView = (hash) => hash.includes("=");
  const stateOfAddress = () => new URLSearchParams(isView(location.hash) ? location.hash.slice(1) : "");
  const showState = (state) => {
    if (form) {
      for (const control of form.elements) {
        if (control.type === "search") { if (control.value !== (state.get("q") ?? "")) control.value = state.get("q") ?? ""; }
        if (control.type === "checkbox") {
          control.checked = (state.get(control.name) ?? "").split(",").map(decodeURIComponent).includes(control.value);
        }
      }
    }
    for (const board of boards) sortBoard(board, state.get("sort") ?? "");
    filterBoards(state);
  };
  const setState = (change) => {
    const state = stateOfAddress();
    for (const [name, value] of Object.entries(change)) value ? state.set(name, value) : state.delete(name);
    const hash = state.toString();
    try {
      history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
    } catch {
      location.hash = hash;
    }
    showState(state);
  };
  const showRow = () => {
    if (isView(location.hash) || !location.hash) return;
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const board = boards.find((each) => each.body.contains(target));
    if (board && board.limit < Infinity) ask(board, board.more);
    if (target.tagName === "DETAILS") target.open = true;
    target.scrollIntoView({ block: "center" });
  };

  if (form) {
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", (event) => {
      event.preventDefault();
      setState({ q: "", track: "", tuning: "", tier: "", architecture: "" });
    });
    form.addEventListener("input", () => {
      const change = { q: form.elements.q.value };
      for (const control of form.elements) {
        if (control.type !== "checkbox") continue;
        change[control.name] ??= "";
        if (control.checked) {
          change[control.name] += `${change[control.name] && ","}${encodeURIComponent(control.value)}`;
        }
      }
      setState(change);
    });
  }
  for (const board of boards) {
    for (const head of board.heads) {
      const name = head.dataset.sort;
      if (name === undefined) continue;
      head.tabIndex = 0;
      head.title = "Sort by this column";
      const sort = () => {
        // numbers begin with the largest, names and ranks with the smallest
        const text = head.classList.contains("text") || head.cellIndex === 0 || head.dataset.first === "up";
        const [first, second] = text ? [name, `-${name}`] : [`-${name}`, name];
        setState({ sort: board.sorted === first ? second : first });
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); }
      });
    }
  }
  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      const text = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(text.textContent);
      } catch {
        // a page opened from a file may not write to the clipboard; the selection can be copied by hand
        getSelection().selectAllChildren(text);
        document.execCommand("copy");
      }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
  addEventListener("hashchange", () => { showState(stateOfAddress()); showRow(); });
  showState(stateOfAddress());
  showRow();
})();

// The front page: one benchmark at a time, chosen by a tab or by the address.
{
  const tabs = [...document.querySelectorAll("nav.fronts a")];
  const choose = () => {
    const wanted = tabs.find((tab) => tab.hash === location.hash) ?? tabs[0];
    for (const tab of tabs) {
      if (tab === wanted) tab.setAttribute("aria-current", "true"); else tab.removeAttribute("aria-current");
      document.getElementById(tab.hash.slice(1)).hidden = tab !== wanted;
    }
  };
  if (tabs.length > 1) {
    addEventListener("hashchange", choose);
    choose();
  }
}
