// Light or dark: what the reader chose last, else what the system prefers. Without storage the choice lasts for the page.
{
  const root = document.documentElement;
  const name = "oodscope-theme";
  try {
    const kept = localStorage.getItem(name);
    if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  } catch { /* a browser may refuse storage to files */ }
  addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("button.theme");
    button.hidden = false;
    button.addEventListener("click", () => {
      const dark = root.dataset.theme
        ? root.dataset.theme === "dark"
        : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try { localStorage.setItem(name, root.dataset.theme); } catch { /* then it is not kept */ }
    });
  });
}
