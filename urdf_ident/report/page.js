// Sorts a table by the column whose head is clicked.
document.querySelectorAll("table.sortable").forEach(function (table) {
  table.querySelectorAll("th").forEach(function (head, column) {
    var up = true;
    head.querySelector("button").addEventListener("click", function () {
      var body = table.tBodies[0], value = function (row) { var cell = row.cells[column], v = cell.dataset.v; return v === undefined ? cell.textContent : v === "inf" ? Infinity : v === "-inf" ? -Infinity : parseFloat(v); };
      var rows = Array.from(body.rows).sort(function (a, b) { var x = value(a), y = value(b); return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1); });
      up = !up; rows.forEach(function (row) { body.appendChild(row); });
    });
  });
});

// Shows the values of lines under the pointer. Charts over time have one axis: dragging zooms into all, a double click shows all.
document.querySelectorAll(".grid").forEach(function (section) {
  const pair = text => text.split(" ").map(Number), timed = section.classList.contains("time");
  const charts = Array.from(section.querySelectorAll(".panel"), function (panel) {
    const [left, top, right, bottom] = pair(panel.dataset.box), [first, last] = pair(panel.dataset.x), [low, high] = pair(panel.dataset.y);
    return { panel, picture: panel.ownerSVGElement, left, top, right, bottom, first, last, low, high, from: first, to: last };
  }).filter(chart => chart.panel.querySelector("[data-label]"));
  const tip = section.appendChild(document.createElement("output"));
  tip.className = "tip";
  tip.hidden = true;

  const short = (value, digits) => parseFloat(value.toPrecision(digits)).toString().replace("-", "−");
  const place = (chart, value) => chart.left + (value - chart.from) / (chart.to - chart.from) * (chart.right - chart.left);
  const value = (chart, x) => chart.from + (x - chart.left) / (chart.right - chart.left) * (chart.to - chart.from);
  const pointer = (picture, event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
  const within = (chart, point) => point.x >= chart.left && point.x <= chart.right && point.y >= chart.top && point.y <= chart.bottom;
  const created = (chart, name, attributes) => {
    const element = chart.panel.appendChild(document.createElementNS("http://www.w3.org/2000/svg", name));
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    return element;
  };

  // the value of a line at x, from its nearest point; nothing where none is near
  function read(chart, line, x) {
    line.points = line.points || line.getAttribute("d").slice(1).split(/[ML]/).map(pair);
    const at = chart.left + (x - chart.first) / (chart.last - chart.first) * (chart.right - chart.left);
    const [px, py] = line.points.reduce((best, point) => Math.abs(point[0] - at) < Math.abs(best[0] - at) ? point : best);
    return Math.abs(px - at) > 2 ? null : chart.low + (chart.bottom - py) / (chart.bottom - chart.top) * (chart.high - chart.low);
  }

  function clear() {
    tip.hidden = true;
    section.querySelectorAll(".at").forEach(line => line.remove());
  }

  function show(chart, x, event) {
    clear();
    const lines = [short(x, 5)];
    for (const other of charts.filter(other => timed || other === chart)) {
      created(other, "path", { class: "at", d: `M${place(other, x)} ${other.top}V${other.bottom}` });
      if (other.picture !== chart.picture) continue;
      for (const line of other.panel.querySelectorAll("[data-label]")) {
        const y = read(other, line, x);
        if (y !== null) lines.push(`${line.dataset.label}  ${short(y, 3)}`);
      }
    }
    tip.textContent = lines.join("\n");
    tip.hidden = false;
    tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 4)}px`;
    tip.style.top = `${event.clientY + 14}px`;
  }

  function zoom(from, to) {
    for (const chart of charts) {
      const { left, right, top, bottom, first, last } = chart, scale = (last - first) / (to - from);
      chart.from = from;
      chart.to = to;
      const begin = left + (from - first) / (last - first) * (right - left);
      chart.panel.querySelector(".marks").setAttribute("transform", `translate(${left - scale * begin} 0) scale(${scale} 1)`);
      const rough = (to - from) / 5, decade = 10 ** Math.floor(Math.log10(rough)), step = decade * [1, 2, 5, 10].find(k => k * decade >= rough);
      const ticks = [], numbers = chart.panel.querySelector(".numbers"), labelled = numbers.childElementCount || numbers.dataset.used;
      for (let k = Math.ceil(from / step); k * step <= to; k++) ticks.push(k * step);
      chart.panel.querySelector(".upright").setAttribute("d", ticks.map(tick => `M${place(chart, tick)} ${top}V${bottom}`).join(""));
      if (!labelled) continue;
      numbers.dataset.used = "yes";
      numbers.replaceChildren(...ticks.map(tick => {
        const text = created(chart, "text", { x: place(chart, tick), y: bottom + 12 });
        text.textContent = parseFloat(tick.toPrecision(9)).toString().replace("-", "−");
        return text;
      }));
    }
  }

  let begun = null;
  for (const picture of new Set(charts.map(chart => chart.picture))) {
    const own = charts.filter(chart => chart.picture === picture);
    picture.addEventListener("pointermove", function (event) {
      const point = pointer(picture, event), chart = begun ? begun.chart : own.find(chart => within(chart, point));
      if (!chart) return clear();
      const x = Math.min(Math.max(point.x, chart.left), chart.right);
      if (begun && begun.chart.picture === picture) {
        begun.part.setAttribute("x", Math.min(x, begun.x));
        begun.part.setAttribute("width", Math.abs(x - begun.x));
        begun.end = x;
      }
      show(chart, value(chart, x), event);
    });
    picture.addEventListener("pointerleave", () => begun || clear());
    if (!timed) continue;
    picture.addEventListener("pointerdown", function (event) {
      const point = pointer(picture, event), chart = own.find(chart => within(chart, point));
      if (!chart) return;
      picture.setPointerCapture(event.pointerId);
      const part = created(chart, "rect", { class: "part", x: point.x, width: 0, y: chart.top, height: chart.bottom - chart.top });
      begun = { chart, part, x: point.x, end: point.x };
    });
    picture.addEventListener("pointerup", function () {
      if (!begun) return;
      const { chart, part, x, end } = begun, ends = [value(chart, Math.min(x, end)), value(chart, Math.max(x, end))];
      part.remove();
      begun = null;
      if (Math.abs(end - x) > 4) zoom(...ends);
    });
    picture.addEventListener("dblclick", () => zoom(own[0].first, own[0].last));
  }
});
