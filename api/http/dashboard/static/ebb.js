/* What moves on the dashboard: charts, the sign that something is under way, the reader's own clock, copying.
   Every page is whole without it. A chart is a <figure data-chart="KIND"> that holds its numbers as JSON. */
"use strict";

(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const mixed = (name, per, other = "card") => `color-mix(in srgb, ${colour(name)} ${per}%, ${colour(other)})`;

  /* Under way: from the click on until the next page is there. */
  const loading = (on) => {
    root.classList.toggle("loading", on);
    const words = document.querySelector(".progress .unseen");
    if (words) words.textContent = on ? "Loading" : "";
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    const plain = !event.defaultPrevented && event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey;
    if (link && plain && !link.target && link.origin === location.origin && !link.getAttribute("href").startsWith("#")) loading(true);
  });
  document.addEventListener("submit", () => loading(true));

  /* What a double click sends once more is left out: it would undo an undo, or answer in place of a new key. */
  const sent = new WeakSet();
  document.addEventListener("submit", (event) => {
    if (sent.has(event.target)) event.preventDefault();
    else if (event.target.method === "post") sent.add(event.target);
  });

  /* Nothing is under way any more: the page is shown again, or the reader stopped the next one and does not open another. */
  let stopped;
  const settle = () => {
    loading(false);
    [...document.forms].forEach((form) => sent.delete(form));
  };
  addEventListener("pageshow", settle);
  globalThis.navigation?.addEventListener("navigateerror", () => { stopped = setTimeout(settle); });
  globalThis.navigation?.addEventListener("navigate", () => clearTimeout(stopped));

  /* What was done is said once: on the way back, or when the page is loaded again, it may be so no longer. */
  const address = new URL(location);
  ["done", "fact"].forEach((name) => address.searchParams.delete(name));
  if (document.querySelector(".done")) history.replaceState(history.state, "", address);

  /* Copying a command. */
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it by hand";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });

  /* Instants that the server writes in UTC, in the reader's zone; "3 days ago" stays, with the instant as its title. */
  const clock = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "short" });
  const localise = () => {
    for (const time of document.querySelectorAll("time[datetime]")) {
      const text = clock.format(new Date(time.dateTime));
      if (time.title) time.title = text; else time.textContent = text;
    }
  };

  /* Charts. */
  const font = "12px system-ui, sans-serif";
  const format = (parts) => { const form = new Intl.DateTimeFormat([], parts); return (at) => form.format(at * 1000); };
  const ticks = {
    second: format({ timeStyle: "medium" }), minute: format({ timeStyle: "short" }), day: format({ day: "numeric", month: "short" }),
    month: format({ month: "short" }), year: format({ year: "numeric" }),
  };

  /* Instants under a chart, as the reader's language writes them: a time above its day, or a day above its year. */
  const instants = (_, splits, __, ___, step) => {
    const above = step < 60 ? ticks.second : step < 86400 ? ticks.minute : step < 28 * 86400 ? ticks.day : ticks.month;
    const under = step < 86400 ? ticks.day : ticks.year;
    return splits.map((at, i) => i && under(at) === under(splits[i - 1]) ? above(at) : `${above(at)}\n${under(at)}`);
  };
  const axis = (more) => ({ stroke: colour("faint"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font, ...more });
  const dates = (more) => axis({ space: 80, values: instants, ...more });
  const whole = (value) => value == null ? "–" : value.toLocaleString(undefined, { maximumFractionDigits: 2 });
  const short = new Intl.NumberFormat([], { notation: "compact" });
  const increments = [...Array(12).keys()].flatMap((power) => [1, 2, 5].map((step) => step * 10 ** power));
  const counts = () => axis({ size: 48, incrs: increments, values: (_, splits) => splits.map((one) => short.format(one)) });
  const plain = { drag: { x: false, y: false, setScale: false }, points: { size: 7 } };

  const base = (figure, height) => ({
    width: Math.max(figure.clientWidth, 200),
    height,
    cursor: plain,
    padding: [10, 34, 0, 0],
  });

  /* Areas on top of each other: {at: [seconds], series: [{name, tone, values}]}. */
  const areas = (figure, content) => {
    const steps = { paths: uPlot.paths.stepped({ align: 1 }) };
    const sums = content.at.map(() => 0);
    const stacked = content.series.map((one) => one.values.map((value, i) => (sums[i] += value ?? 0)));
    const order = content.series.map((_, i) => content.series.length - 1 - i);
    const series = order.map((i) => ({
      label: content.series[i].name,
      stroke: colour(content.series[i].tone),
      fill: mixed(content.series[i].tone, 88),
      width: 1,
      points: { show: content.at.length < 2 },
      value: (_, __, ___, place) => whole(place == null ? content.series[i].values.at(-1) : content.series[i].values[place]),
      ...steps,
    }));
    return new uPlot({
      ...base(figure, 240),
      series: [{ label: "when", value: (_, at) => at == null ? "now" : clock.format(at * 1000) }, ...series],
      scales: { y: { range: (_, __, most) => [0, Math.max(most * 1.08, 4)] } },
      axes: [dates(), counts()],
    }, [content.at, ...order.map((i) => stacked[i])], figure);
  };

  /* One fact's forgetting: {at, salience, confidence, now, hits: [{at, after}], tiers: [{tier, from, until}], changes: [{at, number}]}. */
  const curve = (figure, content) => {
    const past = (values) => values.map((value, i) => content.at[i] <= content.now ? value : null);
    const coming = (values) => values.map((value, i) => content.at[i] >= content.now ? value : null);
    const line = (label, tone, more) => ({ label, stroke: colour(tone), width: 2.5, points: { show: false }, value: (_, v) => v == null ? "–" : `${Math.round(v * 100)} %`, ...more });
    const dashed = { dash: [7, 5] };
    const ratio = devicePixelRatio;
    const near = (at) => content.at.reduce((best, one, i) => Math.abs(one - at) < Math.abs(content.at[best] - at) ? i : best, 0);

    const bands = (u) => {
      const { ctx, bbox } = u;
      ctx.save();
      for (const { tier, from, until } of content.tiers) {
        const left = u.valToPos(from, "x", true), right = u.valToPos(until, "x", true);
        ctx.fillStyle = mixed(tier, 13);
        ctx.fillRect(left, bbox.top, right - left, bbox.height);
        if (right - left > 44 * ratio) {
          ctx.fillStyle = colour("faint");
          ctx.font = `${11 * ratio}px system-ui, sans-serif`;
          ctx.textAlign = "left";
          ctx.fillText(tier, left + 6 * ratio, bbox.top + 12 * ratio);
        }
      }
      ctx.restore();
    };

    const marks = (u) => {
      const { ctx, bbox } = u;
      const x = u.valToPos(content.now, "x", true);
      ctx.save();
      ctx.setLineDash([]);
      ctx.strokeStyle = ctx.fillStyle = colour("sea");
      ctx.lineWidth = 1.5 * ratio;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
      ctx.textAlign = x > bbox.left + bbox.width - 40 * ratio ? "right" : "left";
      ctx.fillText("now", x + (ctx.textAlign === "right" ? -5 : 5) * ratio, bbox.top + bbox.height - 7 * ratio);
      const dot = (at, words, fill, ink, high = content.salience[near(at)]) => {
        const radius = (words ? 8.5 : 5) * ratio;  /* Above the axis, so that its labels can be read. */
        const cx = u.valToPos(at, "x", true), cy = Math.min(u.valToPos(high, "y", true), bbox.top + bbox.height - radius);
        ctx.beginPath();
        ctx.arc(cx, cy, radius, 0, 7);
        ctx.fillStyle = fill;
        ctx.fill();
        ctx.strokeStyle = colour("card");
        ctx.lineWidth = 2 * ratio;
        ctx.stroke();
        ctx.fillStyle = ink;
        ctx.textAlign = "center";
        ctx.font = `650 ${10 * ratio}px system-ui, sans-serif`;
        ctx.fillText(words, cx, cy + 3.6 * ratio);
      };
      content.hits.forEach((hit) => dot(hit.at, "", colour("hot"), "", hit.after));
      content.changes.forEach((one) => dot(one.at, String(one.number), colour("ink"), colour("card")));
      ctx.restore();
    };

    return new uPlot({
      ...base(figure, 300),
      hooks: { drawClear: [bands], draw: [marks] },
      series: [
        { label: "when", value: (_, at) => at == null ? "–" : clock.format(at * 1000) },
        line("salience", "sea"), line("to come", "sea", dashed),
        line("confidence", "f", { width: 1.5 }), line("to come", "f", { width: 1.5, ...dashed }),
      ],
      scales: { y: { range: [0, 1.14] } },
      axes: [dates({ grid: { show: false } }), axis({ size: 48, splits: () => [0, 0.2, 0.4, 0.6, 0.8, 1], values: (_, splits) => splits.map((one) => `${Math.round(one * 100)} %`) })],
    }, [content.at, past(content.salience), coming(content.salience), past(content.confidence), coming(content.confidence)], figure);
  };

  /* Bars on top of each other, one for each instant: {at, series} as for areas. */
  const bars = (figure, content) => {
    const sums = content.at.map(() => 0);
    const stacked = content.series.map((one) => one.values.map((value, i) => (sums[i] += value ?? 0)));
    const order = content.series.map((_, i) => content.series.length - 1 - i);
    const day = new Intl.DateTimeFormat([], { dateStyle: "medium" });
    const gap = content.at.length > 1 ? content.at[1] - content.at[0] : 86400;
    const series = order.map((i) => ({
      label: content.series[i].name,
      stroke: colour(content.series[i].tone),
      fill: colour(content.series[i].tone),
      width: 0,
      points: { show: false },
      paths: uPlot.paths.bars({ size: [0.7, 64, 1] }),
      value: (_, __, ___, place) => whole(place == null ? content.series[i].values.reduce((a, b) => a + b, 0) : content.series[i].values[place]),
    }));
    return new uPlot({
      ...base(figure, 260),
      series: [{ label: "until", value: (_, at) => at == null ? "all" : day.format(at * 1000) }, ...series],
      scales: { x: { range: (_, first, last) => [first - gap / 2, last + gap / 2] }, y: { range: (_, __, most) => [0, Math.max(most * 1.08, 4)] } },
      axes: [dates(), counts()],
    }, [content.at, ...order.map((i) => stacked[i])], figure);
  };

  /* Lines beside each other: {at: [seconds], unit, series: [{name, tone, values}]}; where there is no value there is a gap. */
  const lines = (figure, content) => {
    const long = (value) => content.unit && value >= 1000 ? `${whole(value / 1000)} s` : whole(value) + content.unit;
    const alone = (values, i) => values[i] != null && values[i - 1] == null && values[i + 1] == null;
    const series = content.series.map((one) => ({
      label: one.name,
      stroke: colour(one.tone),
      width: 2,
      points: { size: 5, fill: colour(one.tone), show: true, filter: (_, __, show) => show === false ? null : one.values.map((_, i) => i).filter((i) => alone(one.values, i)) },
      value: (_, value) => value == null ? "–" : long(value),
    }));
    return new uPlot({
      ...base(figure, 240),
      series: [{ label: "when", value: (_, at) => at == null ? "–" : clock.format(at * 1000) }, ...series],
      scales: { y: { range: (_, __, most) => [0, Math.max(most * 1.08, 4)] } },
      axes: [dates(), axis({ size: 60, values: (_, splits) => splits.map((one) => long(one)) })],
    }, [content.at, ...content.series.map((one) => one.values)], figure);
  };

  const kinds = { areas, curve, bars, lines };

  const draw = () => {
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      const kind = kinds[figure.dataset.chart];
      if (!kind || !globalThis.uPlot) continue;
      figure.querySelector(".uplot")?.remove();
      const content = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
      figure.chart = kind(figure, content);
    }
  };

  /* Live: parts that change by themselves are fetched again while the page is seen, unless they are in use. */
  const LIVE_MS = 10000;
  const written = new WeakMap();
  let timer;
  const inUse = (part) => part.contains(document.activeElement) || part.querySelector("details[open]");
  const whose = (page) => page.querySelector(".who")?.textContent;
  const renew = (fresh) => {
    if (whose(fresh) !== whose(document)) return location.reload();  /* Another tab has chosen another namespace. */
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.getElementById(part.id);
      if (!other) return location.reload();
      if (inUse(part) || other.innerHTML === (written.get(part) ?? part.innerHTML)) continue;
      written.set(part, other.innerHTML);
      part.replaceChildren(...other.childNodes);
    }
    localise();
  };
  const stale = document.createElement("p");
  stale.className = "fault";
  stale.setAttribute("role", "status");
  let renewed = Date.now();
  const live = async () => {
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (answer.status === 401) return location.reload();  /* The session has ended: the page asks for a key. */
      if (!answer.ok) throw new Error(answer.statusText);
      renew(new DOMParser().parseFromString(await answer.text(), "text/html"));
      renewed = Date.now();
      stale.remove();
    } catch {  /* Ebb, or a part of it, is away: the next time it may be there. */
      stale.textContent = `This page is not up to date: it could not be read again since ${clock.format(renewed)}.`;
      if (!stale.isConnected && !root.classList.contains("loading")) document.querySelector("main").prepend(stale);
    }
    wait(LIVE_MS);
  };
  const wait = (ms) => {
    clearTimeout(timer);
    if (!document.hidden && document.querySelector("[data-live]")) timer = setTimeout(live, ms);
  };
  document.addEventListener("visibilitychange", () => wait(0));
  wait(LIVE_MS);

  let seen = innerWidth;
  const start = () => { localise(); draw(); };
  dark.addEventListener("change", draw);
  addEventListener("resize", () => {
    if (innerWidth === seen) return;
    seen = innerWidth;
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      figure.chart?.setSize({ width: Math.max(figure.clientWidth, 200), height: figure.chart.height });
    }
  });
  start();
})();
