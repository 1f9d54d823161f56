// Two points of a history chart, picked with Shift and a click, go into the form beneath it:
// <form data-pick> with two inputs named "run". The form works without this too.
(() => {
  "use strict";
  let next = 0;

  document.addEventListener("daybreak:pick", (event) => {
    const run = /^\/runs\/(\d+)\/$/.exec(event.detail)?.[1];
    const form = event.target.closest("section")?.querySelector("[data-pick]");
    if (!run || !form) return;
    const inputs = form.querySelectorAll("input[name=run]");
    inputs[next].value = run;
    inputs[next].focus({ preventScroll: true });
    next = 1 - next;
    if (next === 0) form.querySelector("button").focus();
  });
})();
