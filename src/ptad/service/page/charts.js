// Charts as SVG: the loss of a fit while it runs, and the histogram of scores with the alarm level.

import { count, draw, make, responsive, short, sum } from './dom.js';

export function lossChart(container) {
  let points = [];
  let last = 1;
  const paint = (width) => {
    const height = 220;
    if (!points.length) { container.replaceChildren(make('p', { class: 'quiet', text: 'The curve begins with the first steps.' })); return; }
    const values = points.map((p) => Math.log(Math.max(p.loss, 1e-12)));
    const low = Math.min(...values) - 0.02;
    const high = Math.max(...values) + 0.02;
    const x = (p) => 52 + ((p.group * last + p.step) / (last * (points[points.length - 1].group + 1))) * (width - 66);
    const y = (value) => 10 + ((high - value) / (high - low)) * (height - 46);
    const svg = draw('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `Loss over the training steps, now ${short(points[points.length - 1].loss)}` });
    for (const share of [0, 0.5, 1]) {
      const at = low + share * (high - low);
      const label = draw('text', { x: 46, y: y(at) + 4, 'text-anchor': 'end' });
      label.textContent = short(Math.exp(at));
      svg.append(draw('line', { x1: 52, x2: width - 14, y1: y(at), y2: y(at), class: 'stroke-line' }), label);
    }
    for (const group of new Set(points.map((p) => p.group))) {
      const own = points.map((p, i) => [p, values[i]]).filter(([p]) => p.group === group);
      const path = own.map(([p, v], i) => `${i ? 'L' : 'M'}${x(p).toFixed(1)} ${y(v).toFixed(1)}`).join('');
      const [first] = own[0];
      const [end] = own[own.length - 1];
      svg.append(draw('path', { d: `${path}L${x(end)} ${y(low)}L${x(first)} ${y(low)}Z`, class: 'area' }), draw('path', { d: path, class: 'stroke-normal' }));
    }
    const tip = points[points.length - 1];
    svg.append(draw('circle', { cx: x(tip), cy: y(values[values.length - 1]), r: 4, class: 'dot' }));
    const title = draw('text', { x: width / 2 + 24, y: height - 6, 'text-anchor': 'middle' });
    title.textContent = `training step, 0 to ${count(last)}; the lower the loss, the better the rows are understood`;
    svg.append(title);
    container.replaceChildren(svg);
  };
  let width = 0;
  responsive(container, (now) => { width = now; paint(now); });
  return (entry) => {
    // a fit that went on from a checkpoint tells some steps again
    points = points.filter((p) => p.group < entry.group || (p.group === entry.group && p.step < entry.step));
    points.push(entry);
    last = entry.steps;
    if (width) paint(width);
  };
}

const rounded = (x) => {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, x)));
  return power * (x >= 5 * power ? 5 : x >= 2 * power ? 2 : 1);
};

