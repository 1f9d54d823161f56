// Pages of runs and traces, beside daybreak.js. All of them work without it but the profile viewer.
//   data-follow="id"     a checkbox: while it is off the log lines of that id stand still
//   data-flame, data-profile   a frame that opens the viewer once its profile is known to be there
//   data-panel="url"     a table whose links and filter renew it in place, the address kept;
//                        data-params names its part of the address
//   .later               a panel that loads by itself on the event "later"; data-later-text
//                        says when it cannot
//   data-run-count       says how many runs the form makes
(() => {
  "use strict";
  const { daybreak, htmx } = window;

  // Polls: a log that is not followed stays; an error page or the sign-in page is never swapped in.
  function followed(element) {
    const box = document.querySelector(`[data-follow="${CSS.escape(element.id)}"]`);
    return !box || box.checked;
  }

  document.addEventListener("htmx:before:request", (event) => {
    const source = event.detail.ctx.sourceElement;
    if (source?.id && !followed(source)) event.preventDefault();
  });
  document.addEventListener("htmx:before:response", (event) => {
    const { raw, status } = event.detail.ctx.response;
    if (raw.redirected) {
      event.preventDefault();
      window.location.reload(); // signed out meanwhile: the page itself asks to sign in again
    } else if (status >= 400) {
      event.preventDefault();
      cannotLoad(event.detail.ctx.sourceElement);
    }
  });
  document.addEventListener("htmx:error", (event) => cannotLoad(event.detail.ctx?.sourceElement));

  function cannotLoad(source) {
    const place = source?.closest?.(".later")?.querySelector("[data-later-text]");
    if (place) place.textContent = "This part cannot be loaded; the others are not touched by it.";
  }

  // Panels ask for themselves only now, as answers are looked at by the listeners above.
  function ask(panel) {
    if (!panel.matches?.(".later[data-htmx-powered]") || "asked" in panel.dataset) return;
    panel.dataset.asked = "";
    panel.dispatchEvent(new CustomEvent("later"));
  }
  document.addEventListener("htmx:after:init", (event) => ask(event.target));

  function toEnd(box) {
    const log = box.checked && document.getElementById(box.dataset.follow)?.querySelector(".log");
    if (log) log.scrollTop = log.scrollHeight;
  }

  function followLogs() {
    document.querySelectorAll("[data-follow]").forEach(toEnd);
  }

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-follow]")) toEnd(event.target);
    if (event.target.name === "scenarios") countRuns();
  });

  // Profile viewer: it shows no reason when a file is missing, so look before it does.
  function problem(frame, text) {
    const note = frame.closest("section").querySelector("[data-flame-problem]");
    note.querySelector("p").textContent = text;
    note.hidden = false;
    frame.hidden = true;
  }

  async function there(url) {
    try {
      const answer = await window.fetch(url, { method: "HEAD", credentials: "same-origin" });
      return answer.ok && !answer.redirected;
    } catch {
      return false; // no answer at all is as good as a missing file
    }
  }

  function tellViewerTheme() {
    const scheme = daybreak.theme() === "dark" ? "DARK" : "LIGHT";
    daybreak.write("speedscope-color-scheme", scheme);
  }

  async function openFlame(frame) {
    const { flame, profile } = frame.dataset;
    delete frame.dataset.flame;
    if (!(await there(profile))) {
      problem(frame, "The profile of this trace cannot be loaded. Read the trace again, or look at the operator table.");
    } else if (!(await there(flame.split("#")[0]))) {
      problem(frame, "The profile viewer is not installed on this server: an admin can run make assets.");
    } else {
      tellViewerTheme();
      frame.src = flame;
    }
  }

  // Loaded only when about to be seen: a page of numbers does not wait for it.
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      openFlame(target);
    }
  }, { rootMargin: "400px" });

  function watchFlames() {
    document.querySelectorAll("[data-flame]").forEach((frame) => seen.observe(frame));
  }

  document.addEventListener("daybreak:theme", () => {
    tellViewerTheme();
    // The viewer reads its theme when it loads.
    for (const frame of document.querySelectorAll("iframe.viewer[src]")) {
      frame.contentWindow.location.reload();
    }
  });

  // Tables that renew themselves
  async function renew(panel, query) {
    // Several tables share the address: each changes only its own part of it.
    const own = new URL(window.location.href);
    const asked = new URLSearchParams(query);
    for (const name of panel.dataset.params.split(" ")) {
      own.searchParams.delete(name);
      if (asked.has(name)) own.searchParams.set(name, asked.get(name));
    }
    const url = new URL(panel.dataset.panel, window.location.href);
    url.search = own.search;
    const swap = panel.dataset.swap ?? "outerMorph";
    await htmx.ajax("GET", url.pathname + url.search, { target: panel, swap });
    window.history.replaceState(null, "", own);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("[data-panel] a[href^='?'], [data-panel] a[href='']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    renew(link.closest("[data-panel]"), new URL(link.href).search);
  });
  // A question about a row is answered in the box of the same page, where there is one.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-asks]");
    const box = document.querySelector("#what-if[data-panel]");
    if (!link || !box || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    renew(box, new URL(link.href).search).then(() => {
      document.getElementById("what-if").scrollIntoView({ block: "start" });
    });
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const panel = form.method === "get" && form.closest("[data-panel]");
    if (!panel) return;
    event.preventDefault();
    renew(panel, `?${new URLSearchParams(new FormData(form))}`);
  });

  // New run
  function countRuns() {
    const place = document.querySelector("[data-run-count]");
    if (!place) return;
    const runs = document.querySelectorAll("[name=scenarios]:checked").length;
    place.textContent = runs === 1 ? "1 run" : `${runs} runs`;
  }

  function start() {
    watchFlames();
    followLogs();
    countRuns();
    document.querySelectorAll(".later").forEach(ask);
  }

  document.addEventListener("htmx:after:swap", () => {
    watchFlames();
    followLogs();
  });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
