// What has changed since the page came: running evaluations are drawn again, of anything else a line tells.
"use strict";
(() => {
  const root = document.currentScript.dataset.root;
  const table = document.getElementById("running");
  const idle = document.getElementById("idle");
  let known = null;

  const cell = (kind, text, value) => {
    const made = document.createElement(kind);
    made.textContent = text;
    if (value === undefined) made.className = "text";
    else made.dataset.value = value;
    return made;
  };

  const line = (each) => {
    const row = document.createElement("tr");
    row.dataset.id = each.id;
    if (each.stale) row.className = "unranked";
    const name = document.createElement("th");
    name.scope = "row";
    name.textContent = each.what;
    const bar = document.createElement("progress");
    bar.max = 1;
    bar.value = each.share;
    const progress = cell("td", "");
    progress.append(bar);
    row.append(
      name, cell("td", `${each.host}, process ${each.process}`), cell("td", each.stage), cell("td", each.done, each.done),
      cell("td", each.total, each.total), progress, cell("td", Math.floor(each.seconds), each.seconds),
      cell("td", each.stale ? "stale" : "running"),
    );
    return row;
  };

  const announce = () => {
    if (document.getElementById("news")) return;
    const news = document.createElement("p");
    news.id = "news";
    news.setAttribute("role", "status");
    const again = document.createElement("a");
    again.href = location.href;
    again.textContent = "Show them.";
    again.addEventListener("click", (event) => { event.preventDefault(); location.reload(); });
    news.append("There are new results. ", again);
    document.getElementById("main").prepend(news);
  };

  const look = async () => {
    try {
      const answer = await fetch(`${root}api/state`, { cache: "no-store" });
      if (!answer.ok) return;
      const state = await answer.json();
      const now = `${state.board} ${state.runs}`;
      if (known !== null && known !== now) announce();
      known ??= now;
      if (table) {
        table.tBodies[0].replaceChildren(...state.running.map(line));
        idle.hidden = state.running.length > 0;
      }
    } catch { /* the server may be away for a while */ }
  };

  look();
  setInterval(() => { if (!document.hidden) look(); }, 2000);
})();
