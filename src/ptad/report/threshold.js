// The threshold: the histogram with its slider, its meaning in words, and the table of the highest scores.

import { Legend, Sheet, useWidth } from './components.js';
import { RowTable } from './row_table.js';
import { chosen, count, inPercent, percent, plural, short, sum } from './text.js';
import { html, useMemo, useRef, useState } from './vendor/preact.js';

const HEIGHT = 260;
const LEFT = 52;
const RIGHT = 12;
const TOP = 8;
const BOTTOM = HEIGHT - 40;
const FEWEST_BARS = 12;
const MOST_BARS = 80;

// The largest of 1, 2, 5, 10, 20, ... that is not above x, and at least 1.
function rounded(x) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, x)));
  return power * (x >= 5 * power ? 5 : x >= 2 * power ? 2 : 1);
}

// The scale of the axis: linear near the scores of normal rows, logarithmic far away.
const axisOf = ([centre, unit]) => (score) => Math.asinh((score - centre) / unit);

// The positions of the fine bins on the axis.
function middles({ edges, scale }) {
  const places = edges.map(axisOf(scale));
  return [...places, places.at(-1)].map((place, i) => (place + places[Math.max(0, i - 1)]) / 2);
}

function quantile(places, counts, share) {
  let left = share * sum(counts);
  return places[Math.max(0, counts.findIndex((n) => (left -= n) <= 0))];
}

// Fine bins merged into bars of equal width by the rule of Freedman and Diaconis, with an edge at the threshold of the
// target rate, so that no bar has rows of both sides.
function barsOf(scores) {
  const places = middles(scores);
  const spread = axisOf(scores.scale);
  const [low, middle, high] = [scores.edges[0], scores.threshold, scores.edges.at(-1)].map(spread);
  const range = (counts) => quantile(places, counts, 0.75) - quantile(places, counts, 0.25);
  // the smaller range: that of a table with two groups, for instance after a drift, would be too large
  const quartiles = Math.min(...[scores.counts, scores.calibration].map(range).filter((r) => r > 0), high - low);
  const span = Math.max(high - low, 1e-9);
  const rule = (2 * quartiles) / Math.cbrt(Math.max(1, sum(scores.counts)));
  const size = Math.min(Math.max(rule, span / MOST_BARS), span / FEWEST_BARS);
  const left = Math.ceil(Math.max(0, middle - low) / size - 1e-9);
  const n = left + Math.max(1, Math.ceil(Math.max(0, high - middle) / size - 1e-9));
  const start = middle - left * size;
  const joined = (counts) => {
    const heights = new Array(n).fill(0);
    counts.forEach((amount, i) => {
      // the bin that ends at the threshold belongs to the bars below it
      const bar = i <= scores.threshold_index
        ? Math.min(Math.floor((places[i] - start) / size), left - 1)
        : Math.max(Math.floor((places[i] - start) / size), left);
      heights[Math.max(0, Math.min(n - 1, bar))] += amount;
    });
    return heights;
  };
  // the outermost bars end where the axis does
  const ends = Array.from({ length: n + 1 }, (_, i) => Math.max(low, Math.min(high, start + i * size)));
  return { low, span, ends, shown: joined(scores.counts), usual: joined(scores.calibration) };
}

// Round numbers: 0, then from the middle outwards, with enough space for their texts.
function ticksOf(scores, place, width) {
  const powers = Array.from({ length: 22 }, (_, i) => 10 ** (i - 6));
  const values = powers.flatMap((power) => [1, 2, 5, -1, -2, -5].map((step) => step * power));
  const spread = axisOf(scores.scale);
  values.sort((a, b) => Math.abs(spread(a)) - Math.abs(spread(b)));
  const taken = [];
  for (const value of [0, ...values]) {
    const x = place(value);
    if (x < LEFT || x > width - 16 || taken.some((other) => Math.abs(other.x - x) < 46)) continue;
    taken.push({ x, value });
  }
  return taken;
}

// The histogram of scores; bin i counts the scores in (edges[i - 1], edges[i]]. ``index`` is the edge of the threshold.
function ScoreChart({ scores, index }) {
  const box = useRef(null);
  const width = Math.max(240, useWidth(box));
  const bars = useMemo(() => barsOf(scores), [scores]);
  const spread = axisOf(scores.scale);
  const across = (x) => LEFT + ((x - bars.low) / bars.span) * (width - LEFT - RIGHT);
  const place = (score) => across(spread(score));
  const ends = bars.ends.map(across);
  const stretch = sum(scores.counts) / Math.max(1, sum(scores.calibration));
  const most = Math.max(1, ...bars.shown, ...bars.usual.map((n) => n * stretch));
  // a few anomalies among many rows would be invisible on a linear axis
  const logarithmic = most > 100;
  const tall = (n) => (BOTTOM - TOP) * (logarithmic ? Math.log1p(n) / Math.log1p(most) : n / most);
  const ticks = logarithmic
    ? [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8]
    : [1, 2, 3, 4, 5, 6, 7].map((k) => k * rounded(most / 3));
  const threshold = place(scores.edges[index]);
  const outline = bars.usual.map((n, i) => `${i ? 'L' : 'M'}${ends[i]} ${BOTTOM - tall(n * stretch)}H${ends[i + 1]}`);
  const label = `Histogram of the scores of ${count(sum(scores.counts))} rows, from ${short(scores.edges[0])} to ` +
    `${short(scores.edges.at(-1))}; the threshold is at ${short(scores.edges[index])}`;

  const line = (y, text) =>
    html`
      <line class="rule" x1=${LEFT} x2=${width - RIGHT} y1=${y} y2=${y} />
      <text x=${LEFT - 6} y=${y + 4} text-anchor="end">${text}</text>
    `;
  const column = (n, i) => {
    const size = Math.max(1, ends[i + 1] - ends[i] - 1);
    return html`<rect x=${ends[i] + 0.5} y=${BOTTOM - tall(n)} width=${size} height=${tall(n)} />`;
  };
  return html`
    <${Legend} entries=${[
      ['normal', 'rows up to the threshold'],
      ['anomaly', 'flagged rows'],
      ['line', 'calibration rows, scaled to this table'],
      ['', logarithmic ? 'vertical: count (log scale)' : 'vertical: count'],
    ]} />
    <div id="score-chart" class="chart" ref=${box}>
      <svg viewBox=${`0 0 ${width} ${HEIGHT}`} role="img" aria-label=${label}>
        ${[...new Set(ticks)].filter((t) => t <= most).map((tick) =>
          line(BOTTOM - tall(tick), tick >= 1e6 ? `${tick / 1e6}M` : count(tick))
        )}
        <defs><clipPath id="beyond"><rect x=${threshold} y="0" width=${width} height=${HEIGHT} /></clipPath></defs>
        <g class="normal">${bars.shown.map(column)}</g>
        <g class="anomaly" clip-path="url(#beyond)">${bars.shown.map(column)}</g>
        <path class="outline" d=${outline.join('')} />
        <line class="stroke-mark" x1=${threshold} x2=${threshold} y1=${TOP} y2=${BOTTOM} />
        ${line(BOTTOM)}
        ${ticksOf(scores, place, width).map(({ x, value }) =>
          html`<text x=${x} y=${BOTTOM + 16} text-anchor="middle">${short(value)}</text>`
        )}
        <text x=${(width + LEFT) / 2} y=${BOTTOM + 34} text-anchor="middle">score (symmetric log scale)</text>
      </svg>
    </div>
  `;
}

