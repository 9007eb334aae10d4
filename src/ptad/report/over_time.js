// Scores and flag rate over time: a chart of each, one sentence, and the figures as a table.

import { Folded, Legend, mounted, Scroller, Sheet } from './components.js';
import { count, percent, plural, short, sum } from './dom.js';
import { colour, LineChart } from './line_chart.js';
import { html } from './vendor/preact.js';

const FEW_ROWS = 20; // of fewer, a rate says little

const written = (options) => {
  const format = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', ...options });
  return (seconds) => format.format(new Date(1000 * seconds));
};
const clock = written({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
const day = written({ day: 'numeric', month: 'short', year: 'numeric' });
const month = written({ month: 'short', year: 'numeric' });
const year = written({ year: 'numeric' });
const quarter = (seconds) => `Q${Math.floor(new Date(1000 * seconds).getUTCMonth() / 3) + 1} ${year(seconds)}`;
const week = (seconds) => `week of ${day(seconds)}`;
const NAMES = { day, week, month, quarter, year };

// On the axis: short, since the sentence above has the year.
const hour = written({ hour: '2-digit', minute: '2-digit' });
const shortDay = written({ day: 'numeric', month: 'short' });
const TICKS = { day: shortDay, week: shortDay, month, quarter: month, year };
const tickText = (period, seconds) =>
  (TICKS[period] || ((time) => (time % 86400 ? hour(time) : shortDay(time))))(seconds);

// What a period is called: a day, the week of a day, a month.
export const periodText = (period, seconds) => (NAMES[period] || clock)(seconds);

const rateOf = ({ rows, flagged }) => flagged / Math.max(1, rows);

function summary(over, rate) {
  const { buckets, period } = over;
  const counted = buckets.filter(({ rows }) => rows >= FEW_ROWS);
  const worst = counted.reduce((a, b) => (rateOf(b) > rateOf(a) ? b : a), counted[0]);
  const rows = `${count(worst.flagged)} of ${plural(worst.rows, 'row', 'rows')}`;
  const begin = (seconds) => periodText(period === 'week' ? 'day' : period, seconds);
  const without = over.without
    ? ` ${plural(over.without, 'row', 'rows')} without a date ${over.without === 1 ? 'is' : 'are'} not in it.`
    : '';
  return (
    `Rows by ${period} of ${over.column}, from ${begin(buckets[0].time)} to ${
      begin(buckets.at(-1).time)
    }. The highest flag rate is ${percent(rateOf(worst))} ` +
    `(${periodText(period, worst.time)}, ${rows}); the target false-alarm rate is ${percent(rate)}.${without}`
  );
}

function Figures({ over }) {
  const { buckets, period } = over;
  const heads = ['Period', 'Rows', 'Flagged', 'Flag rate', ...over.quantiles.map((q) => `${percent(q)} of scores`)];
  const line = (bucket) =>
    html`
      <tr>
        <th scope="row">${periodText(period, bucket.time)}</th>
        <td class="number">${count(bucket.rows)}</td>
        <td class="number">${count(bucket.flagged)}</td>
        <td class="number">${bucket.rows < FEW_ROWS ? 'few rows' : percent(rateOf(bucket))}</td>
        ${bucket.scores.map((score) => html`<td class="number">${short(score)}</td>`)}
      </tr>
    `;
  return html`
    <${Folded} summary=${`Figures by ${period}`}>
      <p class="quiet">So much of the scores of a ${period} lies at or below the figure.</p>
      <${Scroller} label=${`Figures by ${period}`}>
        <table>
          <thead>
            <tr>
            ${heads.map((text, i) => html`<th scope="col" class=${i ? 'number' : ''}>${text}</th>`)}
          </tr>
          </thead>
          <tbody>${buckets.map(line)}</tbody>
        </table>
        <//>
        <//>
  `;
}

// ``over``: {column, period, quantiles (three), threshold, without, buckets: [{time, rows, flagged, scores}]}, times in
// seconds since 1970; ``rate``: the target false-alarm rate.
export function OverTime({ over, rate }) {
  const { buckets, period, threshold } = over;
  if (!buckets.length) {
    return html`
      <${Sheet} title="Scores over time">
        <p id="over-time">There are too few rows by ${over.column} to show scores over time.</p>
        <//>
    `;
  }
  const times = buckets.map((b) => b.time);
  const at = (i) => buckets.map((b) => b.scores[i]);
  const name = (seconds) => periodText(period, seconds);
  const highest = Math.max(rate, ...buckets.filter((b) => b.rows >= FEW_ROWS).map(rateOf));
  const scores = {
    label: `Scores by ${period}: median, 10 % and 90 % quantile, and the threshold of ${short(threshold)}`,
    data: [times, at(2), at(0), at(1), times.map(() => threshold)],
    series: [
      { label: '90 % of scores', stroke: 'transparent', value: short },
      { label: '10 % of scores', stroke: 'transparent', value: short },
      { label: 'median', stroke: '--normal', width: 2, value: short },
      { label: 'threshold', stroke: '--ink', dash: [5, 3], value: short },
    ],
    bands: [{ series: [1, 2], fill: () => colour('--normal', 0.18) }],
    axis: short,
  };
  const flags = {
    label: `Flag rate by ${period}: at most ${percent(highest)}, target ${percent(rate)}`,
    data: [times, buckets.map((b) => (b.rows < FEW_ROWS ? null : rateOf(b))), times.map(() => rate)],
    series: [
      { label: 'flag rate', stroke: '--anomaly', width: 2, value: percent, points: true },
      { label: 'target', stroke: '--ink', dash: [5, 3], value: percent },
    ],
    axis: percent,
    range: (_, __, high) => [0, 1.1 * high],
  };
  const n = sum(buckets.map((b) => b.flagged));
  return html`
    <${Sheet} title="Scores over time">
      <p id="over-time">${summary(over, rate)}</p>
      <div class="two">
        <div>
          <h3>Flag rate (${plural(n, 'flagged row', 'flagged rows')})</h3>
          <${Legend} entries=${[['is-anomaly', 'flagged'], ['is-line', 'target false-alarm rate']]} />
          <${LineChart} ...${flags} name=${name} tick=${(seconds) => tickText(period, seconds)} />
        </div>
        <div>
          <h3>Scores</h3>
          <${Legend} entries=${[
            ['is-normal', 'median, and from the 10 % to the 90 % quantile'],
            ['is-line', 'threshold'],
          ]} />
          <${LineChart} ...${scores} name=${name} tick=${(seconds) => tickText(period, seconds)} />
        </div>
      </div>
      <${Figures} over=${over} />
      <//>
  `;
}

export const overTimeSheet = (over, rate) => mounted(html`<${OverTime} over=${over} rate=${rate} />`);
