// Scores and flag rate over time: by a date column of a scored table, and by upload.

import { get } from './api.js';
import { Legend, Scroller, Sheet } from './components.js';
import { count, percent, short } from './dom.js';
import { LineChart } from './line_chart.js';
import { OverTime } from './over_time.js';
import { Select } from './parts.js';
import { attempt } from './shell.js';
import { html, useMemo, useState } from './vendor/preact.js';

const FEW_ROWS = 20; // of fewer, a rate says little

// What the report shows, for any date column of the table; nothing where there is none.
export function Timeline({ job, first, rate }) {
  const [found, setFound] = useState(first);
  if (!found.columns.length) return null;
  const choose = (column) =>
    attempt(async () => setFound(await get(`/v1/jobs/${job}/timeline?column=${encodeURIComponent(column)}`)));
  return html`
    <div id="timeline">
      <${OverTime} key=${found.column} over=${found} rate=${rate} />
      ${found.columns.length > 1 && html`
        <div class="actions">
          <label for="date-column">Scores over time by the column</label>
          <${Select} id="date-column" value=${found.column} options=${found.columns.map((
            c,
          ) => [c, c])} onChange=${choose} />
        </div>
      `}
    </div>
  `;
}

// As exactly as the time between the first and the last upload asks for.
function tickOf(times) {
  const span = times.at(-1) - times[0];
  const clock = { hour: '2-digit', minute: '2-digit', ...(span < 600 ? { second: '2-digit' } : {}) };
  const options = span < 2 * 86400 ? clock : { day: 'numeric', month: 'short' };
  const written = new Intl.DateTimeFormat('en-GB', options);
  return (seconds) => written.format(new Date(1000 * seconds));
}

const format = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
const moment = (seconds) => format.format(new Date(1000 * seconds));

function Charts({ scorings, rate }) {
  const charts = useMemo(() => {
    const times = scorings.map((job) => job.created);
    const quantile = (level) => scorings.map(({ scores }) => scores.quantiles[level]);
    const rates = scorings.map(({ scores: { flagged, rows } }) => (rows < FEW_ROWS ? null : flagged / rows));
    return {
      flags: {
        label: `Flag rate of ${count(scorings.length)} scored tables, target ${percent(rate)}`,
        data: [times, rates, times.map(() => rate)],
        series: [
          { label: 'flag rate', stroke: '--anomaly', width: 2, value: percent, points: true },
          { label: 'target', stroke: '--ink', dash: [5, 3], value: percent },
        ],
        axis: percent,
        range: (_, __, high) => [0, 1.1 * high],
      },
      scores: {
        label: `Scores of ${count(scorings.length)} scored tables: median and 95 % quantile`,
        data: [times, quantile('0.5'), quantile('0.95')],
        series: [
          { label: 'median', stroke: '--normal', width: 2, value: short, points: true },
          { label: '95 % of scores', stroke: '--usual', width: 2, value: short, points: true },
        ],
        axis: short,
      },
    };
  }, [scorings]);
  const { flags, scores } = charts;
  const tick = tickOf(flags.data[0]);
  return html`
    <div class="two">
      <div>
        <h3>Flag rate</h3>
        <${Legend} entries=${[['is-anomaly', 'flagged'], ['is-line', 'target false-alarm rate']]} />
        <${LineChart} ...${flags} name=${moment} tick=${tick} />
      </div>
      <div>
        <h3>Scores</h3>
        <${Legend} entries=${[['is-normal', 'median'], ['is-usual', '95 % quantile']]} />
        <${LineChart} ...${scores} name=${moment} tick=${tick} />
      </div>
    </div>
  `;
}

const Line = ({ job }) => {
  const { rows, flagged, quantiles } = job.scores;
  return html`
    <tr>
      <td>
        <a href=${`#/results/${job.id}`}>${job.title}</a>
        ${job.kind === 'fit' && html`<div class="quiet small">held-out scores of the training rows</div>`}
      </td>
      <td>${moment(job.created)}</td>
      <td class="number">${count(rows)}</td>
      <td class="number">${count(flagged)}</td>
      <td class="number">${rows < FEW_ROWS ? 'few rows' : percent(flagged / rows)}</td>
      <td class="number">${short(quantiles['0.5'])}</td>
    </tr>
  `;
};

// The scorings with a model and its versions, in the order of their uploads.
export function Uploads({ scorings }) {
  if (!scorings.length) return null;
  const one = new Set(scorings.map((job) => job.model)).size === 1;
  const rate = scorings.at(-1).scores.false_alarm_rate;
  const heads = ['Table', 'Scored', 'Rows', 'Flagged', 'Flag rate', 'Median score'];
  return html`
    <${Sheet} title="Scored tables over time">
      ${scorings.length > 1 && html`<${Charts} scorings=${scorings} rate=${rate} />`}
      ${!one &&
        html`<p class="quiet small">Scores of different versions are not on the same scale; flag rates are.</p>`}
      <${Scroller} id="uploads" label="Scored tables">
        <table>
          <thead>
            <tr>${heads.map((text, i) => html`<th scope="col" class=${i > 1 ? 'number' : ''}>${text}</th>`)}</tr>
          </thead>
          <tbody>${[...scorings].reverse().map((job) => html`<${Line} job=${job} />`)}</tbody>
        </table>
      <//>
    <//>
  `;
}
