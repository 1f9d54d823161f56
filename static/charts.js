// Draws Plotly figures: <figure class="chart" data-figure="ID" aria-label="..."> beside
// {{ figure|json_script:"ID" }} with {"data": [...], "layout": {...}}.
// A point whose "customdata" is an address of ours leads there.
// With Shift it is not followed: "daybreak:pick" on the chart tells the address.
// Colours are written as tokens, "var(--compute)", and read again when the theme changes.
(() => {
  "use strict";
  const TOKEN = /^var\((--[a-z-]+)\)$/;
  const CONFIG = {
    responsive: true,
    displaylogo: false,
    displayModeBar: "hover",
    modeBarButtons: [["toImage"]],
    showTips: false,
  };

  function reader() {
    const probe = document.createElement("span");
    probe.hidden = true;
    document.body.append(probe);
    const read = (token) => {
      probe.style.color = `var(${token})`;
      return window.getComputedStyle(probe).color;
    };
    return { read, done: () => probe.remove() };
  }

  function resolved(value, read) {
    if (typeof value === "string") {
      const token = TOKEN.exec(value);
      return token ? read(token[1]) : value;
    }
    if (Array.isArray(value)) return value.map((item) => resolved(item, read));
    if (value && typeof value === "object") {
      return Object.fromEntries(
        Object.entries(value).map(([key, item]) => [key, resolved(item, read)]),
      );
    }
    return value;
  }

  function axis(own, read) {
    return {
      gridcolor: read("--line"),
      zerolinecolor: read("--line-strong"),
      linecolor: read("--line-strong"),
      tickcolor: read("--line-strong"),
      automargin: true,
      ...own,
    };
  }

  function layout(own, read) {
    const full = {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 56, r: 16, t: 12, b: 44 },
      height: 260,
      hoverlabel: {
        bgcolor: read("--surface"),
        bordercolor: read("--line-strong"),
        font: { color: read("--text") },
      },
      ...own,
      font: { family: "system-ui, sans-serif", size: 12, color: read("--text"), ...own.font },
    };
    for (const name of Object.keys(full)) {
      if (/^[xy]axis\d*$/.test(name)) full[name] = axis(full[name], read);
    }
    full.xaxis ??= axis({}, read);
    full.yaxis ??= axis({}, read);
    return full;
  }

  function draw(element) {
    const source = document.getElementById(element.dataset.figure);
    if (!source) return;
    const { read, done } = reader();
    const figure = resolved(JSON.parse(source.textContent), read);
    window.Plotly.react(element, figure.data, layout(figure.layout ?? {}, read), CONFIG);
    done();
    if (element.dataset.leads !== undefined) return;
    element.dataset.leads = "";
    element.on("plotly_click", ({ points, event }) => {
      const address = points[0]?.customdata;
      if (event?.shiftKey) {
        const pick = new CustomEvent("daybreak:pick", { detail: address, bubbles: true });
        element.dispatchEvent(pick);
        return;
      }
      if (typeof address === "string" && address.startsWith("/")) window.location.assign(address);
    });
  }

  function drawAll() {
    document.querySelectorAll("[data-figure]").forEach(draw);
  }

  document.addEventListener("daybreak:theme", drawAll);
  // What comes with a swap is not drawn yet.
  document.addEventListener("htmx:after:swap", () => {
    document.querySelectorAll("[data-figure]:not(.js-plotly-plot)").forEach(draw);
  });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", drawAll);
  else drawAll();
})();
