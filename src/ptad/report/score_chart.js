// The histogram of scores and the slider over it. Bin i holds scores in (edges[i - 1], edges[i]].

const scores = data.scores;
const beyond = (counts) => {
  const totals = new Array(scores.edges.length);
  let sum = counts[counts.length - 1];
  for (let i = scores.edges.length - 1; i >= 0; i -= 1) { totals[i] = sum; sum += counts[i]; }
  return totals;
};
const strangeBeyond = beyond(scores.counts);
const knownBeyond = scores.labelled ? beyond(scores.labelled.counts) : null;
const sum = (values) => values.reduce((a, b) => a + b, 0);

// The largest of 1, 2, 5, 10, 20, ... that is not above x, and at least 1.
function rounded(x) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, x)));
  return power * (x >= 5 * power ? 5 : x >= 2 * power ? 2 : 1);
}

function scoreChart(container) {
  const height = 260;
  const margin = { left: 52, right: 12, top: 8, bottom: 40 };
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
    const inner = { w: width - margin.left - margin.right, h: height - margin.top - margin.bottom };
    scale = (value) => margin.left + (high > low ? (value - low) / (high - low) : 0.5) * inner.w;
    const bars = Math.max(20, Math.min(90, Math.floor(inner.w / 9), scores.counts.length));
    const shown = joined(scores.counts, bars);
    const usual = joined(scores.usual, bars);
    const stretch = sum(scores.counts) / Math.max(1, sum(scores.usual));
    const most = Math.max(1, ...shown, ...usual.map((n) => n * stretch));
    // A few strange rows among many would be invisible on a plain axis.
    const logarithmic = most > 300;
    const size = (n) => inner.h * (logarithmic ? Math.log1p(n) / Math.log1p(most) : n / most);
    const bottom = margin.top + inner.h;

    const svg = draw('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Histogram of the scores of all rows, with the alarm level' });
    const ticks = logarithmic ? [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8] : [1, 2, 3, 4, 5].map((k) => k * rounded(most / 4));
    for (const tick of new Set(ticks.filter((t) => t <= most && t > 0))) {
      const y = bottom - size(tick);
      svg.append(draw('line', { x1: margin.left, x2: width - margin.right, y1: y, y2: y, class: 'stroke-line' }));
      const label = draw('text', { x: margin.left - 6, y: y + 4, 'text-anchor': 'end' });
      label.textContent = tick >= 1e6 ? `${tick / 1e6}M` : count(tick);
      svg.append(label);
    }
    const step = inner.w / bars;
    const columns = (kind) => shown.map((n, i) => draw('rect', {
      x: margin.left + i * step + 0.5, y: bottom - size(n), width: Math.max(1, step - 1), height: size(n), class: kind,
    }));
    clip = draw('rect', { x: 0, y: 0, width, height });
    const defs = draw('defs', {}, draw('clipPath', { id: 'beyond' }, clip));
    svg.append(defs, draw('g', {}, ...columns('fill-normal')), draw('g', { 'clip-path': 'url(#beyond)' }, ...columns('fill-strange')));

    let path = '';
    usual.forEach((n, i) => {
      const y = bottom - size(n * stretch);
      path += `${i ? 'L' : 'M'}${margin.left + i * step} ${y}L${margin.left + (i + 1) * step} ${y}`;
    });
    svg.append(draw('path', { d: path, class: 'stroke-usual' }));
    mark = draw('line', { y1: margin.top, y2: bottom, class: 'stroke-mark' });
    svg.append(mark, draw('line', { x1: margin.left, x2: width - margin.right, y1: bottom, y2: bottom, class: 'stroke-line' }));
    axis(svg, bottom, width);
    container.replaceChildren(legend(logarithmic), svg);
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
        const label = draw('text', { x, y: bottom + 16, 'text-anchor': 'middle' });
        label.textContent = short(value);
        svg.append(label);
      }
    }
    const title = draw('text', { x: (width + margin.left) / 2, y: bottom + 34, 'text-anchor': 'middle' });
    title.textContent = 'score (each step to the right is a multiple)';
    svg.append(title);
  }

  function legend(logarithmic) {
    const entry = (kind, text) => make('li', {}, make('i', { class: kind }), text);
    return make('ul', { class: 'legend' }, entry('is-normal', 'rows that look normal'), entry('is-strange', 'rows beyond the alarm level'),
      entry('is-line', 'what normal rows looked like in training'),
      make('li', { text: logarithmic ? 'Upwards: rows, each line ten times the one below' : 'Upwards: rows' }));
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

function thresholdText(index) {
  const n = strangeBeyond[index];
  const rate = index === scores.threshold_index ? data.rate : scores.rates[index];
  const parts = [`${plural(n, 'row', 'rows')} of ${count(data.n_rows)} (${percent(n / data.n_rows)}) `
    + `${n === 1 ? 'is' : 'are'} strange at a score above ${short(scores.edges[index])}. `
    + `Of normal rows, at most ${percent(rate)} would raise an alarm.`];
  if (knownBeyond) {
    const all = sum(scores.labelled.counts);
    parts.push(` ${count(knownBeyond[index])} of the ${count(all)} known anomalies are found (${percent(knownBeyond[index] / Math.max(1, all))});`
      + ` ${n ? percent(knownBeyond[index] / n) : 'none'} of the alarms are right.`);
  }
  return parts.join('');
}
