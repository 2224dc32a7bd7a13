"use strict";
(() => {
  const boards = JSON.parse(document.getElementById("data").textContent).boards;
  const STEPS = 17;
  // order and names of what the short table shows
  const SHORT = ["worst case", "white-box", "worst graph", "weighted", "certified"];
  const SHORT_LABELS = { weighted: "transfer" };
  const longer = (label) => (SHORT_LABELS[label] ? SHORT_LABELS[label] + " (" + label + ")" : label);
  const STRENGTHS = ["weighted", "average", "3-max"];
  // what names of defenses are put together from, said beside the table where a name has it
  const PARTS = { ln: "layer normalisation", at: "adversarial training", known: "hears nodes of the training graph only" };
  const METRICS = [
    ["accuracy", "accuracy (%)"],
    ["drop", "accuracy lost (points)"],
    ["changed", "predictions changed (%)"],
    ["difference", "ours minus paper (points)"],
  ];
  // places of a cell's parts, as grb.leaderboard.data writes them
  const [ATTACK, DEFENSE, MODE, WHITE, ACCURACY, CHANGED, DROP, PAPER, VALUES, SCORES, VICTIMS, EDITS, EXTRAS, CLAIM, SIGNER] =
    Array.from({ length: 15 }, (_, place) => place);
  const [MEAN, STD, LOW, HIGH, RUNS] = [0, 1, 2, 3, 4];

  const $ = (id) => document.getElementById(id);
  const state = { board: 0, mode: 0, metric: "accuracy", query: "", sort: { key: "s0", down: true }, tab: "board", all: false, record: "", paper: true, bars: true };
  const hidden = boards.map(() => ({ defenses: new Set(), attacks: new Set() }));
  const indexes = boards.map(() => null);
  let rows = [];
  let columns = [];

  // text only: nothing of the data is ever parsed as markup
  function el(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== undefined && value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }
  const name = (text) => el("bdi", { class: "name" }, text);
  const fixed = (share, digits) => (100 * share).toFixed(digits === undefined ? 1 : digits);
  const signed = (share, digits) => (share >= 0 ? "+" : "\u2212") + fixed(Math.abs(share), digits);
  const say = (sentence) => { $("live").textContent = sentence; };

  function cellAt(board, attack, defense, mode, white) {
    const own = boards[board];
    if (!indexes[board]) {
      indexes[board] = new Map(own.cells.map((cell) => [key(own, cell[ATTACK], cell[DEFENSE], cell[MODE], cell[WHITE]), cell]));
    }
    return indexes[board].get(key(own, attack, defense, mode, white));
  }
  function key(board, attack, defense, mode, white) {
    const width = Math.max(board.attacks.length, board.whiteBox.length);
    return ((mode * 2 + white) * width + attack) * board.defenses.length + defense;
  }

  function valueOf(board, cell, metric) {
    if (!cell) return null;
    if (metric === "accuracy") return cell[ACCURACY];
    const clean = !cell[WHITE] && cell[ATTACK] === board.clean;
    if (metric === "changed") return clean ? null : cell[CHANGED];
    if (metric === "drop") return clean ? null : cell[DROP];
    if (!cell[PAPER]) return null;
    const [mean, std, low, high, runs] = cell[ACCURACY];
    const by = cell[PAPER][0];
    return [mean - by, std, low === null ? null : low - by, high === null ? null : high - by, runs];
  }
  // the paper's number for what the cells show; for points lost, its own clean score minus its score under attack
  function paperOf(board, cell, metric) {
    if (!cell[PAPER] || (metric !== "accuracy" && metric !== "drop")) return null;
    if (metric === "accuracy") return cell[PAPER][0];
    const clean = board.clean < 0 ? null : cellAt(boards.indexOf(board), board.clean, cell[DEFENSE], cell[MODE], 0);
    return clean && clean[PAPER] ? clean[PAPER][0] - cell[PAPER][0] : null;
  }
  const hasPaper = (board) => board.cells.some((cell) => cell[PAPER]);
  const show = (value, digits) => (state.metric === "difference" ? signed(value, digits) : fixed(value, digits));
  const spread = (value, digits) => (value[RUNS] > 1 ? "\u00b1" + fixed(value[STD], digits) : "");

  // the board

  function columnsOf(board, at) {
    const [rank, label] = [{ key: "rank", label: "rank", kind: "rank" }, { key: "name", label: "defense", kind: "name" }];
    const sum = (place) => ({ key: "s" + place, label: board.summaries[place], kind: "sum", place });
    const measured = (place) => board.byDefense[state.mode].some((own) => own[place]);
    if (!state.all) {
      const shown = [rank, label];
      const clean = board.summaries.indexOf("clean");
      if (clean >= 0 && measured(clean)) shown.push(sum(clean));
      else if (board.clean >= 0) shown.push({ key: "a" + board.clean, label: "clean", kind: "heat", attack: board.clean, white: 0, cost: null });
      const lead = board.lead.filter((place) => place !== clean && (!place || measured(place)));
      lead.sort((one, other) => SHORT.indexOf(board.summaries[one]) - SHORT.indexOf(board.summaries[other]));
      lead.forEach((place) => shown.push({ ...sum(place), label: SHORT_LABELS[board.summaries[place]] || board.summaries[place] }));
      if (board.flags.some((flag) => flag.defenses.length)) shown.push({ key: "flags", label: "warnings", kind: "flags" });
      return shown.concat(vouched(board).filter((column) => column.kind !== "signer" || signers(board).some((signer) => signer !== "unsigned")));
    }
    const shown = [label, rank, sum(0)];
    board.attacks.forEach((label, attack) => {
      if (!hidden[at].attacks.has(label)) shown.push({ key: "a" + attack, label, kind: "heat", attack, white: 0, cost: board.cost[state.mode][attack] });
    });
    board.whiteBox.forEach((label, attack) => {
      if (!hidden[at].attacks.has(label + " (white-box)")) shown.push({ key: "w" + attack, label, note: "white-box", kind: "heat", attack, white: 1, cost: board.whiteCost[state.mode][attack] });
    });
    board.summaries.forEach((_, place) => { if (place && measured(place)) shown.push(sum(place)); });
    return shown.concat(vouched(board));
  }
  function vouched(board) {
    const shown = [];
    if (board.claims.defenses[state.mode].some(Boolean)) {
      shown.push({ key: "claimed", label: "claimed", kind: "claim", place: 0 }, { key: "found", label: "re-evaluated", kind: "claim", place: 1 });
    }
    shown.push({ key: "signer", label: "measured by", kind: "signer" });
    return shown;
  }

  const signers = (board) => distinct(board.measuredBy.defenses[state.mode].filter(Boolean));
  const warningsOf = (board, defense) => board.flags.filter((flag) => flag.defenses.includes(defense)).length;

  function sortValue(board, column, defense) {
    if (column.kind === "flags") return warningsOf(board, defense);
    if (column.kind === "name") return board.defenses[defense].toLowerCase();
    if (column.kind === "rank") {
      const places = board.ranks[state.mode][defense];
      return places ? places[0] * 1000 + places[1] : null;
    }
    if (column.kind === "signer") return (board.measuredBy.defenses[state.mode][defense] || "").toLowerCase();
    if (column.kind === "claim") {
      const claim = board.claims.defenses[state.mode][defense];
      return claim ? claim[column.place] : null;
    }
    const value = column.kind === "sum"
      ? board.byDefense[state.mode][defense][column.place]
      : valueOf(board, cellAt(state.board, column.attack, defense, state.mode, column.white), state.metric);
    return value ? value[MEAN] : null;
  }

  // the best value of a column, which is marked as in the paper; none where better and worse mean nothing
  function bestOf(board, column) {
    if (!["sum", "heat"].includes(column.kind) || (column.kind === "heat" && state.metric === "difference")) return null;
    const values = board.defenses.map((_, defense) => sortValue(board, column, defense)).filter((value) => value !== null);
    const least = column.kind === "heat" && state.metric !== "accuracy";
    return values.length > 1 ? (least ? Math.min(...values) : Math.max(...values)) : null;
  }

  function domainOf(board) {
    let [low, high] = [Infinity, -Infinity];
    for (const column of columns) {
      if (column.kind !== "heat") continue;
      for (let defense = 0; defense < board.defenses.length; defense += 1) {
        const value = valueOf(board, cellAt(state.board, column.attack, defense, state.mode, column.white), state.metric);
        if (value) { low = Math.min(low, value[MEAN]); high = Math.max(high, value[MEAN]); }
      }
    }
    if (low > high) return null;
    if (state.metric === "difference") {
      const reach = Math.max(Math.abs(low), Math.abs(high), 0.01);
      return { low: -reach, high: reach, prefix: "d" };
    }
    return even(low, high);
  }
  function even(least, most) {
    const low = Math.floor(least * 20) / 20;
    const high = Math.ceil(most * 20) / 20;
    return { low, high: high > low ? high : low + 0.05, prefix: "s" };
  }
  function sumDomain(board) {
    const means = board.byDefense[state.mode].flat().filter(Boolean).map((value) => value[MEAN]);
    return even(Math.min(...means, 1), Math.max(...means, 0));
  }
  function look(domain, share) {
    const part = (share - domain.low) / (domain.high - domain.low);
    return domain.prefix + Math.round(Math.min(1, Math.max(0, part)) * (STEPS - 1));
  }

  // the interval and the mean are backgrounds of the cell: elements of their own make sorting four times as slow
  function bar(made, domain, value) {
    const at = (share) => Math.min(1, Math.max(0, (share - domain.low) / (domain.high - domain.low)));
    const open = value[LOW] === null || value[HIGH] === null;
    const [low, high] = open ? [0, 1] : [at(value[LOW]), at(value[HIGH])];
    const wide = Math.max(high - low, 0.01);
    made.classList.add("bar");
    made.classList.toggle("open", open);
    // a background's place is a share of the room that it leaves
    made.style.setProperty("--low", (wide < 1 ? (100 * Math.min(low, 1 - wide)) / (1 - wide) : 0).toFixed(1) + "%");
    made.style.setProperty("--wide", (100 * wide).toFixed(1) + "%");
    made.style.setProperty("--mean", (100 * at(value[MEAN])).toFixed(1) + "%");
    return made;
  }

  function heatCell(board, column, defense, domain) {
    const cell = cellAt(state.board, column.attack, defense, state.mode, column.white);
    const value = valueOf(board, cell, state.metric);
    if (!cell || !value) return el("td", { class: "none", role: "gridcell", tabindex: "-1", "aria-label": "not measured" }, "\u2013");
    const printed = paperOf(board, cell, state.metric);
    const paper = printed === null ? null : el("small", { class: "paper" }, "paper " + fixed(printed));
    const made = el("td", { class: "heat " + look(domain, value[MEAN]), role: "gridcell", tabindex: "-1", "aria-haspopup": "dialog" },
      el("b", { class: column.best === value[MEAN] ? "best" : null }, show(value[MEAN])), " " + spread(value), paper);
    bar(made, domain, value);
    made.record = () => showCell(board, column, defense, cell);
    return made;
  }
  function sumCell(board, column, defense, sums) {
    const value = board.byDefense[state.mode][defense][column.place];
    if (!value) return el("td", { class: "none", role: "gridcell", tabindex: "-1", "aria-label": "not measured" }, "\u2013");
    const made = el("td", { class: "sum", role: "gridcell", tabindex: "-1", "aria-haspopup": "dialog" },
      el("b", { class: column.best === value[MEAN] ? "best" : null }, fixed(value[MEAN])), " " + spread(value));
    bar(made, sums, value);
    made.record = () => showMethod(board, defense);
    return made;
  }
  // what was claimed, marked if it differs from what was measured by more than its interval
  function claimText(claim, place) {
    if (!claim || claim[place] === null) return "\u2013";
    return fixed(claim[place]) + (place === 0 && claim[2] ? " \u26a0 differs" : "");
  }
  function claimCell(board, column, defense) {
    const claim = board.claims.defenses[state.mode][defense];
    const made = el("td", { class: claim ? "sum" : "none", role: "gridcell", tabindex: "-1", "aria-haspopup": "dialog" }, claimText(claim, column.place));
    made.record = () => showMethod(board, defense);
    return made;
  }
  function flagsCell(board, defense) {
    const count = warningsOf(board, defense);
    const made = el("td", { class: "sum flagged", role: "gridcell", tabindex: "-1", "aria-haspopup": "dialog", "aria-label": count + (count === 1 ? " warning" : " warnings") }, count ? "\u26a0 " + count : "");
    made.record = () => showMethod(board, defense);
    return made;
  }
  function signerCell(board, defense) {
    return el("td", { class: "text", role: "gridcell", tabindex: "-1" }, name(board.measuredBy.defenses[state.mode][defense] || "\u2013"));
  }
  function rowOf(board, defense, domain, sums) {
    const flagged = board.flags.some((flag) => flag.defenses.includes(defense));
    const cells = columns.map((column) => {
      if (column.kind === "name") {
        const head = el("th", { scope: "row", role: "rowheader", tabindex: "-1", "aria-haspopup": "dialog" }, name(board.defenses[defense]));
        if (flagged && state.all) head.append(" ", el("span", { title: "has a warning", role: "img", "aria-label": "has a warning" }, "\u26a0"));
        head.record = () => showMethod(board, defense);
        return head;
      }
      if (column.kind === "rank") {
        const places = board.ranks[state.mode][defense];
        const text = !places ? "\u2013" : places[0] === places[1] ? String(places[0]) : places[0] + "\u2013" + places[1];
        const made = el("td", { class: "sum", role: "gridcell", tabindex: "-1", "aria-haspopup": "dialog" }, text);
        made.record = () => showMethod(board, defense);
        return made;
      }
      if (column.kind === "flags") return flagsCell(board, defense);
      if (column.kind === "claim") return claimCell(board, column, defense);
      if (column.kind === "signer") return signerCell(board, defense);
      return column.kind === "sum" ? sumCell(board, column, defense, sums) : heatCell(board, column, defense, domain);
    });
    cells.forEach((cell, place) => { cell.dataset.label = columns[place].label; });
    return { defense, element: el("tr", { role: "row" }, ...cells) };
  }

  function headOf(board) {
    return el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...columns.map((column) => {
      const button = el("button", { type: "button", tabindex: "-1" }, name(column.label));
      if (column.note) button.append(el("small", null, column.note));
      if (column.kind === "heat" && column.cost !== null) button.append(el("small", { title: "CPU seconds of one run" }, column.cost.toPrecision(2) + " CPU s"));
      const flagged = column.kind === "heat" && !column.white && board.flags.some((flag) => flag.attacks.includes(column.attack));
      if (flagged) button.append(" ", el("span", { role: "img", "aria-label": "has a warning" }, "\u26a0"));
      button.addEventListener("click", () => sortBy(column.key));
      return el("th", { scope: "col", role: "columnheader", "data-key": column.key, "aria-sort": "none" }, button);
    })));
  }

  function footOf(board) {
    const lines = (state.all ? STRENGTHS : []).map((label, place) => ["attack's " + label, (attack) => {
      const value = board.byAttack[state.mode][attack][place];
      return value ? fixed(value[MEAN]) + " " + spread(value) : "\u2013";
    }]);
    return el("tfoot", { role: "rowgroup" }, ...lines.map(([label, text]) => el("tr", { role: "row" }, ...columns.map((column) => {
      if (column.kind === "name") return el("th", { scope: "row", role: "rowheader", tabindex: "-1" }, label);
      const filled = column.kind === "heat" && !column.white;
      return el("td", { role: "gridcell", tabindex: "-1" }, filled ? text(column.attack) : "");
    }))));
  }

  function draw() {
    const board = boards[state.board];
    if (state.metric === "difference" && !hasPaper(board)) state.metric = "accuracy";
    state.mode = Math.min(state.mode, board.modes.length - 1);
    columns = columnsOf(board, state.board);
    if (!columns.some((column) => column.key === state.sort.key)) state.sort = { key: "s0", down: true };
    for (const column of columns) column.best = bestOf(board, column);
    const domain = domainOf(board);
    const sums = sumDomain(board);
    rows = board.defenses.map((_, defense) => rowOf(board, defense, domain, sums));
    const table = $("board");
    table.classList.toggle("short", !state.all);
    table.replaceChildren(headOf(board), el("tbody", { role: "rowgroup" }), footOf(board));
    $("board-title").replaceChildren(name(board.title + ", " + board.modes[state.mode]));
    drawFacts(board);
    drawAnswers(board);
    drawChart(board);
    drawMore(board);
    drawFlags(board);
    drawLegend(domain);
    drawAttacks(board);
    order();
    filter();
    remember();
  }

  function drawFacts(board) {
    const meta = board.meta;
    const parts = [board.dataset, board.scenario, "recipe " + board.recipe];
    if (meta.repeats) parts.push(meta.repeats + (meta.repeats === 1 ? " repeat" : " repeats") + " of every attack");
    if (meta.victims) parts.push(meta.victims + (meta.victims === 1 ? " training" : " trainings") + " of every victim");
    if (meta.date) parts.push("measured " + meta.date);
    const by = signers(board);
    if (by.length === 1) parts.push(by[0] === "unsigned" ? "results unsigned" : "measured by " + by[0]);
    const line = $("board-facts");
    line.replaceChildren(name(parts.join(" \u00b7 ")));
    if (board.synthetic) line.append(" ", el("span", { class: "badge" }, "synthetic data"));
    if (meta.planned && meta.measured < meta.planned) {
      line.append(" ", el("span", { class: "badge" }, "incomplete: " + meta.measured + " of " + meta.planned + " measurements"));
    }
  }
  // commands stand between backticks
  const coded = (text) => text.split("`").map((part, place) => (place % 2 ? el("code", null, part) : sentence(part)));
  // from left to right whatever names are in it; a number stays with its sign
  const sentence = (text) => el("bdi", { class: "name", dir: "ltr" }, ...text.split(/(white-box|[\d.]+ %)/).map((part, place) => (place % 2 ? el("span", { class: "whole" }, part) : part)));
  // what is measured, by how much somebody wins, how sure that is, what the attacker may do, how to join
  const QUESTIONS = { measured: "What is measured?", margin: "By how much?", certainty: "Is it sure?", attacker: "What may the attacker do?", joining: "How do I add mine?" };
  function drawAnswers(board) {
    const { winner, ...others } = board.answers[state.mode];
    $("headline").replaceChildren(...coded(winner));
    $("answers").replaceChildren(...Object.entries(others).filter(([, text]) => text).map(([about, text]) => el("li", { "data-about": about }, el("strong", null, QUESTIONS[about] || about), " ", ...coded(text))));
  }
  function pointsOf(board, defense) {
    const points = {};
    const clean = board.clean < 0 ? null : cellAt(state.board, board.clean, defense, state.mode, 0);
    if (clean) points.clean = clean[ACCURACY][MEAN];
    for (const [label, place] of Object.entries(board.points)) {
      const value = board.byDefense[state.mode][defense][place];
      const kind = label.startsWith("certified") ? "certified" : label;
      if (value && points[kind] === undefined) points[kind] = value[MEAN];
    }
    if (points.worst_case !== undefined) delete points.white_box;
    return points;
  }
  function drawChart(board) {
    const box = $("chart");
    const off = hidden[state.board].defenses;
    const at = (defense) => { const value = board.byDefense[state.mode][defense][0]; return value ? value[MEAN] : -1; };
    const order = board.defenses.map((_, defense) => defense).filter((defense) => !off.has(board.defenses[defense])).sort((one, other) => at(other) - at(one) || one - other);
    const list = order.map((defense) => ({ name: board.defenses[defense], points: pointsOf(board, defense), kept: defense === board.baseline[state.mode] }));
    const floor = board.defenses.indexOf("mlp");
    const share = floor < 0 ? undefined : pointsOf(board, floor).clean;
    const wide = Math.max(280, Math.min(640, box.clientWidth || 560));
    const made = charts.dumbbells(list, wide, share === undefined ? null : { name: "mlp", share });
    if (!made) { box.replaceChildren(); return; }
    const caption = el("figcaption", null, ...made.legend.map(([kind, sign, text]) => el("span", null, el("span", { class: "sign " + kind, "aria-hidden": "true" }, sign), " " + text)));
    if (made.shown < made.of) caption.append(el("span", null, made.shown + " of " + made.of));
    box.replaceChildren(caption, made.chart);
  }
  // charts below the table: what a board has no data for is not there
  function drawMore(board) {
    const box = $("charts");
    const wide = Math.max(280, Math.min(520, $("panel-board").clientWidth - 24 || 480));
    const figures = [];
    const figure = (title, about, ...content) => figures.push(el("figure", null, el("h3", null, title), el("p", { class: "soft" }, name(about)), ...content));
    const keyed = (made) => el("figcaption", null, ...made.legend.map(([look, label]) => el("span", null, charts.sign(look), " ", name(label))),
      made.left ? el("span", null, "and " + made.left + " more in the table") : null);
    const off = hidden[state.board].defenses;
    const seen = (list) => list.filter((line) => !off.has(line.name));
    const swept = board.budget[state.mode];
    const over = swept && charts.lines(seen(swept.lines), swept.limit, wide);
    if (over) figure("Accuracy over " + swept.limit, "Mean over attacks, for every value of the limit; this board is at " + swept.at + ".", keyed(over), over.chart);
    const asked = charts.lines(seen(board.queries[state.mode]), "queries", wide);
    if (asked) figure("Accuracy over queries", "What is left after so many questions to the victim; 0 is the clean graph.", keyed(asked), asked.chart);
    const cost = charts.scatter(board.strength[state.mode], "CPU seconds of one run", wide);
    if (cost) figure("Strength over cost", "Accuracy that each attack leaves, the mean over defenses: the lower, the stronger; the further right, the more computation.",
      el("figcaption", null, ...["weighted", "white_box"].filter((kind) => board.strength[state.mode].some((point) => Boolean(point.white) === (kind === "white_box")))
        .map((kind) => el("span", null, el("span", { class: "sign " + kind, "aria-hidden": "true" }, charts.KINDS[kind][1]), " " + charts.KINDS[kind][2]))), cost);
    const own = board.degrees[state.mode];
    if (own) {
      const order = rows.map((row) => row.defense).filter((defense) => own.rows[defense] && own.rows[defense].clean && !off.has(board.defenses[defense]));
      const small = order.slice(0, 12).map((defense) => charts.bands({ name: board.defenses[defense], ...own.rows[defense] }, own.bands, 230));
      const kinds = ["clean", "weighted", "white_box"].filter((kind) => own.rows.some((row) => row[kind]));
      const signs = el("figcaption", null, ...kinds.map((kind) => el("span", null, el("span", { class: "sign " + kind, "aria-hidden": "true" }, charts.KINDS[kind][1]), " " + charts.KINDS[kind][2])));
      if (small.length) {
        figure("Accuracy by the degree of the target", "Whom attacks hurt: targets with few neighbours or with many (in per cent, mean over attacks).", signs, el("div", { class: "small" }, ...small));
        figures[figures.length - 1].classList.add("wide");
      }
    }
    box.replaceChildren(...figures);
    $("more").hidden = !figures.length;
  }
  function drawFlags(board) {
    const box = $("flags");
    box.hidden = !board.flags.length;
    if (box.hidden) return;
    const count = board.flags.length === 1 ? "1 warning" : board.flags.length + " warnings";
    box.replaceChildren(el("details", { open: board.flags.length <= 3 }, el("summary", null, el("strong", null, "\u26a0 " + count)),
      el("ul", null, ...board.flags.map((flag) => el("li", null, sentence(flag.text))))));
  }
  function drawLegend(domain) {
    const label = METRICS.find(([key]) => key === state.metric)[1].replace("accuracy", boards[state.board].metric);
    const box = $("legend");
    if (!state.all) {
      const used = new Set(boards[state.board].defenses.flatMap((each) => each.split("(")[0].split("+").slice(1)));
      const parts = Object.keys(PARTS).filter((part) => used.has(part)).map((part) => "; +" + part + ": " + PARTS[part]);
      box.replaceChildren(el("span", { class: "words" }, boards[state.board].metric
        + " in per cent, underlined: the best; \u00b1 standard deviation over runs" + parts.join("")));
      return;
    }
    if (!domain) { box.replaceChildren(label + ": nothing to show"); return; }
    const ramp = el("span", { class: "ramp", "aria-hidden": "true" });
    for (let step = 0; step < STEPS; step += 1) ramp.append(el("span", { class: domain.prefix + step }));
    box.replaceChildren(label + ", " + (state.metric === "difference" ? signed(domain.low, 0) : fixed(domain.low, 0)), ramp,
      state.metric === "difference" ? signed(domain.high, 0) : fixed(domain.high, 0), el("span", { class: "words" }, "\u00b1 std over runs, bar: 95 % interval"));
  }

  // sorting, searching, hiding: rows move, nothing is drawn again

  function sortBy(wanted) {
    const same = state.sort.key === wanted;
    const rising = wanted === "name" || wanted === "rank" || wanted === "signer";
    state.sort = { key: wanted, down: same ? !state.sort.down : !rising };
    order();
    remember();
    const column = columns.find((each) => each.key === wanted);
    say("sorted by " + column.label + ", " + (state.sort.down ? "descending" : "ascending"));
  }
  function order() {
    const board = boards[state.board];
    const column = columns.find((each) => each.key === state.sort.key);
    const values = new Map(rows.map((row) => [row, sortValue(board, column, row.defense)]));
    rows.sort((one, other) => {
      const [a, b] = [values.get(one), values.get(other)];
      if (a === null || b === null) return (a === null) - (b === null) || one.defense - other.defense;
      return ((a > b) - (a < b)) * (state.sort.down ? -1 : 1) || one.defense - other.defense;
    });
    $("board").tBodies[0].replaceChildren(...rows.map((row) => row.element));
    for (const head of $("board").tHead.rows[0].cells) {
      head.setAttribute("aria-sort", head.dataset.key !== state.sort.key ? "none" : state.sort.down ? "descending" : "ascending");
    }
  }
  function filter() {
    const board = boards[state.board];
    const wanted = state.query.trim().toLowerCase();
    let seen = 0;
    for (const row of rows) {
      const label = board.defenses[row.defense];
      row.element.hidden = hidden[state.board].defenses.has(label) || !label.toLowerCase().includes(wanted);
      seen += !row.element.hidden;
    }
    $("empty").hidden = seen > 0;
    setCurrent(null);
    return seen;
  }

  // moving in the grid with the keyboard: one stop for the tab key, arrows inside

  let current = null;
  const focusable = (cell) => cell && (cell.querySelector("button") || cell);
  function setCurrent(cell) {
    if (current) focusable(current).tabIndex = -1;
    current = cell || $("board").tHead.rows[0].cells[0];
    focusable(current).tabIndex = 0;
  }
  function move(event) {
    const cell = event.target.closest("th, td");
    if (!cell) return;
    const lines = [...$("board").rows].filter((row) => !row.hidden);
    let [line, place] = [lines.indexOf(cell.parentElement), cell.cellIndex];
    const last = cell.parentElement.cells.length - 1;
    const steps = {
      ArrowLeft: () => { place -= 1; }, ArrowRight: () => { place += 1; },
      ArrowUp: () => { line -= 1; }, ArrowDown: () => { line += 1; },
      Home: () => { place = 0; if (event.ctrlKey) line = 0; },
      End: () => { place = last; if (event.ctrlKey) line = lines.length - 1; },
      PageUp: () => { line -= 8; }, PageDown: () => { line += 8; },
    };
    if (steps[event.key]) {
      steps[event.key]();
      const next = lines[Math.min(lines.length - 1, Math.max(0, line))].cells[Math.min(last, Math.max(0, place))];
      setCurrent(next);
      focusable(next).focus();
      next.scrollIntoView({ block: "nearest", inline: "nearest" });
      event.preventDefault();
    } else if ((event.key === "Enter" || event.key === " ") && cell.record) {
      cell.record();
      event.preventDefault();
    }
  }

  // records

  function open(view, title, ...content) {
    $("record-title").replaceChildren(name(title));
    $("record-body").replaceChildren(...content.filter(Boolean));
    if (!$("record").open) $("record").showModal();
    $("record").firstElementChild.scrollTop = 0;
    state.record = view;
    remember();
  }
  // a text to be copied, and the button that does it
  function copied(text, id) {
    const box = el("pre", { tabindex: "0", ...(id ? { id } : {}) }, text);
    const button = el("button", { type: "button" }, "copy");
    button.addEventListener("click", () => {
      const done = () => { button.textContent = "copied"; };
      if (navigator.clipboard) navigator.clipboard.writeText(box.textContent).then(done, () => getSelection().selectAllChildren(box));
      else getSelection().selectAllChildren(box);
    });
    return [box, button];
  }
  function facts(pairs) {
    const list = el("dl");
    for (const [label, value] of pairs) {
      if (value === undefined || value === null || value === "") continue;
      list.append(el("dt", null, label), el("dd", null, value instanceof Node ? value : name(words(value))));
    }
    return list;
  }
  function words(value, inner) {
    if (Array.isArray(value)) return (inner ? "[" : "") + value.map((item) => words(item, true)).join(", ") + (inner ? "]" : "");
    if (value && typeof value === "object") return Object.entries(value).map(([label, item]) => label + " " + words(item, true)).join(", ");
    return value === null ? "none" : String(value);
  }
  function spec(value) {
    if (!value || typeof value !== "object") return value;
    const params = Object.entries(value.params || {});
    return value.name + (params.length ? " with " + params.map(([label, item]) => label + "=" + words(item)).join(", ") : "");
  }
  function long(value, least) {
    const interval = value[LOW] === null ? "" : ", 95 % interval " + fixed(Math.max(value[LOW], least), 2) + " to " + fixed(Math.min(value[HIGH], 1), 2);
    return fixed(value[MEAN], 2) + " " + (value[RUNS] > 1 ? "\u00b1" + fixed(value[STD], 2) : "") + interval + " (" + value[RUNS] + (value[RUNS] === 1 ? " run)" : " runs)");
  }
  const unique = (list) => [...new Set(list.filter((item) => item !== undefined && item !== null).map(String))].join(", ");

  function showCell(board, column, defense, cell) {
    const edits = cell[EDITS].map((place) => board.edits[place]);
    const victims = cell[VICTIMS].map((place) => board.victims[place]);
    const extra = Object.assign({}, ...cell[EXTRAS].map((place) => board.extras[place]));
    const edit = edits[0] || {};
    const victim = victims[0] || {};
    const clean = !cell[WHITE] && cell[ATTACK] === board.clean;
    const paper = cell[PAPER];
    const title = board.defenses[defense] + (clean ? " on the clean graph" : " under " + column.label) + ", " + board.modes[state.mode];
    const kilobytes = edit.edit_bytes ? (edit.edit_bytes / 1024).toFixed(1) + " kB" : null;
    const size = edit.budget ? words(edit.budget) + (kilobytes ? " (" + kilobytes + ")" : "") : kilobytes;
    const attackFacts = clean ? [] : [
      ["attack", spec(edit.attack_spec) || column.label],
      ["knowledge", cell[WHITE] ? "white-box: gradients of the victim itself" : edit.surrogate ? "transfer: gradients of a surrogate, " + edit.surrogate : "no model"],
      ["limits", edit.threat], ["size of the edit", size], ["steps", edit.attack_steps],
      ["CPU seconds of the attack", unique(edits.map((each) => each.attack_seconds))],
      ["peak memory of the attack", edit.attack_megabytes ? unique(edits.map((each) => each.attack_megabytes)) + " MB" : null],
      ["seeds of the attack", unique(edits.map((each) => each.attack_seed))], ["notes", edit.notes],
    ];
    const [command, copy] = copied("", "command");
    const choose = (run) => { command.textContent = "grb store verify STORE --record " + (cell[SCORES][run] || "KEY"); };
    choose(0);
    open((cell[WHITE] ? "w" : "a") + cell[ATTACK] + "." + defense, title,
      ...around(board, defense, edit),
      facts([
        ["accuracy", long(cell[ACCURACY], 0)],
        ["claimed", cell[CLAIM] ? claimText(cell[CLAIM], 0) : null],
        ["paper", paper ? fixed(paper[0], 2) + " \u00b1" + fixed(paper[1], 2) + ", ours minus paper " + signed(cell[ACCURACY][MEAN] - paper[0], 2) : null],
        ["accuracy lost", cell[DROP] ? long(cell[DROP], -1) : null],
        ["predictions changed", clean || !cell[CHANGED] ? null : long(cell[CHANGED], 0)],
        ["victim", spec(victim.victim_spec) || board.defenses[defense]],
        ["parameters", victim.parameters],
        ["seeds of the victim", unique(victims.map((each) => each.victim_seed))],
        ["CPU seconds of its training", unique(victims.map((each) => each.victim_seconds))],
        ["threads", unique(victims.map((each) => each.threads))],
        ...attackFacts,
        ...Object.entries(extra).map(([label, value]) => [label.replaceAll("_", " "), value]),
      ]),
      cell[SCORES].length ? el("h3", null, "Recompute it") : null,
      cell[SCORES].length ? el("p", { class: "soft" }, "STORE is the directory of the store that this page was built from.") : null,
      cell[SCORES].length ? command : null, cell[SCORES].length ? copy : null,
      el("h3", null, "Runs"), runsTable(cell, edits, victims, choose),
      ...edits.flatMap((each, run) => (each.trials && each.trials.length ? trialsOf(each.trials, edits.length > 1 ? ", run " + (run + 1) : "") : [])));
  }
  // where the edit touched one target: drawn once, with what this defense made of it
  function around(board, defense, edit) {
    const near = edit.attack && board.neighbourhoods[edit.attack];
    if (!near) return [];
    const right = near.right[defense];
    const verdict = right ? ": " + (right[0] ? "right" : "wrong") + " before the attack, " + (right[1] ? "right" : "wrong") + " after it" : "";
    const [kept, added, dropped] = near.edges;
    const words = "Node " + near.target + verdict + ". " + near.nodes.filter((node) => node[3]).length + " injected nodes, " + added.length + " added and " + dropped.length + " dropped edges in view"
      + (near.left ? "; " + near.left + " more nodes within reach are not shown." : ".");
    const label = "Neighbourhood of target " + near.target + " after the attack: " + near.nodes.length + " nodes, " + kept.length + " edges that stay, " + added.length + " added, " + dropped.length + " dropped";
    return [el("h3", null, "A neighbourhood that was attacked"), el("p", null, words), charts.neighbourhood(near, Math.min(560, innerWidth - 48), label),
      el("p", { class: "soft" }, "Ring: the target. Star: injected node. Dashed: added edge. Dotted: dropped edge. Colour and shape: true class.")];
  }
  // what the ensemble tried: a curve of the strongest so far over its cost, and a table
  function trialsOf(trials, which) {
    const head = ["trial", "level", "accuracy left", "CPU s", "forward", "backward", "error"];
    const measured = (value) => typeof value === "number" && Number.isFinite(value);
    const body = trials.map((trial) => el("tr", null, el("th", { scope: "row" }, name(words(trial.name))),
      ...[trial.level, measured(trial.kept) ? fixed(trial.kept, 2) : "\u2013", measured(trial.cpu_seconds) ? trial.cpu_seconds.toPrecision(3) : "\u2013", trial.forward, trial.backward]
        .map((value) => el("td", null, value === undefined ? "\u2013" : words(value))),
      el("td", { class: "text" }, name(trial.error ? words(trial.error) : ""))));
    return [el("h3", null, "Trials of the ensemble" + which), costCurve(trials.filter((trial) => measured(trial.cpu_seconds)), which),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "trials" + which }, el("table", { class: "trials" },
        el("thead", null, el("tr", null, ...head.map((label) => el("th", { scope: "col" }, el("span", { class: "plain" }, label))))),
        el("tbody", null, ...body)))];
  }
  function costCurve(trials, which) {
    let [spent, lowest] = [0, 1];
    const points = trials.map((trial) => {
      spent += trial.cpu_seconds;
      if (typeof trial.kept === "number") lowest = Math.min(lowest, trial.kept);
      return [spent, lowest];
    });
    if (!points.length || !(spent > 0)) return null;
    return charts.steps(points, "Accuracy left by the strongest trial so far over CPU seconds" + which + ": " + fixed(lowest) + " % after " + spent.toPrecision(3) + " s");
  }
  function runsTable(cell, edits, victims, choose) {
    const head = ["run", "accuracy", "victim's seed", "attack's seed", "CPU s", "score", "victim", "edit"];
    const body = cell[VALUES].map((value, run) => {
      const [edit, victim] = [edits[run] || {}, victims[run] || {}];
      const pick = el("button", { type: "button", title: "show the command for this run" }, cell[SCORES][run] || "\u2013");
      pick.addEventListener("click", () => choose(run));
      const texts = [run + 1, fixed(value, 2), victim.victim_seed, edit.attack_seed, edit.attack_seconds];
      const keys = [el("td", null, el("code", null, pick)), ...[victim.victim, edit.attack].map((own) => el("td", null, el("code", null, own || "\u2013")))];
      return el("tr", null, ...texts.map((text) => el("td", null, text === undefined ? "\u2013" : String(text))), ...keys);
    });
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "runs" }, el("table", null,
      el("thead", null, el("tr", null, ...head.map((label) => el("th", { scope: "col" }, el("span", { class: "plain" }, label))))),
      el("tbody", null, ...body)));
  }
  function showMethod(board, defense) {
    const card = (board.cards.defenses || {})[String(defense)] || [];
    const about = board.flags.filter((flag) => flag.defenses.includes(defense));
    const used = board.summaries.map((_, place) => place).filter((place) => board.byDefense.some((mode) => mode[defense][place]));
    const rank = (places) => (!places ? "\u2013" : places[0] === places[1] ? String(places[0]) : places[0] + "\u2013" + places[1]);
    const line = (label, texts) => el("tr", null, el("th", { scope: "row" }, label), ...texts.map((text) => el("td", null, text)));
    const body = [line("rank", board.ranks.map((mode) => rank(mode[defense]))), ...used.map((place) => line(longer(board.summaries[place]), board.byDefense.map((mode) => {
      const value = mode[defense][place];
      return value ? fixed(value[MEAN], 2) + " " + spread(value, 2) : "\u2013";
    })))];
    const head = ["summary", ...board.modes];
    const cited = board.citations.defenses[defense];
    const known = new Set(["authors", "link", "year", "license", "name"]);
    open("d" + defense, board.defenses[defense],
      about.length ? el("div", { class: "flags" }, ...about.map((flag) => el("p", null, "\u26a0 ", name(flag.text)))) : null,
      facts([
        ["authors", cited.authors], ["paper", cited.papers ? cited.papers.join("; ") : null], ["link", cited.link ? link(cited.link) : null],
        ["year", cited.year], ["license", cited.license], ["measured on", cited.date],
        ["measured by", board.measuredBy.defenses[state.mode][defense]], ...claimFacts(board.claims.defenses[state.mode][defense]),
        ...card.filter((line) => !known.has(line.name)).map((line) => [line.name, line.link ? link(line.link) : line.text]),
      ]),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "summaries" }, el("table", { class: "numbers" },
        el("thead", null, el("tr", null, ...head.map((label) => el("th", { scope: "col" }, el("span", { class: "plain" }, label))))),
        el("tbody", null, ...body))),
      ...(cited.bibtex ? [el("h3", null, "Cite it"), ...copied(cited.bibtex, "bibtex")] : []));
  }
  const claimFacts = (claim) => (claim ? [["claimed", claimText(claim, 0)], ["re-evaluated", claimText(claim, 1)]] : []);
  function showCitation(board) {
    open("cite", "Cite " + board.title, el("p", null, "The board, and the paper whose benchmark it is. Entries have a citation of their own: choose a name in the table."), ...copied(board.bibtex, "bibtex"));
  }
  function showSubmission() {
    const step = (words, command) => [el("p", null, words), el("pre", { tabindex: "0" }, command)];
    open("submit", "Submit yours",
      el("p", null, "An attack is one npz file of changes, a defense one safetensors file of weights; a card of a few lines says what it is. Nothing of it is run before it is checked."),
      ...step("1. Make the file: with the command below, or with GraphEdit.save of the library.", "grb attack tdgia --surrogate gcn --dataset grb-cora -o my-attack.npz"),
      ...step("2. Write the card, my-attack.yaml.", "name: my attack\nkind: attack\ndataset: grb-cora\nauthors: [A. Person]\nlink: https://example.org/paper\nyear: 2026\nlicense: MIT\nknowledge: transfer"),
      ...step("3. See whether it keeps the rules.", "grb submit my-attack.npz --check"),
      ...step("4. Score it; STORE is the directory of the store that this page was built from.", "grb submit my-attack.npz --store STORE"));
  }
  function link(address) {
    if (!/^https?:\/\//.test(address)) return name(address);
    return el("a", { href: address, rel: "noopener noreferrer nofollow", target: "_blank" }, name(address));
  }

  // attacks, and tables that come with the page

  // one row per attack, the strongest first; columns in which nobody has anything are left out
  function drawAttacks(board) {
    $("attacks-title").replaceChildren(name("Attacks: " + board.title + ", " + board.modes[state.mode]));
    const blank = (text) => el("td", { class: "none" }, text || "\u2013");
    const number = (value, text) => (value === null || value === undefined ? blank() : el("td", { "data-number": value }, text));
    const plain = (text) => el("td", { class: "text" }, name(text || "\u2013"));
    const cells = board.cells.filter((cell) => cell[MODE] === state.mode);
    const listed = [];
    for (const [labels, white] of [[board.attacks, 0], [board.whiteBox, 1]]) {
      labels.forEach((label, attack) => {
        const own = cells.filter((cell) => cell[ATTACK] === attack && cell[WHITE] === white);
        if (!own.length) return;
        const edit = own[0][EDITS].length ? board.edits[own[0][EDITS][0]] : null;
        const means = own.map((cell) => cell[ACCURACY][MEAN]);
        listed.push({
          label: label + (white ? " (white-box)" : ""), left: means.reduce((sum, mean) => sum + mean, 0) / means.length, count: means.length,
          sums: white ? STRENGTHS.map(() => null) : board.byAttack[state.mode][attack], cost: (white ? board.whiteCost : board.cost)[state.mode][attack],
          limits: edit && edit.threat ? words(edit.threat) : "", claim: white ? null : board.claims.attacks[state.mode][attack],
          signer: white ? distinct(own.map((cell) => cell[SIGNER])).join(", ") : board.measuredBy.attacks[state.mode][attack],
          flags: white ? [] : board.flags.filter((flag) => flag.attacks.includes(attack)).map((flag) => flag.text),
          clean: !white && attack === board.clean,
        });
      });
    }
    listed.sort((one, other) => one.clean - other.clean || one.left - other.left);
    const most = Math.max(...listed.map((one) => one.count));
    const fewer = listed.some((one) => one.count < most);
    const claimed = listed.some((one) => one.claim);
    const limits = distinct(listed.filter((one) => !one.clean).map((one) => one.limits));
    $("attacks-limits").replaceChildren(name(limits.length === 1 && limits[0] ? "Limits of every attack: " + limits[0] + "." : ""));
    const shown = [
      ["accuracy left", (one) => number(one.left, fixed(one.left)), true],
      ["defenses", (one) => number(one.count, String(one.count)), fewer],
      ...STRENGTHS.filter((label) => label !== "average").map((label) => [label + " accuracy", (one) => {
        const value = one.sums[STRENGTHS.indexOf(label)];
        return number(value && value[MEAN], value && fixed(value[MEAN]) + " " + spread(value));
      }, true]),
      ["CPU s", (one) => number(one.cost, one.cost === null ? "" : one.cost.toPrecision(3)), listed.some((one) => one.cost !== null)],
      ["limits", (one) => plain(one.limits), limits.length > 1],
      ["claimed", (one) => number(one.claim && one.claim[0], claimText(one.claim, 0)), claimed],
      ["re-evaluated", (one) => number(one.claim && one.claim[1], claimText(one.claim, 1)), claimed],
      ["measured by", (one) => plain(one.signer), listed.some((one) => one.signer && one.signer !== "unsigned")],
      ["warning", (one) => el("td", { class: "text" }, one.flags.length ? "\u26a0 " : "", name(one.flags.join(" "))), listed.some((one) => one.flags.length)],
    ].filter(([, , wanted]) => wanted);
    $("attacks").replaceChildren(
      el("thead", null, el("tr", null, ...["attack", ...shown.map(([label]) => label)].map((label) => el("th", { scope: "col" }, el("bdi", { class: "plain" }, label))))),
      el("tbody", null, ...listed.map((one) => el("tr", null, el("th", { scope: "row" }, name(one.clean ? one.label + " (clean graph)" : one.label)), ...shown.map(([, cell]) => cell(one))))));
    sortable($("attacks"));
  }
  function sortable(table) {
    if (!table.tHead) return;
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      const button = el("button", { type: "button" }, ...head.childNodes);
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        const value = (row) => {
          const cell = row.cells[place];
          return cell && cell.dataset.number !== undefined ? Number(cell.dataset.number) : null;
        };
        const text = (row) => (row.cells[place] ? row.cells[place].textContent.toLowerCase() : "");
        const sorted = [...table.tBodies[0].rows].sort((one, other) => {
          const [a, b] = [value(one), value(other)];
          if (a === null && b === null) return text(one).localeCompare(text(other)) * (down ? -1 : 1);
          if (a === null || b === null) return (a === null) - (b === null);
          return (a - b) * (down ? -1 : 1);
        });
        table.tBodies[0].replaceChildren(...sorted);
        for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
      });
    });
  }

  // downloads

  const COLUMNS = ["dataset", "scenario", "recipe", "difficulty", "attack", "knowledge", "defense", "accuracy", "std", "low", "high", "runs", "changed",
    "paper_accuracy", "paper_std", "attack_cpu_seconds", "claimed", "re_evaluated", "claim_differs", "measured_by"];
  function tidy(board) {
    return board.cells.map((cell) => {
      const white = cell[WHITE] === 1;
      const clean = !white && cell[ATTACK] === board.clean;
      const [mean, std, low, high, runs] = cell[ACCURACY];
      const cost = (white ? board.whiteCost : board.cost)[cell[MODE]][cell[ATTACK]];
      return [board.dataset, board.scenario, board.recipe, board.modes[cell[MODE]], (white ? board.whiteBox : board.attacks)[cell[ATTACK]],
        white ? "white-box" : clean ? "none" : "transfer", board.defenses[cell[DEFENSE]], mean, std, low, high, runs, cell[CHANGED] ? cell[CHANGED][MEAN] : null,
        cell[PAPER] ? cell[PAPER][0] : null, cell[PAPER] ? cell[PAPER][1] : null, cost,
        ...(cell[CLAIM] ? [cell[CLAIM][0], cell[CLAIM][1], cell[CLAIM][2] ? "yes" : "no"] : [null, null, null]), cell[SIGNER]];
    });
  }
  function csvCell(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = /^\s*[=+\-@]/.test(value) || /^[\t\r]/.test(value) ? "'" + value : value;
    return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  }
  function csv(board) {
    return [COLUMNS, ...tidy(board)].map((line) => line.map(csvCell).join(",")).join("\n") + "\n";
  }
  function json(board) {
    const cells = tidy(board).map((line, place) => ({ ...Object.fromEntries(COLUMNS.map((label, at) => [label, line[at]])),
      values: board.cells[place][VALUES], scores: board.cells[place][SCORES] }));
    return JSON.stringify({ title: board.title, flags: board.flags.map((flag) => flag.text), cells }, null, 1);
  }
  function download(ending, type, text) {
    const board = boards[state.board];
    const file = (board.dataset + "-" + board.scenario + "-" + board.recipe).toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 80);
    const address = URL.createObjectURL(new Blob([text], { type }));
    const anchor = el("a", { href: address, download: file + ending });
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  // controls

  function options(select, labels, chosen) {
    select.replaceChildren(...labels.map(([value, label]) => el("option", { value, selected: value === chosen }, label)));
    select.value = chosen;
  }
  function distinct(list) { return [...new Set(list)]; }
  function drawControls() {
    const board = boards[state.board];
    const same = boards.map((each, at) => [each, at]).filter(([each]) => each.dataset === board.dataset);
    const studies = same.filter(([each]) => each.scenario === board.scenario);
    options($("dataset"), distinct(boards.map((each) => each.dataset)).map((each) => [each, each]), board.dataset);
    options($("scenario"), distinct(same.map(([each]) => each.scenario)).map((each) => [each, each]), board.scenario);
    options($("study"), studies.map(([each, at]) => [String(at), each.title]), String(state.board));
    const named = METRICS.map(([key, label]) => [key, label.replace("accuracy", board.metric)]);
    options($("metric"), named.filter(([key]) => key !== "difference" || hasPaper(board)), state.metric);
    $("paper-label").hidden = !hasPaper(board);
    $("modes").parentElement.hidden = board.modes.length < 2;
    $("modes").replaceChildren(...board.modes.map((mode, at) => {
      const radio = el("input", { type: "radio", name: "mode", value: String(at) });
      radio.checked = at === state.mode;
      radio.addEventListener("change", () => { state.mode = at; draw(); say(mode + " difficulty"); });
      return el("label", null, radio, el("span", null, mode));
    }));
    pickers("pick-defenses", board.defenses, hidden[state.board].defenses, () => { filter(); drawChart(board); drawMore(board); remember(); });
    pickers("pick-attacks", attackNames(board), hidden[state.board].attacks, draw);
  }
  function pickers(id, labels, off, apply) {
    const boxes = labels.map((label) => {
      const box = el("input", { type: "checkbox" });
      box.checked = !off.has(label);
      box.addEventListener("change", () => { if (box.checked) off.delete(label); else off.add(label); apply(); });
      return [box, el("label", null, box, name(label))];
    });
    const all = (on) => () => {
      labels.forEach((label) => (on ? off.delete(label) : off.add(label)));
      boxes.forEach(([box]) => { box.checked = on; });
      apply();
    };
    const buttons = [["all", true], ["none", false]].map(([label, on]) => {
      const button = el("button", { type: "button" }, label);
      button.addEventListener("click", all(on));
      return button;
    });
    $(id).replaceChildren(...buttons, ...boxes.map(([, label]) => label));
  }
  function choose(board) {
    const mode = boards[state.board].modes[state.mode];
    state.board = board;
    const at = boards[board].modes.indexOf(mode);
    state.mode = at < 0 ? boards[board].modes.length - 1 : at;
    state.sort = { key: "s0", down: true };
    draw();
    drawControls();
  }
  const find = (test) => Math.max(0, boards.findIndex(test));

  // tabs, theme, and the view in the address, so that it can be sent

  function tab(wanted, focus) {
    for (const button of $("tabs").children) {
      const own = button.id === "tab-" + wanted;
      button.setAttribute("aria-selected", String(own));
      button.tabIndex = own ? 0 : -1;
      $(button.getAttribute("aria-controls")).hidden = !own;
      if (own && focus) button.focus();
    }
    $("controls").hidden = wanted !== "board" && wanted !== "attacks";
    $("all").parentElement.hidden = wanted === "attacks";
    state.tab = wanted;
    remember();
  }
  const THEMES = ["system", "light", "dark"];
  function theme(wanted) {
    if (wanted === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = wanted;
    $("theme").textContent = "theme: " + wanted;
    try { localStorage.setItem("grb-theme", wanted); } catch { /* private windows have no storage */ }
  }
  function remember() {
    const view = new URLSearchParams({ ...(state.all ? { columns: "all" } : {}), board: state.board, mode: state.mode, metric: state.metric, sort: state.sort.key + (state.sort.down ? "-" : "+"), tab: state.tab });
    const board = boards[state.board];
    const listed = (labels, off) => labels.flatMap((label, place) => (off.has(label) ? [place] : [])).join(".");
    const optional = {
      q: state.query, record: state.record, paper: state.paper ? "" : "no", bars: state.bars ? "" : "no",
      hide: listed(board.defenses, hidden[state.board].defenses), without: listed(attackNames(board), hidden[state.board].attacks),
    };
    for (const [label, value] of Object.entries(optional)) if (value) view.set(label, value);
    try { history.replaceState(null, "", "#" + view); } catch { /* some viewers do not allow it */ }
  }
  const attackNames = (board) => [...board.attacks, ...board.whiteBox.map((label) => label + " (white-box)")];
  function recall() {
    const view = new URLSearchParams(location.hash.slice(1));
    const number = (label, count, fallback) => {
      const value = Number(view.get(label));
      return view.has(label) && Number.isInteger(value) && value >= 0 && value < count ? value : fallback;
    };
    // the worst case says most: a page opens with the first board that has one
    state.board = number("board", boards.length, Math.max(0, boards.findIndex((board) => board.rankBy === "worst_case")));
    state.mode = number("mode", boards[state.board].modes.length, boards[state.board].modes.length - 1);
    if (METRICS.some(([key]) => key === view.get("metric"))) state.metric = view.get("metric");
    const sort = /^([a-z]+\d*)([-+ ])$/.exec(view.get("sort") || "");
    if (sort) state.sort = { key: sort[1], down: sort[2] === "-" };
    state.query = (view.get("q") || "").slice(0, 80);
    state.all = view.get("columns") === "all";
    state.paper = view.get("paper") !== "no";
    state.bars = view.get("bars") !== "no";
    const places = (label) => (view.get(label) || "").split(".").filter((each) => /^\d{1,4}$/.test(each)).map(Number);
    const [board, off] = [boards[state.board], hidden[state.board]];
    places("hide").forEach((place) => { if (place < board.defenses.length) off.defenses.add(board.defenses[place]); });
    places("without").forEach((place) => { if (place < attackNames(board).length) off.attacks.add(attackNames(board)[place]); });
    state.record = view.get("record") || "";
    const wanted = "tab-" + view.get("tab");
    if ([...$("tabs").children].some((button) => button.id === wanted)) state.tab = view.get("tab");
  }

  // the record that an address names; anything else opens nothing
  function reopen(view) {
    const board = boards[state.board];
    const cellOf = /^([aw])(\d{1,4})\.(\d{1,4})$/.exec(view);
    const method = /^d(\d{1,4})$/.exec(view);
    if (view === "cite") showCitation(board);
    else if (view === "submit") showSubmission();
    else if (method && Number(method[1]) < board.defenses.length) showMethod(board, Number(method[1]));
    else if (cellOf) {
      const [attack, defense, white] = [Number(cellOf[2]), Number(cellOf[3]), cellOf[1] === "w" ? 1 : 0];
      const cell = cellAt(state.board, attack, defense, state.mode, white);
      if (cell) showCell(board, { label: (white ? board.whiteBox : board.attacks)[attack] }, defense, cell);
    }
  }

  function start() {
    recall();
    const asked = state.record;
    state.record = "";
    $("dataset").addEventListener("change", (event) => choose(find((each) => each.dataset === event.target.value)));
    $("scenario").addEventListener("change", (event) => choose(find((each) => each.dataset === boards[state.board].dataset && each.scenario === event.target.value)));
    $("study").addEventListener("change", (event) => choose(Number(event.target.value)));
    $("metric").addEventListener("change", (event) => { state.metric = event.target.value; draw(); });
    $("all").checked = state.all;
    $("all").addEventListener("change", (event) => { state.all = event.target.checked; draw(); });
    $("filters").open = Boolean(state.query) || !state.paper || !state.bars || hidden[state.board].defenses.size + hidden[state.board].attacks.size > 0;
    $("search").value = state.query;
    $("search").addEventListener("input", (event) => { state.query = event.target.value; say(filter() + " defenses shown"); remember(); });
    for (const [id, look] of [["paper", "hide-paper"], ["bars", "hide-bars"]]) {
      const apply = () => { $("board").classList.toggle(look, !state[id]); remember(); };
      $(id).checked = state[id];
      $(id).addEventListener("change", (event) => { state[id] = event.target.checked; apply(); });
      apply();
    }
    $("cite").addEventListener("click", () => showCitation(boards[state.board]));
    $("submit").addEventListener("click", showSubmission);
    $("record").addEventListener("close", () => { state.record = ""; remember(); });
    $("controls").addEventListener("submit", (event) => event.preventDefault());
    $("board").addEventListener("keydown", move);
    $("board").addEventListener("focusin", (event) => { const cell = event.target.closest("th, td"); if (cell) setCurrent(cell); });
    $("board").addEventListener("click", (event) => { const cell = event.target.closest("th, td"); if (cell && cell.record) cell.record(); });
    $("csv").addEventListener("click", () => download(".csv", "text/csv", csv(boards[state.board])));
    $("json").addEventListener("click", () => download(".json", "application/json", json(boards[state.board])));
    $("close").addEventListener("click", () => $("record").close());
    $("record").addEventListener("click", (event) => { if (event.target === $("record")) $("record").close(); });
    $("theme").addEventListener("click", () => {
      const now = document.documentElement.dataset.theme || "system";
      theme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
    });
    $("tabs").addEventListener("click", (event) => { const button = event.target.closest("button"); if (button) tab(button.id.slice(4), true); });
    $("tabs").addEventListener("keydown", (event) => {
      const list = [...$("tabs").children];
      const step = { ArrowLeft: -1, ArrowRight: 1, Home: -list.length, End: list.length }[event.key];
      if (!step) return;
      const at = list.findIndex((button) => button.getAttribute("aria-selected") === "true");
      const next = Math.abs(step) === 1 ? (at + step + list.length) % list.length : step < 0 ? 0 : list.length - 1;
      tab(list[next].id.slice(4), true);
      event.preventDefault();
    });
    document.addEventListener("click", (event) => {
      for (const box of document.querySelectorAll("details.pick[open]")) if (!box.contains(event.target)) box.open = false;
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") for (const box of document.querySelectorAll("details.pick[open]")) { box.open = false; box.firstElementChild.focus(); }
    });
    let kept = null;
    try { kept = localStorage.getItem("grb-theme"); } catch { /* private windows have no storage */ }
    theme(THEMES.includes(kept) ? kept : "system");
    document.querySelectorAll("table.static").forEach(sortable);
    $("tabs").hidden = $("theme").hidden = false;
    draw();
    drawControls();
    tab(state.tab, false);
    const drawWide = () => { drawChart(boards[state.board]); drawMore(boards[state.board]); };
    drawWide();  // they know their width now
    reopen(asked);
    let waiting = 0;
    addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(drawWide, 100); });
  }
  start();
})();
