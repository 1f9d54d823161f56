// Flame graph of a trace, drawn as SVG from its stored stacks; the table beside it says the same.
//   data-flamegraph="url"      the panel; around it data-flame-kind links, data-flame-find (search),
//                              data-flame-colour (select), data-flame-reset, data-flame-share,
//                              data-flame-detail, data-flame-legend, data-flame-stage
// View, zoom, search and colour stand in the address: flame, zoom, find, colour.
// Names are foreign text: they only ever become text nodes.
(() => {
  "use strict";
  const { KINDS, duration, share, model, boxes, hits, band } = window.daybreak.flame;
  const SVG = "http://www.w3.org/2000/svg";
  const ROW = 18;
  const CHAR_PX = 6.8;
  const RECT = document.createElementNS(SVG, "rect");
  RECT.setAttribute("height", ROW - 1);
  const NAME_CHARS = 200;
  const BANDS = ["under 20 %", "20 to 40 %", "40 to 60 %", "60 to 80 %", "80 % and more"];
  const UNKNOWN = "efficiency not known";

  const cut = (text, limit) => (text.length > limit ? `${text.slice(0, limit - 1)}…` : text);

  class Graph {
    constructor(panel) {
      this.panel = panel;
      this.stage = this.part("stage");
      this.query = new URL(window.location.href).searchParams;
      this.colour = this.query.get("colour") === "efficiency" ? "efficiency" : "kind";
      this.find = this.query.get("find") ?? "";
      this.zoom = parseInt(this.query.get("zoom") ?? "", 16);
      const current = panel.querySelector("[data-flame-kind][aria-current]");
      this.kind = this.query.get("flame") || current?.dataset.flameKind || "device";
      this.listen();
    }

    part(name) {
      return this.panel.querySelector(`[data-flame-${name}]`);
    }

    async load() {
      try {
        const answer = await window.fetch(this.panel.dataset.flamegraph, { credentials: "same-origin" });
        if (!answer.ok || answer.redirected) throw new Error(`answer ${answer.status}`);
        const text = await answer.text();
        window.performance.mark("flame-data");
        this.data = JSON.parse(text);
      } catch {
        this.stage.replaceChildren("The flame graph cannot be loaded. Read the trace again, or look at the tables.");
        return;
      }
      for (const link of this.panel.querySelectorAll("[data-flame-kind]")) {
        link.hidden = !this.data.views.some((view) => view.kind === link.dataset.flameKind);
      }
      if (!this.query.get("flame") && !this.data.views.some((view) => view.kind === this.kind)) {
        this.kind = this.data.views[0]?.kind ?? this.kind;
      }
      this.show(this.kind);
      // Ready is what can be seen and used: after the frame in which the picture was painted.
      window.requestAnimationFrame(() => window.setTimeout(() => {
        window.performance.measure("flame-ready", "flame-data");
        this.panel.dataset.ready = "";
      }));
    }

    show(kind) {
      this.kind = kind;
      this.model = model(this.data, kind);
      for (const link of this.panel.querySelectorAll("[data-flame-kind]")) {
        if (link.dataset.flameKind === kind) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
      if (!this.model) {
        this.stage.replaceChildren("This trace has nothing for it: no device work was recorded.");
        return;
      }
      const option = this.part("colour").querySelector("[value=efficiency]");
      option.disabled = !this.model.known;
      this.part("colour").value = this.model.known ? this.colour : "kind";
      this.part("find").value = this.find;
      const found = this.zoom >= 0 ? this.model.path.indexOf(this.zoom) : -1;
      this.top = found < 0 || found === this.model.size ? this.model.root : found;
      this.here = this.top;
      this.draw();
    }

    draw() {
      const m = this.model;
      this.width = this.stage.clientWidth;
      const width = Math.max(280, this.width);
      const found = this.find ? hits(m, this.find) : null;
      this.boxes = boxes(m, this.top, width);
      const rows = 1 + this.boxes.reduce((most, box) => Math.max(most, box.row), 0);
      const picture = document.createElementNS(SVG, "svg");
      picture.setAttribute("width", width);
      picture.setAttribute("height", rows * ROW);
      picture.setAttribute("aria-hidden", "true");
      const shapes = document.createElementNS(SVG, "g");
      const words = document.createElementNS(SVG, "g");
      const efficiency = this.part("colour").value === "efficiency";
      for (const box of this.boxes) this.add(box, shapes, words, found, efficiency);
      picture.append(shapes, words);
      this.stage.replaceChildren(picture);
      this.shapes = shapes;
      this.mark();
      this.tell(found);
    }

    add(box, shapes, words, found, efficiency) {
      const shape = RECT.cloneNode();
      shape.setAttribute("x", Math.round(box.x * 100) / 100);
      shape.setAttribute("y", box.row * ROW);
      shape.setAttribute("width", Math.max(0.2, Math.round(box.w * 100 - 40) / 100));
      shape.setAttribute("class", this.look(box, found, efficiency));
      shape.box = box;
      shapes.append(shape);
      const room = Math.floor((box.w - 6) / CHAR_PX);
      if (room < 3) return;
      const word = document.createElementNS(SVG, "text");
      word.setAttribute("x", (box.x + 3).toFixed(2));
      word.setAttribute("y", box.row * ROW + 13);
      const text = box.fold ? `+${box.fold.count.toLocaleString("en")} smaller` : this.model.name(box.at);
      word.textContent = cut(text, room);
      words.append(word);
    }

    look(box, found, efficiency) {
      const dim = found && !(found.hit[box.at] && !box.fold) ? " dim" : "";
      const lead = box.above ? " above" : "";
      if (box.fold) return `fold${dim}`;
      const colour = efficiency ? `reach${band(this.model.reached[box.at])}` : `kind-${this.model.category(box.at)}`;
      return `${colour}${dim}${lead}`;
    }

    describe(box) {
      const m = this.model;
      const whole = m.total[m.root];
      if (box.fold) {
        return `${box.fold.count.toLocaleString("en")} smaller frames in ${cut(m.name(box.at), NAME_CHARS)}: ${duration(box.fold.ns)}, ${share(box.fold.ns / whole)}`;
      }
      const parts = [`${cut(m.name(box.at), NAME_CHARS)}: ${duration(m.total[box.at])}, ${share(m.total[box.at] / whole)} of all`];
      if (this.top !== m.root) parts.push(`${share(m.total[box.at] / m.total[this.top])} of the zoomed frame`);
      parts.push(`self ${duration(m.self(box.at))}`);
      if (m.steps) parts.push(`${duration(m.total[box.at] / m.steps)} a step`);
      if (m.calls(box.at)) parts.push(`${m.calls(box.at).toLocaleString("en")} calls`);
      if (m.reached[box.at] >= 0) parts.push(`${share(m.reached[box.at] / 1000)} of the roofline`);
      return parts.join(" · ");
    }

    mark(follow = false) {
      for (const old of this.shapes.querySelectorAll(".here")) old.classList.remove("here");
      const number = this.boxes.findIndex((box) => box.at === this.here && !box.fold);
      const shape = this.shapes.children[number];
      if (!shape) return;
      shape.classList.add("here");
      this.part("detail").textContent = this.describe(this.boxes[number]);
      if (!follow) return;
      const edge = this.boxes[number].row * ROW;
      if (edge < this.stage.scrollTop) this.stage.scrollTop = edge;
      else if (edge + ROW > this.stage.scrollTop + this.stage.clientHeight) this.stage.scrollTop = edge + 2 * ROW - this.stage.clientHeight;
    }

    tell(found) {
      const m = this.model;
      this.part("share").textContent = found ? `Frames with “${this.find}” cover ${duration(found.ns)}, ${share(found.ns / m.total[m.root])} of all.` : "";
      this.part("reset").hidden = this.top === m.root && !this.find;
      const efficiency = this.part("colour").value === "efficiency";
      const seen = new Set(this.boxes.map((box) => (efficiency ? band(m.reached[box.at]) : m.category(box.at))));
      const entries = (efficiency ? [0, 1, 2, 3, 4, -1] : KINDS).filter((name) => seen.has(name)).map((name) => {
        const entry = document.createElement("span");
        const swatch = document.createElement("i");
        swatch.className = efficiency ? `reach${name}` : `kind-${name}`;
        entry.append(swatch, efficiency ? (BANDS[name] ?? UNKNOWN) : name);
        return entry;
      });
      this.part("legend").replaceChildren(...entries);
      this.remember();
    }

    remember() {
      const url = new URL(window.location.href);
      const set = (key, value) => (value ? url.searchParams.set(key, value) : url.searchParams.delete(key));
      set("flame", this.query.get("flame") || this.moved ? this.kind : "");
      set("zoom", this.top === this.model.root ? "" : this.model.path[this.top].toString(16));
      set("find", this.find);
      set("colour", this.colour === "efficiency" ? "efficiency" : "");
      window.history.replaceState(null, "", url);
    }

    go(top) {
      this.top = top;
      this.here = top;
      this.zoom = this.model.path[top];
      this.moved = true;
      this.draw();
    }

    step(key) {
      const m = this.model;
      const drawn = this.boxes.filter((box) => !box.fold);
      const here = drawn.find((box) => box.at === this.here) ?? drawn[0];
      if (key === "ArrowUp") return drawn.find((box) => box.at === m.parent[here.at]);
      if (key === "ArrowDown") return drawn.find((box) => box.at === m.children[here.at][0]);
      const row = drawn.filter((box) => box.row === here.row).sort((a, b) => a.x - b.x);
      return row[row.indexOf(here) + (key === "ArrowRight" ? 1 : -1)];
    }

    press(event) {
      if (!this.model || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key.startsWith("Arrow")) {
        const next = this.step(event.key);
        if (next) this.here = next.at;
        this.mark(true);
      } else if (event.key === "Enter") this.go(this.here);
      else if (event.key === "Escape") this.go(this.top === this.model.root ? this.top : this.model.parent[this.top]);
      else if (event.key === "Home") this.go(this.model.root);
      else return;
      event.preventDefault();
      document.querySelector("[data-say]").textContent = this.part("detail").textContent;
    }

    listen() {
      const boxOf = (event) => event.target.box;
      this.stage.addEventListener("click", (event) => {
        const box = boxOf(event);
        if (box && !box.fold) this.go(box.at);
      });
      this.stage.addEventListener("pointermove", (event) => {
        const box = boxOf(event);
        if (box) this.part("detail").textContent = this.describe(box);
      });
      this.stage.addEventListener("keydown", (event) => this.press(event));
      this.part("find").addEventListener("input", (event) => {
        this.find = event.target.value.trim();
        this.moved = true;
        if (this.model) this.draw();
      });
      this.part("colour").addEventListener("change", (event) => {
        this.colour = event.target.value;
        this.draw();
      });
      this.part("reset").addEventListener("click", () => {
        this.find = this.part("find").value = "";
        this.go(this.model.root);
      });
      for (const link of this.panel.querySelectorAll("[data-flame-kind]")) {
        link.addEventListener("click", (event) => {
          if (!this.data || "reload" in link.dataset || event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          event.stopPropagation();
          this.zoom = NaN;
          this.moved = true;
          this.show(link.dataset.flameKind);
        });
      }
      new ResizeObserver(() => {
        if (this.model && this.stage.clientWidth !== this.width) this.draw();
      }).observe(this.stage);
    }
  }

  // Loaded only when about to be seen: a page of numbers does not wait for it.
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      new Graph(target).load();
    }
  }, { rootMargin: "400px" });

  function watch() {
    for (const panel of document.querySelectorAll("[data-flamegraph]:not([data-watched])")) {
      panel.dataset.watched = "";
      seen.observe(panel);
    }
  }

  document.addEventListener("htmx:after:swap", watch);
  watch();
})();
