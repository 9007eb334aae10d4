// The histogram of scores with the threshold over it. Bin i holds the scores in (edges[i - 1], edges[i]].

import { count, draw, legend, responsive, short, sum, write } from './dom.js';

const HEIGHT = 260;
const MARGIN = { left: 52, right: 12, top: 8, bottom: 40 };

// The largest of 1, 2, 5, 10, 20, ... that is not above x, and at least 1.
function rounded(x) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, x)));
  return power * (x >= 5 * power ? 5 : x >= 2 * power ? 2 : 1);
}

// Paints into the container; returns a function that moves the threshold to an edge.
export function scoreChart(container, scores) {
  const [centre, unit] = scores.scale;
  const spread = (score) => Math.asinh((score - centre) / unit); // linear near normal rows, logarithmic far away
  const last = scores.edges.length - 1;
  const low = spread(scores.edges[0]);
  const high = spread(scores.edges[last]);
  let clip = null;
  let mark = null;
  let scale = null;
  let index = scores.threshold_index;

  // Fine bins are joined into bars of equal width.
  function joined(counts, bars) {
    const found = new Array(bars).fill(0);
    counts.forEach((n, i) => {
      const middle = (spread(scores.edges[Math.max(0, i - 1)]) + spread(scores.edges[Math.min(i, last)])) / 2;
      const share = high > low ? (middle - low) / (high - low) : 0;
      found[Math.max(0, Math.min(bars - 1, Math.floor(share * bars)))] += n;
    });
    return found;
  }

  function paint(width) {
    const inner = { w: width - MARGIN.left - MARGIN.right, h: HEIGHT - MARGIN.top - MARGIN.bottom };
    scale = (score) => MARGIN.left + (high > low ? (spread(score) - low) / (high - low) : 0.5) * inner.w;
    const bars = Math.max(20, Math.min(90, Math.floor(inner.w / 9), scores.counts.length));
    const shown = joined(scores.counts, bars);
    const usual = joined(scores.calibration, bars);
    const stretch = sum(scores.counts) / Math.max(1, sum(scores.calibration));
    const most = Math.max(1, ...shown, ...usual.map((n) => n * stretch));
    // A few anomalies among many rows would be invisible on a plain axis.
    const logarithmic = most > 300;
    const size = (n) => inner.h * (logarithmic ? Math.log1p(n) / Math.log1p(most) : n / most);
    const bottom = MARGIN.top + inner.h;
    const across = (y) =>
      draw('line', { x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y, class: 'stroke-line' });
    const label = 'Histogram of the scores of all rows, with the threshold';
    const svg = draw('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, role: 'img', 'aria-label': label });
    const ticks = logarithmic
      ? [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8]
      : [1, 2, 3, 4, 5, 6, 7].map((k) => k * rounded(most / 3));
    for (const tick of new Set(ticks.filter((t) => t <= most))) {
      const y = bottom - size(tick);
      const text = tick >= 1e6 ? `${tick / 1e6}M` : count(tick);
      svg.append(across(y), write(text, { x: MARGIN.left - 6, y: y + 4, 'text-anchor': 'end' }));
    }
    const step = inner.w / bars;
    const columns = (kind) =>
      shown.map((n, i) =>
        draw('rect', {
          x: MARGIN.left + i * step + 0.5,
          y: bottom - size(n),
          width: Math.max(1, step - 1),
          height: size(n),
          class: kind,
        })
      );
    clip = draw('rect', { x: 0, y: 0, width, height: HEIGHT });
    svg.append(
      draw('defs', {}, draw('clipPath', { id: 'beyond' }, clip)),
      draw('g', {}, ...columns('fill-normal')),
      draw('g', { 'clip-path': 'url(#beyond)' }, ...columns('fill-anomaly')),
    );
    const path = usual
      .map((n, i) => `${i ? 'L' : 'M'}${MARGIN.left + i * step} ${bottom - size(n * stretch)}h${step}`)
      .join('');
    mark = draw('line', { y1: MARGIN.top, y2: bottom, class: 'stroke-mark' });
    svg.append(draw('path', { d: path, class: 'stroke-usual' }), mark, across(bottom));
    axis(svg, bottom, width);
    container.replaceChildren(
      legend(
        ['is-normal', 'rows up to the threshold'],
        ['is-anomaly', 'flagged rows'],
        ['is-line', 'calibration rows, scaled to this table'],
        ['', logarithmic ? 'vertical: count (log scale)' : 'vertical: count'],
      ),
      svg,
    );
    move(index);
  }

  // Round numbers: 0, then from the middle outwards, as far apart as their texts need.
  function axis(svg, bottom, width) {
    const values = [];
    for (let power = -6; power <= 15; power += 1) {
      for (const step of [1, 2, 5]) values.push(step * 10 ** power, -step * 10 ** power);
    }
    values.sort((a, b) => Math.abs(spread(a)) - Math.abs(spread(b)));
    const taken = [];
    for (const value of [0, ...values]) {
      const x = scale(value);
      if (x < MARGIN.left || x > width - 16 || taken.some((other) => Math.abs(other - x) < 46)) continue;
      taken.push(x);
      svg.append(write(short(value), { x, y: bottom + 16, 'text-anchor': 'middle' }));
    }
    const middle = (width + MARGIN.left) / 2;
    svg.append(write('score (symmetric log scale)', { x: middle, y: bottom + 34, 'text-anchor': 'middle' }));
  }

  function move(to) {
    index = to;
    if (!clip) return;
    const x = scale(scores.edges[index]);
    clip.setAttribute('x', x);
    mark.setAttribute('x1', x);
    mark.setAttribute('x2', x);
  }

  responsive(container, paint);
  return move;
}
