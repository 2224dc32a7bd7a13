"use strict";
// The chart of a board: what every defense keeps on the clean graph, under transferred attacks and in the worst case.
const drawDumbbells = (() => {
  const SPACE = "http://www.w3.org/2000/svg";
  const [ROW, HEAD, FOOT, MOST] = [21, 24, 30, 12];
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
    made.append(...children);
    return made;
  }
  const cut = (text, most) => (text.length > most ? text.slice(0, most - 1) + "\u2026" : text);
  const percent = (share) => (100 * share).toFixed(1) + " %";

  function mark(kind, x, y) {
    const [shape] = KINDS[kind];
    const look = { class: "mark " + kind };
    if (shape === "circle") return svg("circle", { ...look, cx: x, cy: y, r: 5 });
    if (shape === "square") return svg("rect", { ...look, x: x - 4.5, y: y - 4.5, width: 9, height: 9 });
    return svg("path", { ...look, d: "M" + x + "," + (y - 6) + "l6,6l-6,6l-6,-6z" });
  }

  // rows: [{ name, points: { clean: share, weighted: share, ... } }], the best first
  return function draw(rows, wide, reference) {
    const shown = rows.slice(0, MOST);
    const kinds = Object.keys(KINDS).filter((kind) => shown.some((row) => row.points[kind] !== undefined));
    if (!shown.length || !kinds.length) return null;
    const left = Math.min(130, wide * 0.3);
    const right = wide - 14;
    const high = HEAD + ROW * shown.length + FOOT;
    const x = (share) => left + share * (right - left);
    const text = (at, up, anchor, words, look) => svg("text", { x: at, y: up, "text-anchor": anchor, ...(look ? { class: look } : {}) }, words);
    const lines = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
      svg("path", { class: "grid", d: "M" + x(share) + "," + (HEAD - 4) + "V" + (high - FOOT) }),
      text(x(share), high - FOOT + 14, share === 1 ? "end" : "middle", 100 * share + (share === 1 ? " %" : "")),
    ]);
    if (reference) {
      lines.push(svg("path", { class: "reference", d: "M" + x(reference.share) + "," + (HEAD - 4) + "V" + (high - FOOT) }),
        text(Math.min(x(reference.share), right - 40), HEAD - 9, "middle", reference.name + " " + percent(reference.share), "reference"));
    }
    const body = shown.map((row, place) => {
      const y = HEAD + ROW * (place + 0.5);
      const values = kinds.filter((kind) => row.points[kind] !== undefined).map((kind) => [kind, row.points[kind]]);
      const shares = values.map(([, share]) => share);
      const said = row.name + ": " + values.map(([kind, share]) => KINDS[kind][2] + " " + percent(share)).join(", ");
      return svg("g", {}, svg("title", {}, said), text(left - 8, y + 4, "end", cut(row.name, Math.floor(left / 7.5))),
        svg("path", { class: "line", d: "M" + x(Math.min(...shares)) + "," + y + "H" + x(Math.max(...shares)) }),
        ...values.map(([kind, share]) => mark(kind, x(share), y)));
    });
    const label = "Accuracy of " + shown.length + " defenses: " + kinds.map((kind) => KINDS[kind][2]).join(", ") + "; the numbers are in the table below";
    const chart = svg("svg", { class: "dumbbells", viewBox: "0 0 " + wide + " " + high, width: wide, height: high, role: "img", "aria-label": label }, ...lines, ...body);
    return { chart, legend: kinds.map((kind) => [kind, ...KINDS[kind].slice(1)]), left: rows.length - shown.length };
  };
})();
