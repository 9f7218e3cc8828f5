// Sorting, filtering, search, one table of all tracks, a choice of columns. What the reader sees lives in the address behind the #, so that a link shows it again:
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
    const entries = [...body.rows].filter((row) => !row.classList.contains("gap")); // a line between rows has one cell
    const rows = entries.map((element, place) => ({ element, place, words: null, keys: new Map(), fits: true }));
    return { table, body, heads, places, rows, section: table.closest(".ranking"), sorted: "", limit: Infinity, more: null };
  });
  const filtered = boards.filter((board) => board.section && form);

  // one table of all tracks: the same rows, moved, under a copy of the first head; each keeps the rank of its own table
  let united = null, isUnited = false;
  const leading = (board) => board.heads.findIndex((head) => head.classList.contains("strip")) + 1;
  const makeUnited = () => {
    const section = document.createElement("section");
    section.className = "ranking one";
    const words = "Rows of all tracks by their first number. A rank is the place within the row's own track and way of choosing parameters.";
    section.append(
      Object.assign(document.createElement("h2"), { textContent: "All tracks" }),
      Object.assign(document.createElement("p"), { className: "soft", textContent: words }),
    );
    const box = document.createElement("div"), table = document.createElement("table");
    box.className = "scroll";
    table.className = "board";
    table.append(filtered[0].table.tHead.cloneNode(true), document.createElement("tbody"));
    box.append(table);
    section.append(box);
    filtered[0].section.before(section);
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    const column = leading(filtered[0]), sign = heads[column].dataset.first === "up" ? 1 : -1;
    const value = (row) => Number(row.element.cells[column].dataset.value ?? -sign * Infinity);
    const rows = filtered.flatMap((board) => board.rows).sort((a, b) => sign * (value(a) - value(b)));
    united = {
      table, body: table.tBodies[0], heads, places: filtered[0].places, section, sorted: "", limit: Infinity, more: null,
      rows: rows.map(({ element }, place) => ({ element, place, words: null, keys: new Map(), fits: true })),
    };
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    sortable(united);
    boards.push(united);
  };
  const unite = (wanted) => {
    if (wanted === isUnited || filtered.length < 2) return;
    if (wanted && !united) makeUnited();
    isUnited = wanted;
    for (const board of wanted ? [united] : filtered) board.body.append(...board.rows.map((row) => row.element));
    united.section.hidden = !wanted;
    for (const board of filtered) {
      board.section.hidden = wanted;
      if (board.more) board.more.hidden = wanted;
    }
  };

  // columns that the reader does not want, by their names in data-sort
  const hideColumns = (names) => {
    for (const board of boards) {
      const hidden = board.heads.map((head) => names.has(head.dataset.sort));
      const lines = [...board.rows.map((row) => row.element), board.heads[0].parentElement];
      for (const line of lines) hidden.forEach((hide, place) => { if (line.cells[place].hidden !== hide) line.cells[place].hidden = hide; });
      const groups = board.table.tHead.rows.length > 1 ? [...board.table.tHead.rows[0].cells] : [];
      let place = 0;
      for (const group of groups) {
        const whole = Number(group.dataset.span ??= group.colSpan);
        const left = whole - hidden.slice(place, place + whole).filter(Boolean).length;
        group.hidden = left === 0;
        if (left) group.colSpan = left;
        place += whole;
      }
    }
  };
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
    for (const board of isUnited ? [united] : filtered) {
      for (const row of board.rows) {
        const data = row.element.dataset;
        row.fits = fits(track, data.track) && fits(tuning, data.tuning) && fits(tier, data.tier)
          && fits(architecture, data.architecture) && words.every((word) => wordsOf(row).includes(word));
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
    unite(state.get("view") === "one");
    hideColumns(new Set((state.get("hide") ?? "").split(",").filter(Boolean).map(decodeURIComponent)));
    for (const board of isUnited ? [united] : boards) sortBoard(board, state.get("sort") ?? "");
    filterBoards(state);
    compareRows((state.get("compare") ?? "").split(",").filter(Boolean).map(decodeURIComponent));
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
      setState({ q: "", track: "", tuning: "", tier: "", architecture: "", view: "", hide: "", compare: "" });
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
  const sortable = (board) => {
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
  };
  boards.forEach(sortable);

  // two rows side by side: every column, the difference, and whether the intervals let anything be said
  const panel = document.getElementById("compare");
  const picks = [...document.querySelectorAll("input.pick")];
  const compareRows = (ids) => {
    if (!panel) return;
    const rows = ids.slice(0, 2).map((id) => document.getElementById(id)).filter((row) => row?.querySelector("input.pick"));
    for (const pick of picks) pick.checked = ids.includes(pick.value);
    panel.hidden = rows.length === 0;
    const say = panel.querySelector("p"), table = panel.querySelector("table");
    table.parentElement.hidden = rows.length < 2;
    const names = rows.map((row) => row.querySelector("th a").textContent);
    if (rows.length < 2) { say.textContent = `${names[0] ?? ""}: choose a second row to compare it with.`; return; }
    const board = boards.find((each) => each.rows.some((row) => row.element === rows[0]));
    const number = (cell, name) => (cell.dataset[name] === undefined ? null : Number(cell.dataset[name]));
    const interval = (cell) => {
      const [low, high] = [number(cell, "classLow") ?? number(cell, "low"), number(cell, "classHigh") ?? number(cell, "high")];
      if (low !== null && high !== null) return [low, high];
      const [value, sd] = [number(cell, "value"), number(cell, "sd")];
      return sd === null ? null : [value - 2 * sd, value + 2 * sd];
    };
    let apart = 0, counted = 0;
    const lines = board.heads.flatMap((head, place) => {
      const cells = rows.map((row) => row.cells[place]), values = cells.map((cell) => number(cell, "value"));
      if (!head.dataset.sort?.includes(".") && head.dataset.sort !== "accuracy" || values.includes(null)) return [];
      const ends = cells.map(interval), better = head.dataset.first === "up" ? -1 : 1;
      const gap = values[0] - values[1];
      const clear = ends.every(Boolean) && (ends[0][0] > ends[1][1] || ends[1][0] > ends[0][1]);
      counted += 1;
      apart += clear;
      const verdict = clear ? names[better * gap > 0 ? 0 : 1] : ends.every(Boolean) ? "cannot say: intervals overlap" : "cannot say: no spread is stated";
      const shown = cells.map((cell) => `${cell.firstChild.textContent.trim()} ${cell.querySelector("small")?.textContent ?? ""}`.trim());
      return [[head.dataset.sort.replace(".", " "), ...shown, `${gap > 0 ? "+" : ""}${(100 * gap).toFixed(2)}`, verdict]];
    });
    say.textContent = `${names[0]} and ${names[1]}: separate in ${apart} of ${counted} columns. Intervals, or two standard deviations to each side; rows of two tracks did not play the same game.`;
    const cell = (tag, text, name) => Object.assign(document.createElement(tag), { textContent: text, className: name, ...(tag === "th" && { scope: "col" }) });
    const head = document.createElement("tr");
    head.append(...["column", ...names, "difference", "better"].map((text, place) => cell("th", text, place === 4 ? "text" : "")));
    table.tHead.replaceChildren(head);
    table.tBodies[0].replaceChildren(...lines.map((line) => {
      const row = document.createElement("tr");
      row.append(...line.map((text, place) => Object.assign(cell(place ? "td" : "th", text, place === 4 ? "text" : ""), place ? {} : { scope: "row" })));
      return row;
    }));
  };
  for (const pick of picks) {
    pick.addEventListener("change", () => {
      const chosen = (stateOfAddress().get("compare") ?? "").split(",").filter((id) => id && id !== encodeURIComponent(pick.value));
      if (pick.checked) chosen.push(encodeURIComponent(pick.value));
      setState({ compare: chosen.slice(-2).join(",") });
    });
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
