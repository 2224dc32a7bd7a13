"use strict";
// Every chart of the page as inline SVG: marks differ in shape as well as in colour, texts say the numbers.
const charts = (() => {
  const SPACE = "http://www.w3.org/2000/svg";
  const [ROW, HEAD, FOOT, MOST] = [21, 24, 30, 12];
  // dumbbells stand closer where there are many, down to the height of a letter
  const [BODY, CLOSEST] = [270, 15];
  const SHAPES = ["circle", "square", "diamond", "triangle", "cross", "down"];
  const COLOURS = 6;
  // by kind: shape, sign in the legend, words
  const KINDS = {
    clean: ["circle", "\u25CB", "clean"],
    weighted: ["diamond", "\u25C6", "transferred attacks"],
    white_box: ["circle", "\u25CF", "white-box"],
    worst_case: ["circle", "\u25CF", "worst case"],
    certified: ["square", "\u25A0", "certified"],
  };

  function svg(tag, attributes, ...children) {
    const made = document.createElementNS(SPACE, tag);
    for (const [label, value] of Object.entries(attributes)) made.setAttribute(label, value);
    made.append(...children.filter((child) => child !== null));
    return made;
  }
  const cut = (text, most) => (text.length > most ? text.slice(0, most - 1) + "\u2026" : text);
  const percent = (share) => (100 * share).toFixed(1) + " %";
  const at = (number) => Math.round(10 * number) / 10;
  const text = (x, y, anchor, words, look) => svg("text", { x: at(x), y: at(y), "text-anchor": anchor, ...(look ? { class: look } : {}) }, words);
  const path = (look, d) => svg("path", { class: look, d });
  function frame(look, wide, high, label, ...children) {
    return svg("svg", { class: look, viewBox: "0 0 " + wide + " " + high, width: wide, height: high, role: "img", "aria-label": label }, ...children);
  }
  function shape(kind, look, x, y, size) {
    const [a, b, r] = [at(x), at(y), size || 5];
    if (kind === "circle") return svg("circle", { class: look, cx: a, cy: b, r });
    if (kind === "square") return svg("rect", { class: look, x: at(x - r + 0.5), y: at(y - r + 0.5), width: 2 * r - 1, height: 2 * r - 1 });
    if (kind === "triangle") return path(look, "M" + a + "," + at(y - r) + "l" + r + "," + 2 * r + "h" + -2 * r + "z");
    if (kind === "down") return path(look, "M" + a + "," + at(y + r) + "l" + r + "," + -2 * r + "h" + -2 * r + "z");
    if (kind === "cross") return path(look, "M" + at(x - r) + "," + at(y - r) + "l" + 2 * r + "," + 2 * r + "m0," + -2 * r + "l" + -2 * r + "," + 2 * r);
    if (kind === "star") return path(look, "M" + a + "," + at(y - r - 2) + "l2,5l5,0l-4,4l2,5l-5,-3l-5,3l2,-5l-4,-4l5,0z");
    return path(look, "M" + a + "," + at(y - r - 1) + "l" + (r + 1) + "," + (r + 1) + "l" + -(r + 1) + "," + (r + 1) + "l" + -(r + 1) + "," + -(r + 1) + "z");
  }
  // which of many lines a mark belongs to: its colour and its shape
  const series = (place) => [SHAPES[Math.floor(place / COLOURS + place) % SHAPES.length], "mark c" + (place % COLOURS)];

  // rows: [{ name, points: { clean: share, weighted: share, ... }, kept }], the best first; a row to be kept is shown wherever it stands
  function dumbbells(all, wide, reference) {
    const rows = all.filter((row) => Object.keys(row.points).length);
    const room = BODY / CLOSEST;
    const last = rows.findIndex((row) => row.kept);
    const shown = last >= room ? [...rows.slice(0, room - 1), rows[last]] : rows.slice(0, room);
    const step = Math.max(CLOSEST, Math.min(ROW, BODY / shown.length));
    const kinds = Object.keys(KINDS).filter((kind) => shown.some((row) => row.points[kind] !== undefined));
    if (!shown.length || !kinds.length) return null;
    const left = Math.min(146, wide * 0.3);
    const right = wide - 14;
    const high = Math.round(HEAD + step * shown.length + FOOT);
    const x = (share) => left + share * (right - left);
    const lines = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
      path("grid", "M" + at(x(share)) + "," + (HEAD - 4) + "V" + (high - FOOT)),
      text(x(share), high - FOOT + 14, share === 1 ? "end" : "middle", 100 * share + (share === 1 ? " %" : "")),
    ]);
    if (reference) {
      lines.push(path("reference", "M" + at(x(reference.share)) + "," + (HEAD - 4) + "V" + (high - FOOT)),
        text(Math.min(x(reference.share), right - 40), HEAD - 9, "middle", reference.name + " " + percent(reference.share), "reference"));
    }
    const body = shown.map((row, place) => {
      const y = at(HEAD + step * (place + 0.5));
      const values = kinds.filter((kind) => row.points[kind] !== undefined).map((kind) => [kind, row.points[kind]]);
      const shares = values.map(([, share]) => share);
      const said = row.name + ": " + values.map(([kind, share]) => KINDS[kind][2] + " " + percent(share)).join(", ");
      return svg("g", {}, svg("title", {}, said), text(left - 8, y + 4, "end", cut(row.name, Math.floor((left - 8) / 7.5))),
        path("line", "M" + at(x(Math.min(...shares))) + "," + y + "H" + at(x(Math.max(...shares)))),
        ...values.map(([kind, share]) => shape(KINDS[kind][0], "mark " + kind, x(share), y)));
    });
    const label = "Accuracy of " + shown.length + " defenses: " + kinds.map((kind) => KINDS[kind][2]).join(", ") + "; the numbers are in the table below";
    return { chart: frame("dumbbells", wide, high, label, ...lines, ...body), legend: kinds.map((kind) => [kind, ...KINDS[kind].slice(1)]), shown: shown.length, of: rows.length };
  }

  // a plane with shares upwards; x is a scale with its ends and the words below it
  function plane(wide, high, scale, words) {
    const [left, right, top, bottom] = [46, wide - 12, 10, high - 38];
    const x = (value) => left + scale.place(value) * (right - left);
    const y = (share) => top + (1 - share) * (bottom - top);
    const parts = [...[0, 0.25, 0.5, 0.75, 1].flatMap((share) => [path("grid", "M" + left + "," + at(y(share)) + "H" + right), text(left - 5, y(share) + 4, "end", 100 * share + (share === 1 ? " %" : ""))]),
      ...scale.ticks.map((value) => text(x(value), bottom + 16, x(value) > right - 12 ? "end" : "middle", brief(value))),
      text((left + right) / 2, high - 5, "middle", words)];
    return { x, y, parts };
  }
  const brief = (value) => (value >= 1e6 ? value / 1e6 + "M" : value >= 1e4 ? value / 1e3 + "k" : String(Number(value.toPrecision(3))));
  function linear(values) {
    const high = Math.max(...values);
    const low = Math.min(0, ...values);
    return { place: (value) => (high > low ? (value - low) / (high - low) : 0.5), ticks: [...new Set([low, ...values])].sort((a, b) => a - b).filter((_, place, all) => all.length < 7 || place % Math.ceil(all.length / 6) === 0 || place === all.length - 1) };
  }
  // powers of ten, from the one below the least value to the one above the largest
  function decades(values) {
    const low = Math.floor(Math.log10(Math.min(...values)));
    const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
    const step = Math.ceil((high - low) / 6);
    return { place: (value) => (Math.log10(value) - low) / (high - low), ticks: Array.from({ length: high - low + 1 }, (_, place) => 10 ** (low + place)).filter((_, place) => place % step === 0) };
  }

  // lines: [{ name, points: [[x, share], ...] }]; a mark on every point, the names in the legend
  function lines(list, words, wide) {
    const shown = list.filter((line) => line.points.length).slice(0, MOST);
    if (!shown.length) return null;
    const high = 240;
    const { x, y, parts } = plane(wide, high, linear(shown.flatMap((line) => line.points.map(([value]) => value))), words);
    const body = shown.map((line, place) => {
      const [kind, look] = series(place);
      const points = line.points.map(([value, share]) => [x(value), y(share)]);
      const said = line.name + ": " + line.points.map(([value, share]) => percent(share) + " at " + brief(value)).join(", ");
      return svg("g", {}, svg("title", {}, said), path("line c" + (place % COLOURS), points.map(([a, b], at_) => (at_ ? "L" : "M") + at(a) + "," + at(b)).join("")), ...points.map(([a, b]) => shape(kind, look, a, b, 4)));
    });
    const label = "Accuracy over " + words + ": " + shown.map((line) => line.name + " from " + percent(line.points[0][1]) + " to " + percent(line.points[line.points.length - 1][1])).join("; ");
    return { chart: frame("curve", wide, high, label, ...parts, ...body), legend: shown.map((line, place) => [series(place), line.name]), left: list.length - shown.length };
  }
  // a mark for the legend of many lines
  const sign = ([kind, look]) => svg("svg", { class: "curve key", viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" }, shape(kind, look, 6, 6, 4));

  // points: [{ name, white, at: [cost, share] }], names beside the marks
  function scatter(points, words, wide) {
    if (!points.length) return null;
    const high = 260;
    const { x, y, parts } = plane(wide, high, decades(points.map((point) => point.at[0])), words);
    const places = points.map((point) => [x(point.at[0]), y(point.at[1])]);
    const taken = places.map(([a, b]) => [a - 6, b - 6, a + 6, b + 6]);
    const body = points.map((point, number) => {
      const [a, b] = places[number];
      const label = cut(point.name.replace(/ \(white-box\)$/, ""), 22); // colour and shape say that
      // a name stands beside its mark, or as near as no other name or mark is
      const boxes = [0, 1, 2, 3, 4].flatMap((far) => [-14 * far, 14 * far].flatMap((up) => [[9, up], [-9 - 7.3 * label.length, up]]))
        .map(([right, up]) => [a + right, b + up - 7, a + right + 7.3 * label.length, b + up + 6]).filter(([from, , to]) => from > 40 && to < wide);
      const box = boxes.find((one) => !taken.some((other) => one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3])) || boxes[0] || [a + 9, b, 0, 0];
      taken.push(box);
      const middle = box[1] + 7;
      const far = Math.abs(middle - b) > 16 ? path("grid", "M" + at(a) + "," + at(b) + "L" + at(box[0] > a ? box[0] - 2 : box[2]) + "," + at(middle)) : null;
      return svg("g", {}, far, svg("title", {}, point.name + ": leaves " + percent(point.at[1]) + " for " + brief(point.at[0]) + " CPU s"),
        shape(point.white ? "circle" : "diamond", "mark " + (point.white ? "white_box" : "weighted"), a, b), text(box[0], box[1] + 11, "start", label));
    });
    const label = "Accuracy that attacks leave over their CPU seconds: " + points.map((point) => point.name + " " + percent(point.at[1])).join(", ");
    return frame("curve", wide, high, label, ...parts, ...body);
  }

  // one small chart per defense: { name, clean: [...], weighted: [...], white_box: [...] } over bands of degrees
  function bands(row, names, wide) {
    const [high, left, top, bottom] = [130, 34, 20, 104];
    const kinds = ["clean", "weighted", "white_box"].filter((kind) => row[kind]);
    const x = (place) => left + ((place + 0.5) / names.length) * (wide - left - 6);
    const y = (share) => top + (1 - share) * (bottom - top);
    const every = Math.ceil(names.length / 5);
    const parts = [text(left, 12, "start", cut(row.name, 24), "title"),
      ...[0, 0.5, 1].flatMap((share) => [path("grid", "M" + left + "," + at(y(share)) + "H" + (wide - 6)), text(left - 4, y(share) + 4, "end", String(100 * share))]),
      ...names.map((band, place) => (place % every ? null : text(x(place), bottom + 14, "middle", band)))];
    const body = kinds.map((kind) => svg("g", {}, svg("title", {}, KINDS[kind][2] + ": " + row[kind].map((share, place) => percent(share) + " at degree " + names[place]).join(", ")),
      path("line " + kind, row[kind].map((share, place) => (place ? "L" : "M") + at(x(place)) + "," + at(y(share))).join("")),
      ...row[kind].map((share, place) => shape(KINDS[kind][0], "mark " + kind, x(place), y(share), 3))));
    const label = row.name + ", accuracy by degree: " + kinds.map((kind) => KINDS[kind][2] + " " + percent(row[kind][0]) + " at degree " + names[0] + ", " + percent(row[kind][names.length - 1]) + " at degree " + names[names.length - 1]).join("; ");
    return frame("curve bands", wide, high, label, ...parts, ...body);
  }

  // what became of the neighbourhood of one target; near.edges are kept, added and dropped ones
  function neighbourhood(near, wide, label) {
    const high = Math.round(0.62 * wide);
    const place = ([x, y]) => [20 + x * (wide - 40), 20 + (1 - y) * (high - 40)];
    const nodes = near.nodes.map(place);
    const edges = near.edges.flatMap((list, kind) => list.map(([one, other]) => path(["edge", "edge added", "edge dropped"][kind], "M" + nodes[one].map(at) + "L" + nodes[other].map(at))));
    const marks = near.nodes.map(([, , group, injected], node) => {
      const [x, y] = nodes[node];
      if (injected) return svg("g", {}, svg("title", {}, "injected node"), shape("star", "injected", x, y - 3, 5));
      const [kind, look] = group < 0 ? ["circle", "mark"] : series(group);
      const words = (node ? "neighbour" : "target, node " + near.target) + (group < 0 ? "" : ", class " + group);
      return svg("g", {}, svg("title", {}, words), shape(kind, look, x, y, node ? 6 : 9), node ? null : svg("circle", { class: "ring", cx: at(x), cy: at(y), r: 14 }));
    });
    return frame("near", wide, high, label, ...edges, ...marks);
  }

  // the strongest trial so far over what was spent: points are [seconds, share]
  function steps(points, label) {
    const [wide, high, left, bottom, top] = [420, 170, 44, 36, 10];
    const spent = points[points.length - 1][0];
    const x = (seconds) => at(left + (seconds / spent) * (wide - left - 10));
    const y = (share) => at(top + (1 - share) * (high - top - bottom));
    const line = points.map(([seconds, share], place) => (place ? "H" + x(seconds) + "V" : "M" + x(seconds) + ",") + y(share)).join("");
    return frame("curve", wide, high, label, ...[0, 0.5, 1].flatMap((share) => [path("grid", "M" + left + "," + y(share) + "H" + (wide - 10)), text(left - 5, y(share) + 4, "end", 100 * share + " %")]),
      path("line", line), text(left, high - bottom + 15, "start", "0"), text(wide - 10, high - bottom + 15, "end", spent.toPrecision(3)), text((wide + left) / 2, high - 5, "middle", "CPU seconds"));
  }

  return { dumbbells, lines, sign, scatter, bands, neighbourhood, steps, KINDS };
})();
