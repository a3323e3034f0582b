"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const share = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));
  const count = (value) => value.toLocaleString("en");

  // Makes an element; texts are always texts, never HTML.
  const make = (name, attributes = {}, ...children) => {
    const isSvg = ["svg", "line", "path", "circle", "text"].includes(name);
    const element = isSvg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  // ---- Tables that sort by a click on a column's head -----------------------------------------
  const valueOf = (cell) => {
    const text = cell.dataset.value ?? cell.textContent.trim();
    const number = Number(text.replaceAll(",", ""));
    return text === "" || Number.isNaN(number) ? text.toLowerCase() : number;
  };
  const sortBy = (table, place, descending) => {
    const body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => [valueOf(row.cells[place]), row]);
    keyed.sort(([a], [b]) => {
      const order = typeof a === typeof b ? (a > b) - (a < b) : typeof a === "number" ? -1 : 1;
      return descending ? -order : order;
    });
    body.append(...keyed.map(([, row]) => row));
    [...table.tHead.rows[0].cells].forEach((head, at) => head.setAttribute("aria-sort", at !== place ? "none" : descending ? "descending" : "ascending"));
  };
  const makeSortable = (table) => {
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      const button = make("button", { type: "button", class: "sort" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sortBy(table, place, head.getAttribute("aria-sort") === "ascending"));
    });
  };
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  if (!data.batch) return;

  // ---- Single predictions ---------------------------------------------------------------------
  const { instances, columns } = data.explorer;
  const listed = (labels) => labels.join(", ") || "no label";
  const body = find("instances").tBodies[0];
  const asSet = (labels) => new Set(labels ?? []);

  const showLabels = (instance) => {
    const cell = make("td", { class: "labels", "data-value": listed(instance.predicted) });
    const truth = asSet(instance.truth), predicted = asSet(instance.predicted);
    const add = (label, kind, said) => cell.append(make("span", { class: `tag ${kind}` }, label, ...(said ? [make("span", { class: "said" }, said)] : [])), " ");
    for (const label of predicted) {
      if (!instance.truth) add(label, "", "");
      else if (truth.has(label)) add(label, "right", ", true");
      else add(label, "added", ", not true");
    }
    for (const label of truth) if (!predicted.has(label)) add(label, "missed", ", missed");
    if (!predicted.size) cell.prepend("no label ");
    return cell;
  };

  const sayRunnerUp = (instance) => {
    if (!instance.runner_up) return "none";
    const own = asSet(instance.predicted), other = asSet(instance.runner_up);
    const gone = [...own].filter((label) => !other.has(label)), added = [...other].filter((label) => !own.has(label));
    const parts = [];
    if (gone.length) parts.push(`without ${listed(gone)}`);
    if (added.length) parts.push(`with ${listed(added)}`);
    const chance = (p) => (p >= 0.005 || p === 0 ? share(p, 2) : p.toExponential(0));
    return `${parts.join(", ")} (${chance(instance.runner_up_probability)}; predicted ${chance(instance.probability)})`;
  };

  const showDetail = (instance) => {
    const bars = make("div", { class: "bars" });
    for (const [label, p] of instance.probabilities) {
      const bar = make("i");
      bar.style.width = `${100 * p}%`;
      bars.append(make("span", {}, label), make("span", { class: instance.predicted.includes(label) ? "" : "off" }, bar), make("span", {}, share(p, 2)));
    }
    const detail = make("div", { class: "detail" }, make("p", {}, "Probability of each label by the classifier; predicted ones in colour."), bars);
    if (instance.n_more) detail.append(make("p", {}, `${count(instance.n_more)} less probable labels are not shown.`));
    if (instance.possible) detail.append(make("p", {}, `Certain: ${listed(instance.certain)}. Possible beside them: ${listed(instance.possible)}.`));
    if (instance.open) detail.append(make("p", {}, `${instance.open.length ? `Better left open: ${listed(instance.open)}.` : "No label is better left open."} Decided: ${listed(instance.decided)}.`));
    return detail;
  };

  const rows = new Map();
  for (const instance of instances) {
    const opener = make("button", { type: "button", class: "open", "aria-expanded": "false" }, instance.id);
    const first = make("td", { "data-value": instance.id, class: "id" }, opener);
    opener.addEventListener("click", () => {
      const isOpen = opener.getAttribute("aria-expanded") === "true";
      opener.setAttribute("aria-expanded", String(!isOpen));
      if (isOpen) predicted.querySelector(".detail").remove();
      else predicted.append(showDetail(instance));
    });
    const predicted = showLabels(instance);
    const row = make("tr", {}, first, ...(instance.shown ?? []).map((text) => make("td", { class: "input" }, text)), predicted,
      make("td", {}, sayRunnerUp(instance)), make("td", { class: "figure" }, share(instance.estimated)), make("td", { class: "verdict" }));
    rows.set(row, instance);
    body.append(row);
  }
  for (const label of [...new Set(instances.flatMap((i) => [...i.predicted, ...(i.truth ?? [])]))].sort()) find("label").append(make("option", {}, label));

  const searched = (instance) => [instance.id, ...(instance.shown ?? []), ...instance.predicted, ...(instance.truth ?? [])].join("\n").toLowerCase();
  let now = 0; // the slider's threshold
  const isRight = (instance) => instance.truth.length === instance.predicted.length && instance.truth.every((label) => instance.predicted.includes(label));
  const filter = () => {
    const text = find("search").value.trim().toLowerCase(), label = find("label").value, verdict = find("verdict").value;
    let n = 0;
    for (const [row, instance] of rows) {
      const kept = (!text || searched(instance).includes(text))
        && (label === "" || [...instance.predicted, ...(instance.truth ?? [])].includes(label))
        && (!verdict || (["right", "wrong"].includes(verdict) ? isRight(instance) === (verdict === "right") : row.lastChild.textContent === verdict));
      row.hidden = !kept;
      n += kept;
    }
    find("found").textContent = `${count(n)} of ${count(rows.size)} shown`;
  };
  for (const [id, event] of [["search", "input"], ["label", "change"], ["verdict", "change"]]) find(id).addEventListener(event, filter);

  // A text that a spreadsheet would compute gets an apostrophe before it.
  const asCell = (value) => {
    const isFormula = /^[\t\r\n]|^[\p{Cc}\p{Cf}\p{Z}]*[=+\-@﹢﹣﹦﹫＋－＝＠]/u.test(value);
    const text = typeof value === "number" ? String(value) : isFormula ? `'${value}` : value;
    return /[",\n\r;]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  find("download").addEventListener("click", () => {
    const hasTruth = data.batch.has_truth;
    const lines = [["id", ...columns, "predicted", "runner_up", "estimated", "verdict", ...(hasTruth ? ["truth"] : [])]];
    for (const row of body.rows) {
      if (row.hidden) continue;
      const i = rows.get(row);
      lines.push([i.id, ...(i.shown ?? []), i.predicted.join(";"), (i.runner_up ?? []).join(";"), i.estimated, row.lastChild.textContent, ...(hasTruth ? [i.truth.join(";")] : [])]);
    }
    const text = lines.map((line) => line.map(asCell).join(",")).join("\r\n");
    const address = URL.createObjectURL(new Blob(["\ufeff", text, "\r\n"], { type: "text/csv" }));
    make("a", { href: address, download: "predictions.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });

  // ---- What to accept -------------------------------------------------------------------------
  const accept = data.acceptance, slider = find("threshold"), between = find("between"), all = data.batch.n;
  const stops = Object.keys(accept.stops).map(Number);
  const places = () => (between && !between.checked ? stops : accept.thresholds.map((_, i) => i));

  const drawChart = () => {
    const box = find("acceptance-chart"), width = Math.max(box.clientWidth, 280), height = 300, left = 48, right = width - 12, base = height - 48;
    const curves = [["estimated", accept.estimated], ...(accept.actual ? [["actual", accept.actual]] : [])];
    const isDrawn = (i) => accept.n[i] >= Math.min(10, all); // a mean of fewer is mostly chance
    const seen = curves.flatMap(([, values]) => values.filter((_, i) => isDrawn(i)));
    const least = Math.min(...seen), most = Math.max(...seen), gap = [0.01, 0.02, 0.05, 0.1, 0.2].find((size) => (most - least) / size <= 5) ?? 0.25;
    const low = Math.max(0, Math.floor(least / gap) * gap), high = Math.max(low + gap, Math.min(1, Math.ceil(most / gap) * gap));
    const x = (i) => left + ((right - left) * accept.n[i]) / all, y = (value) => base - ((base - 16) * (value - low)) / (high - low);
    const title = `mean ${data.metric} of the accepted`;
    const svg = make("svg", { width, height, role: "img", "aria-label": `${title} against the share accepted; at the slider ${share(accept.estimated[now])} estimated at ${share(accept.n[now] / all)}` });
    for (let value = low; value < high + gap / 2; value += gap) {
      svg.append(make("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) }), make("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, String(Number(value.toFixed(2)))));
    }
    for (let i = 0; i <= 5; i += 1) svg.append(make("text", { x: left + ((right - left) * i) / 5, y: base + 18, "text-anchor": i < 5 ? "middle" : "end" }, `${20 * i}%`));
    svg.append(make("line", { class: "axis", x1: left, x2: right, y1: base, y2: base }), make("text", { class: "title", x: (left + right) / 2, y: height - 8, "text-anchor": "middle" }, "share accepted"));
    for (const [kind, values] of curves) {
      const points = values.map((value, i) => (isDrawn(i) ? `${x(i).toFixed(1)},${y(value).toFixed(1)}` : null)).filter(Boolean);
      svg.append(make("path", { class: `curve ${kind}`, d: `M${points.join("L")}` }));
    }
    if (accept.own !== null) svg.append(make("line", { class: "rule", x1: x(accept.own), x2: x(accept.own), y1: 16, y2: base }));
    if (isDrawn(now)) svg.append(make("circle", { class: "here", cx: x(now), cy: y(accept.estimated[now]), r: 7 }));
    box.replaceChildren(svg);
  };

  const show = () => {
    now = places()[Number(slider.value)];
    const n = accept.n[now], known = accept.stops[now], threshold = n ? share(accept.thresholds[now]) : "above all";
    const holds = known ? known.holds : accept.elsewhere;
    find("threshold-value").textContent = threshold;
    slider.setAttribute("aria-valuetext", `threshold ${threshold}, ${count(n)} of ${count(all)} accepted. ${holds}`);
    find("holds").textContent = holds;
    find("accepted-share").firstChild.textContent = `${((100 * n) / all).toFixed(1)}%`;
    find("accepted-count").textContent = `${count(n)} of ${count(all)} rows`;
    find("referred-count").textContent = count(all - n);
    find("accepted-estimated").firstChild.textContent = n ? share(accept.estimated[now]) : "–";
    find("accepted-interval").textContent = n && known && known.interval ? `interval ${share(known.interval[0])} to ${share(known.interval[1])}` : "";
    if (accept.actual) find("accepted-actual").firstChild.textContent = n ? share(accept.actual[now]) : "–";
    for (const [row, instance] of rows) {
      const verdict = instance.step >= now ? "accept" : "refer";
      row.lastChild.textContent = verdict;
      row.lastChild.className = `verdict ${verdict}`;
    }
    filter();
    drawChart();
  };
  const goTo = (threshold) => {
    const found = places();
    slider.max = found.length - 1;
    slider.value = Math.max(0, found.findLastIndex((place) => place <= threshold));
    show();
  };
  slider.addEventListener("input", show);
  if (between) between.addEventListener("change", () => goTo(now));
  const button = find("to-own");
  if (button) button.addEventListener("click", () => goTo(accept.own));
  addEventListener("resize", drawChart);
  goTo(accept.own ?? accept.n.length - 1);
  sortBy(find("instances"), find("instances").tHead.rows[0].cells.length - 2, false);
})();
