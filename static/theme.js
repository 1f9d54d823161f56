// Runs before the stylesheet, so that a stored theme never flashes the other one.
// `daybreak.theme()` says what is shown; "daybreak:theme" on document tells of a change.
(() => {
  "use strict";
  const THEMES = ["system", "light", "dark"];
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  function read(name, fallback) {
    try {
      return window.localStorage.getItem(name) ?? fallback;
    } catch {
      return fallback; // storage can be forbidden; the page works without it
    }
  }

  function write(name, value) {
    try {
      window.localStorage.setItem(name, value);
    } catch {
      // The choice then lasts as long as the page.
    }
  }

  function chosen() {
    return root.dataset.theme ?? "system";
  }

  function theme() {
    const choice = chosen();
    if (choice !== "system") return choice;
    return system.matches ? "dark" : "light";
  }

  function apply(choice) {
    if (choice === "light" || choice === "dark") root.dataset.theme = choice;
    else delete root.dataset.theme;
  }

  function tell() {
    document.dispatchEvent(new CustomEvent("daybreak:theme", { detail: theme() }));
  }

  function choose(choice) {
    if (!THEMES.includes(choice)) return;
    write("daybreak.theme", choice);
    apply(choice);
    tell();
  }

  apply(read("daybreak.theme", "system"));
  system.addEventListener("change", tell);
  window.daybreak = { THEMES, theme, chosen, choose, read, write };
})();
