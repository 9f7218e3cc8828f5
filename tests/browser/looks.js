// What a page looks like, as far as numbers can say: findings in words, none where all is well.
() => {
  const findings = [];
  const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const where = (element) => {
    const text = (element.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40);
    return `<${element.tagName.toLowerCase()} class="${element.getAttribute("class") || ""}"> ${text}`;
  };

  // headings: one h1 first, and no level left out on the way down
  const levels = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter(shown).map((h) => [Number(h.tagName[1]), h]);
  if (levels.filter(([level]) => level === 1).length !== 1) findings.push("not exactly one h1");
  levels.reduce((before, [level, heading]) => {
    if (level > before + 1) findings.push(`h${level} after h${before}: ${where(heading)}`);
    return level;
  }, 0);

  for (const image of document.querySelectorAll("img")) {
    if (!image.alt && image.getAttribute("aria-hidden") !== "true") findings.push(`no alt: ${image.src.slice(0, 60)}`);
  }
  for (const head of document.querySelectorAll("table th:not(:empty)")) {
    if (!["col", "row", "colgroup", "rowgroup"].includes(head.scope)) findings.push(`th without scope: ${where(head)}`);
  }
  if (!document.documentElement.lang) findings.push("html without lang");
  if (!document.title) findings.push("no title");
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of new Set(ids.filter((id, place) => ids.indexOf(id) !== place))) findings.push(`id twice: ${id}`);

  // contrast of every visible text with what lies behind it (WCAG 2, relative luminance)
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((value, place) => a * value + (1 - a) * below[place]);
  const behind = (element) => {
    if (!element) return [255, 255, 255];
    const style = getComputedStyle(element);
    const colour = rgba(style.backgroundColor);
    return colour[3] === 1 ? colour.slice(0, 3) : over(colour, behind(element.parentElement));
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const faded = (element) => (element ? Number(getComputedStyle(element).opacity) * faded(element.parentElement) : 1);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const poor = new Map();
  let texts = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest("script, style, title, noscript, option")) continue;
    if (!shown(element)) continue;
    texts += 1;
    const style = getComputedStyle(element);
    const [r, g, b, a] = rgba(element.closest("svg") ? style.fill : style.color);
    const below = behind(element);
    const above = over([r, g, b, a * faded(element)], below);
    const [light, dark] = [luminance(above), luminance(below)].sort((x, y) => y - x);
    const contrast = (light + 0.05) / (dark + 0.05);
    if (contrast < 4.5) {
      const key = `${style.color} on ${below.map(Math.round)}: ${contrast.toFixed(2)}`;
      if (!poor.has(key)) poor.set(key, where(element));
    }
  }
  for (const [key, place] of poor) findings.push(`contrast ${key} ${place}`);
  return { findings, texts };
}