// Bin i holds the scores in (edges[i - 1], edges[i]].
export function scoreChart(container, scores) {
  const height = 260;
  const margin = { left: 52, right: 12, top: 8, bottom: 40 };
  const low = Math.log(Math.max(scores.edges[0], 1e-9));
  const high = Math.log(Math.max(scores.edges[scores.edges.length - 1], 1e-9));
  let clip = null;
  let mark = null;
  let scale = null;
  let index = scores.threshold_index;
  const place = (edge) => scale(Math.max(Math.log(edge), low));

  function joined(counts, bars) {
    const found = new Array(bars).fill(0);
    counts.forEach((n, i) => {
      const right = Math.max(low, Math.log(scores.edges[Math.min(i, scores.edges.length - 1)]));
      const left = Math.max(low, Math.log(scores.edges[Math.max(0, i - 1)]));
      const share = high > low ? ((left + right) / 2 - low) / (high - low) : 0;
      found[Math.max(0, Math.min(bars - 1, Math.floor(share * bars)))] += n;
    });
    return found;
  }

  function paint(width) {
    const inner = { w: width - margin.left - margin.right, h: height - margin.top - margin.bottom };
    scale = (value) => margin.left + (high > low ? (value - low) / (high - low) : 0.5) * inner.w;
    const bars = Math.max(20, Math.min(90, Math.floor(inner.w / 9), scores.counts.length));
    const shown = joined(scores.counts, bars);
    const usual = joined(scores.usual, bars);
    const stretch = sum(scores.counts) / Math.max(1, sum(scores.usual));
    const most = Math.max(1, ...shown, ...usual.map((n) => n * stretch));
    const logarithmic = most > 300; // a few strange rows among many would be invisible on a plain axis
    const size = (n) => inner.h * (logarithmic ? Math.log1p(n) / Math.log1p(most) : n / most);
    const bottom = margin.top + inner.h;
    const svg = draw('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Histogram of the scores of all rows, with the alarm level' });
    const ticks = logarithmic ? [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7] : [1, 2, 3, 4, 5].map((k) => k * rounded(most / 4));
    for (const tick of new Set(ticks.filter((t) => t <= most))) {
      const y = bottom - size(tick);
      const label = draw('text', { x: margin.left - 6, y: y + 4, 'text-anchor': 'end' });
      label.textContent = tick >= 1e6 ? `${tick / 1e6}M` : count(tick);
      svg.append(draw('line', { x1: margin.left, x2: width - margin.right, y1: y, y2: y, class: 'stroke-line' }), label);
    }
    const step = inner.w / bars;
    const columns = (kind) => shown.map((n, i) => draw('rect', { x: margin.left + i * step + 0.5, y: bottom - size(n), width: Math.max(1, step - 1), height: size(n), class: kind }));
    clip = draw('rect', { x: 0, y: 0, width, height });
    svg.append(draw('defs', {}, draw('clipPath', { id: 'beyond' }, clip)), draw('g', {}, ...columns('fill-normal')), draw('g', { 'clip-path': 'url(#beyond)' }, ...columns('fill-strange')));
    const path = usual.map((n, i) => `${i ? 'L' : 'M'}${margin.left + i * step} ${bottom - size(n * stretch)}h${step}`).join('');
    svg.append(draw('path', { d: path, class: 'stroke-usual' }));
    mark = draw('line', { y1: margin.top, y2: bottom, class: 'stroke-mark' });
    svg.append(mark, draw('line', { x1: margin.left, x2: width - margin.right, y1: bottom, y2: bottom, class: 'stroke-line' }));
    axis(svg, bottom, width);
    const entry = (kind, text) => make('li', {}, make('i', { class: kind }), text);
    container.replaceChildren(make('ul', { class: 'legend' }, entry('is-normal', 'rows that look normal'), entry('is-strange', 'rows beyond the alarm level'), entry('is-line', 'normal rows in training'),
      make('li', { text: logarithmic ? 'Upwards: rows, each line ten times the one below' : 'Upwards: rows' })), svg);
    move(index);
  }

  function axis(svg, bottom, width) {
    const span = (high - low) / Math.LN10;
    const steps = span < 1.2 ? [1, 1.5, 2, 3, 5, 7] : span < 3.5 ? [1, 2, 5] : [1];
    let previous = -100;
    for (let power = Math.floor(low / Math.LN10); power <= Math.ceil(high / Math.LN10); power += 1) {
      for (const step of steps) {
        const value = step * 10 ** power;
        const x = place(value);
        if (Math.log(value) < low || Math.log(value) > high || x - previous < 46 || x > width - 16) continue;
        previous = x;
        const label = draw('text', { x, y: bottom + 16, 'text-anchor': 'middle' });
        label.textContent = short(value);
        svg.append(label);
      }
    }
    const title = draw('text', { x: (width + margin.left) / 2, y: bottom + 34, 'text-anchor': 'middle' });
    title.textContent = 'score (each step to the right is a multiple)';
    svg.append(title);
  }

  function move(to) {
    index = to;
    if (!clip) return;
    const x = place(scores.edges[index]);
    clip.setAttribute('x', x);
    mark.setAttribute('x1', x);
    mark.setAttribute('x2', x);
  }

  responsive(container, paint);
  return move;
}