// The number of scores above the edge i.
const beyond = (counts, i) => sum(counts.slice(i + 1));

// What a threshold means, in words.
function meaning({ n_rows: all, scores, training_table: isTraining }, i, rate) {
  const n = beyond(scores.counts, i);
  const threshold = `the threshold of ${short(scores.edges[i])}`;
  const rows = all === 1 ? 'The row' : `${plural(n, 'row')} of ${count(all)}${inPercent(n, all)}`;
  const are = chosen(n, 'is flagged: its score is', 'are flagged: their scores are');
  const none = all === 1 ? 'The row is not flagged: its' : `No row of ${count(all)} is flagged: no`;
  const start = n
    ? `${rows} ${are} above ${threshold}.`
    : `${none} score is ${all === 1 ? 'not ' : ''}above ${threshold}.`;
  const text = `${start} Of rows like the training rows, on average at most ${percent(rate)} are flagged.`;
  if (!scores.labelled) return text;
  const known = beyond(scores.labelled.counts, i);
  const anomalies = sum(scores.labelled.counts);
  const described = isTraining
    ? plural(anomalies, 'anomaly of the training table', 'anomalies of the training table')
    : plural(anomalies, 'known anomaly', 'known anomalies');
  const share = `${count(known)} of the ${described} ${chosen(known, 'is', 'are')} found${
    inPercent(known, anomalies)
  }.`;
  const right = `${count(known)} of the ${plural(n, 'flagged row')} ` +
    `${chosen(known, 'is a known anomaly', 'are known anomalies')}${inPercent(known, n)}.`;
  return [text, share, ...(n ? [right] : [])].join(' ');
}

function topNote({ top, values_shown: shown }) {
  const n = top.rows.length;
  return (
    `The ${n === 1 ? 'row with the highest score' : `${count(n)} rows with the highest scores`}; ` +
    `${top.counting?.note ?? 'rows are counted from 0'}. The redder a cell, the more it contributes to the score. ` +
    `Choose a row to see ${shown ? 'what was expected' : 'its reasons'}, or a heading to sort.` +
    (shown ? '' : ' This report was made without values.')
  );
}

// ``keep``, if given, makes the rate at the slider that of the model.
export function Threshold({ data, keep }) {
  const { scores } = data;
  const [index, setIndex] = useState(scores.threshold_index);
  const slider = useRef(null);
  const isTarget = index === scores.threshold_index;
  const rate = isTarget ? data.rate : scores.rates[index];
  const last = scores.edges.length - 1;
  const reset = () => {
    setIndex(scores.threshold_index);
    slider.current.focus();
  };
  const spoken = `score ${short(scores.edges[index])}, ${plural(beyond(scores.counts, index), 'flagged row')}`;
  return html`
    <${Sheet} title="Scores and threshold">
      <p>
        Every row has a score; the higher, the less it looks like the training rows. Rows right of the line are
        flagged. Move the line to see how their number changes.
      </p>
      <${ScoreChart} scores=${scores} index=${index} />
      <div class="slider">
        <input id="threshold" type="range" min="0" max=${last} step="1" value=${index} ref=${slider}
          style=${{ '--at': `${(100 * index) / Math.max(1, last)}%` }}
          aria-valuetext=${spoken} onInput=${(event) => setIndex(Number(event.target.value))} />
        <label for="threshold">Threshold</label>
        <div class="actions">
          <button id="reset" type="button" disabled=${isTarget} onClick=${reset}>Back to the target rate</button>
          ${keep && html`
            <button id="keep" type="button" disabled=${isTarget || rate >= 1} onClick=${() => keep(rate)}>
              Use this false-alarm rate from now on
            </button>
          `}
        </div>
      </div>
      <p id="threshold-text" role="status" aria-live="polite">${meaning(data, index, rate)}</p>
      <//>
      <${Sheet} title="Highest scores">
        <p id="top-note">${topNote(data)}</p>
        <${RowTable} data=${data} threshold=${scores.edges[index]} />
        <//>
  `;
}
