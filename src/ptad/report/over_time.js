// Scores and flag rate over time: a chart of each, one sentence, and the figures as a table.

import { Folded, Legend, Sheet, Table } from './components.js';
import { colour, DASH, Plot } from './plot.js';
import { chosen, count, percent, plural, short, sum } from './text.js';
import { html } from './vendor/preact.js';
import uPlot from './vendor/uplot.js';

const FEW_ROWS = 20; // the fewest for which a rate is shown

export function timeWriter(options, timeZone = 'UTC') {
  const format = new Intl.DateTimeFormat('en-GB', { timeZone, ...options });
  return (seconds) => format.format(new Date(1000 * seconds));
}
const clock = timeWriter({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
const day = timeWriter({ day: 'numeric', month: 'short', year: 'numeric' });
const month = timeWriter({ month: 'short', year: 'numeric' });
const year = timeWriter({ year: 'numeric' });
const quarter = (seconds) => `Q${Math.floor(new Date(1000 * seconds).getUTCMonth() / 3) + 1} ${year(seconds)}`;
const week = (seconds) => `week of ${day(seconds)}`;
// The name of a period; of periods shorter than a day, its time.
const NAMES = { day, week, month, quarter, year };

// Short names for the axis; the summary above has the year.
const hour = timeWriter({ hour: '2-digit', minute: '2-digit' });
const shortDay = timeWriter({ day: 'numeric', month: 'short' });
const hourOrDay = (seconds) => (seconds % 86400 ? hour(seconds) : shortDay(seconds));
const TICKS = { day: shortDay, week: shortDay, month, quarter: month, year };

const rateOf = ({ rows, flagged }) => (rows < FEW_ROWS ? null : flagged / rows);
export const rateText = (bucket) => (bucket.rows < FEW_ROWS ? 'few rows' : percent(rateOf(bucket)));

// Without a few rows far away, as of a wrong year, which would squeeze all others into one line.
function withoutFar(buckets) {
  let shown = buckets;
  const isFar = (end, next) =>
    end.rows < FEW_ROWS && 2 * Math.abs(next.time - end.time) > shown.at(-1).time - shown[0].time;
  while (shown.length > 2) {
    if (isFar(shown[0], shown[1])) shown = shown.slice(1);
    else if (isFar(shown.at(-1), shown.at(-2))) shown = shown.slice(0, -1);
    else break;
  }
  return shown;
}

// Flag rate and scores side by side. ``buckets``: {time, rows, flagged}; ``scores``: {label, data, series,
// legend}; ``full`` and ``tick`` format a time.
export function TimeCharts({ buckets, rate, title = '', label, scores, full, tick }) {
  const { legend, data, ...drawn } = scores;
  const times = buckets.map(({ time }) => time);
  const shared = {
    padding: [null, 24, null, null], // for half of the last name on the axis
    first: { label: 'period', value: (_, at) => (at === null ? 'point at the chart' : full(at)) },
    x: { text: tick, grid: false, size: 30, space: 80 },
    cursor: { sync: { key: 'ptad' }, drag: { x: false, y: false } },
    legend: { live: true },
    tzDate: (seconds) => uPlot.tzDate(new Date(1000 * seconds), 'Etc/UTC'),
  };
  const lines = [
    { label: 'flag rate', tone: 'anomaly', width: 2, text: percent, points: { show: true } },
    { label: 'target', tone: 'ink', dash: DASH, text: percent },
  ];
  return html`
    <div class="two grid">
      <div>
        <h3>Flag rate${title}</h3>
        <${Legend} entries=${[['anomaly', 'flagged'], ['line', 'target false-alarm rate']]} />
        <${Plot} ...${shared} label=${label} data=${[times, buckets.map(rateOf), times.map(() => rate)]} series=${lines}
          y=${{ text: percent }} scales=${{ y: { range: (_, __, high) => [0, 1.1 * high] } }} />
      </div>
      <div>
        <h3>Scores</h3>
        <${Legend} entries=${legend} />
        <${Plot} ...${shared} ...${drawn} data=${[times, ...data]} />
      </div>
    </div>
  `;
}

function summary({ buckets, period, column, without }, name, rate) {
  const counted = buckets.filter((bucket) => rateOf(bucket) !== null);
  const worst = counted.reduce((a, b) => (rateOf(b) > rateOf(a) ? b : a), counted[0]);
  const begin = period === 'week' ? day : name;
  const missing = without ? ` ${plural(without, 'row')} without a date ${chosen(without, 'is', 'are')} not in it.` : '';
  return (
    `Rows by ${period} of ${column}, from ${begin(buckets[0].time)} to ${
      begin(buckets.at(-1).time)
    }. The highest flag ` +
    `rate is ${percent(rateOf(worst))} (${name(worst.time)}, ${count(worst.flagged)} of ${
      plural(worst.rows, 'row')
    }); ` +
    `the target false-alarm rate is ${percent(rate)}.${missing}`
  );
}

// ``over_time``: {column, period, quantiles (three), threshold, without, buckets: [{time, rows, flagged, scores}]},
// times in seconds since 1970; ``rate``: the target false-alarm rate.
export function OverTime({ data: { over_time: over, rate } }) {
  if (!over) return null;
  const { buckets, period, threshold } = over;
  if (!buckets.length) {
    const few = `There are too few rows by ${over.column} to show scores over time.`;
    return html`
      <${Sheet} title="Scores over time">
        <p id="over-time">${few}</p>
        <//>
    `;
  }
  const name = NAMES[period] ?? clock;
  const drawn = withoutFar(buckets);
  const far = drawn.length < buckets.length ? ' Dates far away, with few rows, are in the table only.' : '';
  const at = (i) => drawn.map((b) => b.scores[i]);
  const scores = {
    label: `Scores by ${period}: median, 10 % and 90 % quantile, and the threshold of ${short(threshold)}`,
    data: [at(2), at(0), at(1), drawn.map(() => threshold)],
    series: [
      { label: '90 % of scores' },
      { label: '10 % of scores' },
      { label: 'median', tone: 'normal', width: 2 },
      { label: 'threshold', tone: 'ink', dash: DASH },
    ],
    bands: [{ series: [1, 2], fill: (plot) => colour(plot, 'normal', 0.18) }],
    legend: [['normal', 'median, and from the 10 % to the 90 % quantile'], ['line', 'threshold']],
  };
  const highest = Math.max(rate, ...buckets.map(rateOf));
  const figures = ['Rows', 'Flagged', 'Flag rate', ...over.quantiles.map((q) => `${percent(q)} of scores`)];
  const flagged = sum(buckets.map((b) => b.flagged));
  return html`
    <${Sheet} title="Scores over time">
      <p id="over-time">${summary(over, name, rate)}${far}</p>
      <${TimeCharts} buckets=${drawn} rate=${rate} scores=${scores} full=${name} tick=${TICKS[period] ?? hourOrDay}
        title=${` (${plural(flagged, 'flagged row')})`}
        label=${`Flag rate by ${period}: at most ${percent(highest)}, target ${percent(rate)}`} />
      <${Folded} summary=${`Figures by ${period}`}>
        <p class="quiet">So much of the scores of a ${period} lies at or below the figure.</p>
        <${Table} label=${`Figures by ${period}`} columns=${[['Period'], ...figures.map((text) => [text, 'number'])]}
          rows=${buckets.map((
            b,
          ) => [name(b.time), count(b.rows), count(b.flagged), rateText(b), ...b.scores.map(short)])} />
        <//>
        <//>
  `;
}
