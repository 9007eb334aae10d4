// The histogram of scores with the alarm level over it. Bin i holds the scores in (edges[i - 1], edges[i]].

import { count, draw, legend, responsive, short, sum, write } from './dom.js';

const HEIGHT = 260;
const MARGIN = { left: 52, right: 12, top: 8, bottom: 40 };

// The largest of 1, 2, 5, 10, 20, ... that is not above x, and at least 1.
function rounded(x) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, x)));
  return power * (x >= 5 * power ? 5 : x >= 2 * power ? 2 : 1);
}

// Paints into the container; returns a function that moves the alarm level to an edge.
export function scoreChart(container, scores) {
  const low = Math.log(Math.max(scores.edges[0], 1e-9));
  const high = Math.log(Math.max(scores.edges[scores.edges.length - 1], 1e-9));
  let clip = null;
  let mark = null;
  let scale = null;
  let index = scores.threshold_index;
  const place = (edge) => scale(Math.max(Math.log(edge), low));

  // Fine bins are joined into bars of equal width on the logarithmic axis.
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
    const inner = { w: width - MARGIN.left - MARGIN.right, h: HEIGHT - MARGIN.top - MARGIN.bottom };
    scale = (value) => MARGIN.left + (high > low ? (value - low) / (high - low) : 0.5) * inner.w;
    const bars = Math.max(20, Math.min(90, Math.floor(inner.w / 9), scores.counts.length));
    const shown = joined(scores.counts, bars);
    const usual = joined(scores.usual, bars);
    const stretch = sum(scores.counts) / Math.max(1, sum(scores.usual));
    const most = Math.max(1, ...shown, ...usual.map((n) => n * stretch));
    // A few strange rows among many would be invisible on a plain axis.
    const logarithmic = most > 300;
    const size = (n) => inner.h * (logarithmic ? Math.log1p(n) / Math.log1p(most) : n / most);
    const bottom = MARGIN.top + inner.h;
    const across = (y) => draw('line', { x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y, class: 'stroke-line' });
    const svg = draw('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, role: 'img', 'aria-label': 'Histogram of the scores of all rows, with the alarm level' });
    const ticks = logarithmic ? [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8] : [1, 2, 3, 4, 5, 6, 7].map((k) => k * rounded(most / 3));
    for (const tick of new Set(ticks.filter((t) => t <= most))) {
      const y = bottom - size(tick);
      svg.append(across(y), write(tick >= 1e6 ? `${tick / 1e6}M` : count(tick), { x: MARGIN.left - 6, y: y + 4, 'text-anchor': 'end' }));
    }
    const step = inner.w / bars;
    const columns = (kind) => shown.map((n, i) => draw('rect', { x: MARGIN.left + i * step + 0.5, y: bottom - size(n), width: Math.max(1, step - 1), height: size(n), class: kind }));
    clip = draw('rect', { x: 0, y: 0, width, height: HEIGHT });
    svg.append(draw('defs', {}, draw('clipPath', { id: 'beyond' }, clip)), draw('g', {}, ...columns('fill-normal')), draw('g', { 'clip-path': 'url(#beyond)' }, ...columns('fill-strange')));
    const path = usual.map((n, i) => `${i ? 'L' : 'M'}${MARGIN.left + i * step} ${bottom - size(n * stretch)}h${step}`).join('');
    mark = draw('line', { y1: MARGIN.top, y2: bottom, class: 'stroke-mark' });
    svg.append(draw('path', { d: path, class: 'stroke-usual' }), mark, across(bottom));
    axis(svg, bottom, width);
    container.replaceChildren(legend(['is-normal', 'rows that look normal'], ['is-strange', 'rows beyond the alarm level'], ['is-line', 'normal rows in training'],
      ['', logarithmic ? 'Upwards: rows, each line ten times the one below' : 'Upwards: rows']), svg);
    move(index);
  }

  function axis(svg, bottom, width) {
    const span = (high - low) / Math.LN10;
    const steps = span < 1.2 ? [1, 1.5, 2, 3, 5, 7] : span < 3.5 ? [1, 2, 5] : [1];
    let last = -100;
    for (let power = Math.floor(low / Math.LN10); power <= Math.ceil(high / Math.LN10); power += 1) {
      for (const step of steps) {
        const value = step * 10 ** power;
        const x = place(value);
        if (Math.log(value) < low || Math.log(value) > high || x - last < 46 || x > width - 16) continue;
        last = x;
        svg.append(write(short(value), { x, y: bottom + 16, 'text-anchor': 'middle' }));
      }
    }
    svg.append(write('score (each step to the right is a multiple)', { x: (width + MARGIN.left) / 2, y: bottom + 34, 'text-anchor': 'middle' }));
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
