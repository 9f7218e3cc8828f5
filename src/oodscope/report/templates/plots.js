// Draws every div.plot[data-figure=NAME] from the JSON in #figure-NAME when it comes near the viewport, in the colours of
// the page, and again when the theme or the width changes.
(() => {
  const COLOURS = 10, DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "1px,3px,6px,3px", "10px,2px,2px,2px"];
  const SYMBOLS = ["circle", "square", "diamond", "cross", "x", "triangle-up", "triangle-down", "star"], NARROW = 560, WIDEST = 760, FIELDS = 5;
  const root = document.documentElement;
  const drawn = new Map(); // div -> what is known of its figure

  const css = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const colourOf = (place) => css(typeof place === "number" ? `c${place % COLOURS}` : place);

  // "#rrggbb", which is what the style sheet holds, with an opacity
  const faint = (colour, opacity) =>
    colour + Math.round(255 * opacity).toString(16).padStart(2, "0");

  const mixed = (from, to, share) => {
    const parts = (colour) => [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16));
    const ends = parts(to);
    return `rgb(${parts(from).map((part, n) => Math.round(part + share * (ends[n] - part))).join(",")})`;
  };

  const scaleOf = (kind) => {
    const [page, strong, other] = [css("card"), css("best"), css("c0")];
    return kind === "diverging"
      ? [[0, mixed(page, other, 0.95)], [0.5, mixed(page, css("soft"), 0.08)], [1, mixed(page, strong, 0.95)]]
      : [[0, mixed(page, strong, 0.04)], [1, mixed(page, strong, 0.95)]];
  };

  function coloured(trace, narrow) {
    const { colour: place, scale } = trace.meta ?? {};
    if (scale) {
      if (narrow) trace = { ...trace, showscale: false, ...(trace.x.length > FIELDS && { texttemplate: "" }) };
      const bar = { outlinewidth: 0, thickness: 10, len: 0.8, tickfont: { color: css("soft") }, ...trace.colorbar };
      return { ...trace, colorscale: scaleOf(scale), colorbar: bar };
    }
    const colour = colourOf(place ?? 0);
    // after ten the same colours come again, with another dash and another mark
    const round = typeof place === "number" ? Math.floor(place / COLOURS) % DASHES.length : 0;
    const dash = DASHES[round];
    if (trace.type === "bar") return { ...trace, marker: { color: faint(colour, 0.75), ...trace.marker } };
    return {
      ...trace,
      line: { color: colour, dash, width: 1.8, ...trace.line },
      marker: { color: colour, size: 6, ...trace.marker, symbol: SYMBOLS[round] + (trace.meta?.open ? "-open" : "") },
      textfont: { color: css("ink"), size: 12 },
      ...(trace.error_y && { error_y: { color: faint(colour, 0.6), thickness: 1.2, ...trace.error_y } }),
      ...(trace.fill && { fillcolor: faint(colour, 0.3) }),
    };
  }

  // long names would leave no space for the plot itself: two lines, each shortened in its middle; a pointer shows them whole
  const LINE = 17;
  const cut = (line) => (line.length > LINE ? `${line.slice(0, LINE - 9)}…${line.slice(-8)}` : line);
  const inLines = (name) => {
    if (name.length <= LINE) return name;
    const spaces = [...name.matchAll(/ /g)].map((found) => found.index);
    const middle = spaces.sort((a, b) => Math.abs(2 * a - name.length) - Math.abs(2 * b - name.length))[0];
    return middle === undefined ? cut(name) : `${cut(name.slice(0, middle))}<br>${cut(name.slice(middle + 1))}`;
  };
  const shortened = (figure, own) => {
    const names = [...new Set(figure.data.flatMap((trace) => trace[own] ?? []))];
    return { tickmode: "array", tickvals: names, ticktext: names.map(inLines) };
  };

  function arranged(figure, width) {
    const narrow = width < NARROW;
    const axis = (given, own) => ({
      automargin: true, color: css("soft"), gridcolor: css("line"), linecolor: css("line"), zerolinecolor: css("line"),
      zeroline: false, tickfont: { size: narrow ? 10 : 11 }, ...given,
      ...(narrow && given?.type === "category" && shortened(figure, own)),
      title: { font: { size: 12 }, standoff: 8, ...given?.title },
    });
    const entries = figure.data.filter((trace) => trace.name && trace.showlegend !== false).map((trace) => trace.name);
    const legend = entries.length > 1 && figure.layout.showlegend !== false;
    // beside the plot where there is space, else below it in one or two columns that make the figure taller
    const columns = Math.max(...entries.map((name) => name.length)) > 16 ? 1 : 2;
    const rows = legend && narrow ? Math.ceil(entries.length / columns) : 0;
    const layout = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: css("ink") },
      hoverlabel: { bgcolor: css("card"), bordercolor: css("line"), font: { color: css("ink") }, namelength: -1, align: "left" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("soft"), activecolor: css("best") },
      hovermode: "closest", dragmode: narrow ? false : "zoom", uirevision: "kept", ...figure.layout,
      showlegend: legend, width, height: figure.layout.height + 19 * rows,
      margin: { l: narrow ? 44 : 56, r: 12, t: 26, b: 48 + (rows ? 19 * rows + 12 : 0) },
      legend: narrow
        ? { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, entrywidthmode: "fraction", entrywidth: 0.96 / columns,
            font: { size: 11 } }
        : { font: { size: 12 }, tracegroupgap: 0 },
      xaxis: axis(figure.layout.xaxis, "x"), yaxis: axis(figure.layout.yaxis, "y"),
    };
    const logarithmic = figure.layout.meta?.log_axis;
    if (logarithmic && figure.log) {
      const key = `${logarithmic}axis`;
      layout[key] = { ...layout[key], type: "log", dtick: 1, range: figure.layout.meta.log_range };
      layout.uirevision = "log";
    }
    return layout;
  }

  const CONFIG = {
    displaylogo: false, displayModeBar: "hover", responsive: false, showSendToCloud: false, plotlyServerURL: "",
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
  };

  function failed(div, error) {
    div.replaceChildren(Object.assign(document.createElement("p"), {
      className: "soft", textContent: `This figure cannot be drawn: ${error.message ?? error}`,
    }));
    div.style.height = "auto";
  }

  // paper is narrower than most windows: there the drawing is scaled, for which it must know its own size
  function scalable(div, { width, height }) {
    div.style.setProperty("--ratio", width / height);
    for (const svg of div.querySelectorAll(".main-svg")) svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  }

  async function draw(div) {
    const figure = drawn.get(div);
    const space = Math.floor(div.clientWidth), width = Math.min(space, WIDEST);
    if (!figure || figure.broken) return;
    figure.space = space; // 0 where it is hidden: it is drawn anew when it is seen again
    if (!width) return;
    try {
      const layout = arranged(figure, width);
      div.style.height = `${layout.height}px`;
      const saved = { format: "svg", filename: div.dataset.figure }; // a picture of pixels would need more of the policy
      await Plotly.react(div, figure.data.map((trace) => coloured(trace, width < NARROW)), layout, { ...CONFIG, toImageButtonOptions: saved });
      scalable(div, layout);
      document.getElementById("js-plotly-tester")?.setAttribute("aria-hidden", "true"); // it measures texts off screen
    } catch (error) {
      figure.broken = true;
      failed(div, error);
    }
  }

  function scaleButton(div, figure) {
    const axis = figure.layout.meta?.log_axis;
    if (!axis) return;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "plot-scale" });
    const say = () => {
      button.textContent = figure.log ? "Linear axis" : "Logarithmic axis";
      button.setAttribute("aria-pressed", String(Boolean(figure.log)));
    };
    button.addEventListener("click", () => { figure.log = !figure.log; say(); draw(div); });
    say();
    div.before(button);
  }

  function begin(div) {
    if (drawn.has(div)) return;
    try {
      const figure = JSON.parse(document.getElementById(`figure-${div.dataset.figure}`).textContent);
      drawn.set(div, figure);
      scaleButton(div, figure);
      draw(div);
      resized.observe(div);
    } catch (error) {
      drawn.set(div, { broken: true });
      failed(div, error);
    }
  }

  // also fires when <details> is opened: what was hidden has no width
  const resized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.clientWidth && Math.floor(target.clientWidth) !== drawn.get(target)?.space) requestAnimationFrame(() => draw(target));
    }
  });
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) { near.unobserve(target); begin(target); }
  }, { rootMargin: "300px 0px" });

  const again = () => drawn.forEach((_, div) => draw(div));
  new MutationObserver(again).observe(root, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  const plots = document.querySelectorAll("div.plot[data-figure]");
  plots.forEach((div) => near.observe(div));

  // A browser prints what is there when this returns: everything that is open is drawn at once, in light colours. So
  // the plotting script must have been unpacked before, in a moment when nobody waits for it.
  let theme;
  addEventListener("beforeprint", () => {
    theme = root.dataset.theme;
    root.dataset.theme = "light";
    plots.forEach((div) => { near.unobserve(div); begin(div); });
    again();
  });
  addEventListener("afterprint", () => {
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    again();
  });
  if (plots.length) addEventListener("load", () => (globalThis.requestIdleCallback ?? setTimeout)(() => globalThis.unpackPlotly?.()));
})();
