// Light or dark as the reader chose it, before anything is painted. A page without storage forgets, and works.
"use strict";
(() => {
  const root = document.documentElement;
  const recall = () => { try { return localStorage.getItem("oodscope-theme"); } catch { return null; } };
  const keep = (theme) => { try { localStorage.setItem("oodscope-theme", theme); } catch { /* forgotten with the page */ } };
  const chosen = recall();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", () => {
      const now = root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
      root.dataset.theme = now === "dark" ? "light" : "dark";
      keep(root.dataset.theme);
    });
  });
})();
