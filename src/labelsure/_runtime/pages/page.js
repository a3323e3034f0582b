"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const share = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));
  const count = (value) => value.toLocaleString("en");

  // Makes an element; texts are always texts, never HTML.
  const make = (name, attributes = {}, ...children) => {
    const isSvg = ["svg", "line", "path", "circle", "text", "title", "g"].includes(name);
    const element = isSvg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  // ---- What to accept -------------------------------------------------------------------------
  const setUpAcceptance = () => {
    const accept = data.acceptance, slider = find("threshold"), choice = find("metric");
    const last = accept.thresholds.length - 1;
    slider.max = last;
    for (const metric of data.metrics) choice.append(make("option", { value: metric.name }, metric.title));
    choice.value = data.metric.name;

    const series = () => accept.accuracy[choice.value];
    const x = (coverage) => 60 + 520 * coverage;

    const drawChart = (now) => {
      const { values } = series();
      // The axis begins below the lowest value, so that small differences can be seen.
      const lowest = Math.min(...values.filter((value, i) => accept.n[i]));
      const start = Math.max(0, Math.floor(10 * lowest - 0.5) / 10), height = 1 - start;
      const y = (accuracy) => 260 - (240 * (accuracy - start)) / height;
      const svg = make("svg", { viewBox: "0 -16 600 328", role: "img",
        "aria-label": `Mean accuracy of the accepted against their share; at the chosen threshold ${share(values[now])} at ${share(accept.n[now] / accept.n[0])}.` });
      for (let i = 0; i <= 5; i += 1) {
        const part = i / 5;
        const level = start + part * height;
        svg.append(make("line", { class: "grid", x1: 60, x2: 580, y1: y(level), y2: y(level) }));
        svg.append(make("text", { x: 52, y: y(level) + 4, "text-anchor": "end" }, String(Number(level.toFixed(2)))));
        svg.append(make("text", { x: x(part), y: 278, "text-anchor": "middle" }, String(part)));
      }
      svg.append(make("line", { class: "axis", x1: 60, x2: 580, y1: 260, y2: 260 }));
      svg.append(make("text", { class: "title", x: 320, y: 304, "text-anchor": "middle" }, "share accepted"));
      svg.append(make("text", { class: "title", x: 20, y: 0 }, "mean accuracy"));
      const points = values.map((value, i) => (accept.n[i] ? `${x(accept.n[i] / accept.n[0]).toFixed(1)},${y(value).toFixed(1)}` : null)).filter(Boolean);
      svg.append(make("path", { class: "curve", d: `M${points.join("L")}` }));
      const marked = accept.policy;
      if (marked !== null && accept.n[marked]) {
        const at = x(accept.n[marked] / accept.n[0]);
        svg.append(make("line", { class: "promise", x1: at, x2: at, y1: 20, y2: 260 }));
        svg.append(make("text", { x: at + (at > 420 ? -6 : 6), y: 252, "text-anchor": at > 420 ? "end" : "start" }, data.policy.guaranteed ? "guaranteed" : "policy"));
      }
      if (accept.n[now]) svg.append(make("circle", { class: "here", cx: x(accept.n[now] / accept.n[0]), cy: y(values[now]), r: 7 }));
      find("acceptance-chart").replaceChildren(svg);
    };

    const show = () => {
      const now = Number(slider.value), n = accept.n[now], all = accept.n[0], { values, source } = series();
      find("threshold-value").textContent = share(accept.thresholds[now]);
      slider.setAttribute("aria-valuetext", `threshold ${share(accept.thresholds[now])}, ${count(n)} of ${count(all)} accepted`);
      find("accepted-share").firstChild.textContent = `${((100 * n) / all).toFixed(1)}%`;
      find("accepted-count").textContent = `${count(n)} of ${count(all)}`;
      find("referred-count").textContent = count(all - n);
      find("accepted-accuracy").firstChild.textContent = n ? share(values[now]) : "–";
      find("accepted-source").textContent = source;
      drawChart(now);
    };
    slider.value = accept.policy === null ? 0 : accept.policy;
    slider.addEventListener("input", show);
    choice.addEventListener("change", () => { show(); showInstances(); });
    const button = find("to-guarantee");
    if (button) button.addEventListener("click", () => { slider.value = accept.policy; show(); });
    show();
  };

  // ---- Single predictions ---------------------------------------------------------------------
  const names = data.explorer ? data.explorer.labels : [];
  const listed = (labels) => labels.map((label) => names[label]).join(", ") || "no label";
  let chosen = null;

  const tags = (instance) => {
    const truth = instance.truth ? new Set(instance.truth) : null, predicted = new Set(instance.predicted);
    const row = make("p");
    for (const label of instance.predicted) {
      const wrong = truth && !truth.has(label);
      row.append(make("span", { class: wrong ? "tag added" : "tag" }, names[label] + (wrong ? " (not true)" : "")));
    }
    if (truth) for (const label of instance.truth) if (!predicted.has(label)) row.append(make("span", { class: "tag missed" }, `${names[label]} (missed)`));
    if (!row.children.length) row.append("no label");
    return row;
  };

  const showDetail = (instance) => {
    const metric = find("metric").value, title = data.metrics.find((m) => m.name === metric).title;
    const at = data.metrics.findIndex((m) => m.name === metric);
    const bars = make("div", { class: "bars" });
    for (const [label, p] of instance.probabilities) {
      const off = instance.predicted.includes(label) ? "" : "off";
      const bar = make("i");
      bar.style.width = `${100 * p}%`;
      bars.append(make("span", {}, names[label]), make("span", { class: off }, bar), make("span", {}, share(p, 2)));
    }
    const body = make("tbody");
    for (const [labels, probability, expected] of instance.best) {
      body.append(make("tr", {}, make("td", {}, listed(labels)), make("td", {}, share(probability)), make("td", {}, share(expected[at]))));
    }
    const head = make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "labelset"), make("th", { scope: "col" }, "probability"), make("th", { scope: "col" }, `expected ${title}`)));
    const parts = [
      make("h3", {}, instance.id), tags(instance),
      make("p", {}, `Estimated accuracy ${share(instance.estimated)}; ${instance.advice}${instance.reason ? `: ${instance.reason}` : ""}.`),
      ...(instance.possible ? [make("p", {}, `Certain: ${listed(instance.certain)}. Possible beside them: ${listed(instance.possible)}.`)] : []),
      make("h3", {}, "Most probable labelsets"), make("table", {}, head, body),
      make("h3", {}, "Probability of each label"), bars,
    ];
    if (instance.open) {
      const left = `${instance.open.length ? `Better left open: ${listed(instance.open)}.` : "No label is better left open."} Decided: ${listed(instance.decided)}.`;
      parts.splice(3, 0, make("p", {}, left));
    }
    if (instance.n_more) parts.push(make("p", {}, `${count(instance.n_more)} less probable labels are not shown.`));
    find("detail").replaceChildren(...parts);
  };

  const wanted = () => {
    const text = find("search").value.trim().toLowerCase(), kind = find("show").value, order = find("order").value;
    const kept = data.explorer.instances.filter((instance) => {
      if (kind === "accepted" && instance.advice !== "accept") return false;
      if (kind === "referred" && instance.advice !== "refer") return false;
      if (kind === "wrong" && instance.is_exact) return false;
      if (!text) return true;
      const labels = instance.truth ? instance.predicted.concat(instance.truth) : instance.predicted;
      return instance.id.toLowerCase().includes(text) || labels.some((label) => names[label].toLowerCase().includes(text));
    });
    if (order !== "row") kept.sort((a, b) => (order === "doubt" ? a.estimated - b.estimated : b.estimated - a.estimated));
    return kept;
  };

  const N_ROWS = 200;
  const showInstances = () => {
    const kept = wanted(), body = document.querySelector("#instances tbody"), rows = [];
    for (const instance of kept.slice(0, N_ROWS)) {
      const button = make("button", { type: "button" }, instance.id);
      const row = make("tr", instance === chosen ? { class: "chosen" } : {}, make("td", {}, button), make("td", {}, listed(instance.predicted)),
        make("td", {}, share(instance.estimated)), make("td", {}, instance.advice));
      button.addEventListener("click", () => {
        document.querySelectorAll("#instances tr.chosen").forEach((old) => old.classList.remove("chosen"));
        row.classList.add("chosen");
        chosen = instance;
        showDetail(instance);
      });
      rows.push(row);
    }
    body.replaceChildren(...rows);
    const first = kept.length > N_ROWS ? `, the first ${N_ROWS} are listed` : "";
    find("found").textContent = `${count(kept.length)} found${first}`;
    if (chosen) showDetail(chosen);
  };

  if (data.batch) {
    setUpAcceptance();
    for (const [id, event] of [["search", "input"], ["order", "change"], ["show", "change"]]) find(id).addEventListener(event, showInstances);
    showInstances();
    const first = document.querySelector("#instances tbody button");
    if (first) first.click(); // an example of what a click shows
  }
})();
