// Behaviour of every page, bound to data attributes. All pages work without it.
//   data-open="id", data-close   open and close a <dialog>
//   data-copy="#id"              copy that element's text
//   data-poll="2"                send a "poll" event every 2 s (5 s after a minute) while the
//                                tab is visible: <div data-poll="2" hx-get hx-trigger="poll">
//   data-keys="g r" on a link    go there by keyboard
//   data-rows on a table         j and k walk the first links of its rows
//   input.pick in such a row     x ticks it
//   data-needs-js hidden         shown, as the script runs
(() => {
  "use strict";
  const { daybreak } = window;
  const CHORD_MS = 1200;
  const SLOW_AFTER_MS = 60_000;

  // Dialogs
  document.addEventListener("click", (event) => {
    const opener = event.target.closest?.("[data-open]");
    const dialog = opener && document.getElementById(opener.dataset.open);
    if (dialog?.showModal) {
      event.preventDefault();
      dialog.showModal();
    }
    if (event.target.closest?.("[data-close]")) event.target.closest("dialog")?.close();
    if (event.target.nodeName === "DIALOG") event.target.close(); // a click on the backdrop
  });

  // Copy
  function say(text) {
    const place = document.querySelector("[data-say]");
    if (place) place.textContent = text;
  }

  function copyBySelection(text) {
    // Without https the clipboard interface is missing; a selection still works.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }

  async function copy(text) {
    if (!navigator.clipboard) return copyBySelection(text);
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copyBySelection(text);
    }
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    const source = button && document.querySelector(button.dataset.copy);
    if (!source) return;
    const done = await copy((source.value ?? source.textContent).trim());
    const label = (button.dataset.label ??= button.textContent);
    button.textContent = done ? "Copied" : "Select and copy by hand";
    say(button.textContent);
    window.setTimeout(() => { button.textContent = label; }, 2000);
  });

  // Polling: one clock for all; an element that comes back without data-poll is at rest.
  const started = Date.now();
  const asked = new Map();
  function tick() {
    if (document.visibilityState !== "visible") return;
    const now = Date.now();
    for (const element of document.querySelectorAll("[data-poll]")) {
      const wish = Number(element.dataset.poll) * 1000;
      const wait = now - started > SLOW_AFTER_MS ? Math.max(wish, 5000) : wish;
      const last = asked.get(element.id) ?? started;
      if (now - last < wait) continue;
      asked.set(element.id, now);
      element.dispatchEvent(new CustomEvent("poll"));
    }
  }
  window.setInterval(tick, 250);

  // Theme
  function markTheme() {
    for (const radio of document.querySelectorAll("[data-theme-choice]")) {
      radio.checked = radio.value === daybreak.chosen();
    }
    const button = document.querySelector("[data-theme-switch]");
    if (button) {
      button.hidden = false;
      button.title = `Theme: ${daybreak.chosen()}`;
      button.setAttribute("aria-label", `Theme: ${daybreak.chosen()}. Switch`);
    }
  }

  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-theme-switch]")) return;
    const place = daybreak.THEMES.indexOf(daybreak.chosen());
    daybreak.choose(daybreak.THEMES[(place + 1) % daybreak.THEMES.length]);
    say(`Theme: ${daybreak.chosen()}`);
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-theme-choice]")) daybreak.choose(event.target.value);
    if (event.target.matches("[data-keys-switch]")) {
      daybreak.write("daybreak.keys", event.target.checked ? "on" : "off");
    }
  });
  document.addEventListener("daybreak:theme", markTheme);

  // Keyboard
  const keysOn = () => daybreak.read("daybreak.keys", "on") === "on";

  function typing(target) {
    return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.nodeName);
  }

  function rowLinks() {
    return [...document.querySelectorAll("[data-rows] tbody tr")]
      .map((row) => row.querySelector("a[href]"))
      .filter((link) => link && link.offsetParent !== null);
  }

  function walk(step) {
    const links = rowLinks();
    if (!links.length) return false;
    const row = document.activeElement?.closest?.("[data-rows] tbody tr");
    const here = row ? links.findIndex((link) => row.contains(link)) : -1;
    const next = here < 0 ? (step > 0 ? 0 : links.length - 1) : here + step;
    const link = links[Math.min(links.length - 1, Math.max(0, next))];
    link.focus();
    link.scrollIntoView({ block: "nearest" });
    return true;
  }

  function pick() {
    const row = document.activeElement?.closest?.("[data-rows] tbody tr");
    const box = row?.querySelector("input.pick");
    box?.click();
    return Boolean(box);
  }

  const ACTIONS = {
    "/": () => {
      const field = [...document.querySelectorAll("[data-search]")].find((f) => f.offsetParent !== null);
      field?.focus();
      return Boolean(field);
    },
    "?": () => {
      const help = document.getElementById("keys-help");
      if (help && !help.open) help.showModal();
      return Boolean(help);
    },
    x: pick,
    j: () => walk(1),
    k: () => walk(-1),
  };

  let chord = 0;
  function follow(key) {
    const link = document.querySelector(`[data-keys="g ${CSS.escape(key)}"]`);
    link?.click();
    return Boolean(link);
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (!keysOn() || typing(event.target) || document.querySelector("dialog[open]")) return;
    const second = Date.now() < chord;
    chord = 0;
    let used = false;
    if (second) used = follow(event.key);
    else if (event.key === "g") chord = Date.now() + CHORD_MS;
    else if (Object.hasOwn(ACTIONS, event.key)) used = ACTIONS[event.key]();
    if (used) event.preventDefault();
  });

  // First look at the page
  for (const element of document.querySelectorAll("[data-needs-js]")) element.hidden = false;
  const box = document.querySelector("[data-keys-switch]");
  if (box) box.checked = keysOn();
  markTheme();
})();
