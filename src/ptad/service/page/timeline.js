// Scores and flag rate over time: by a date column of a scored table, and by upload.

import { get } from './api.js';
import { Sheet, Table } from './components.js';
import { OverTime, rateText, TimeCharts, timeWriter } from './over_time.js';
import { ChoiceLine } from './parts.js';
import { attempt } from './shell.js';
import { count, percent, short } from './text.js';
import { html, useState } from './vendor/preact.js';

// What the report shows, for any date column of the table; nothing where there is none.
export function Timeline({ job, first, rate }) {
  const [found, setFound] = useState(first);
  if (!found.columns.length) return null;
  const choose = (column) =>
    attempt(async () => setFound(await get(`/v1/jobs/${job}/timeline?column=${encodeURIComponent(column)}`)));
  return html`
    <div id="timeline">
      <${OverTime} key=${found.column} data=${{ over_time: found, rate }} />
      ${found.columns.length > 1 && html`
        <${ChoiceLine} id="date-column" text="Scores over time by the column" value=${found.column} onChange=${choose}
          options=${found.columns.map((column) => [column, column])} />
      `}
    </div>
  `;
}

const LOCAL = Intl.DateTimeFormat().resolvedOptions().timeZone;

// As exactly as the time between the first and the last upload asks for, and by the clock of the reader.
function tickOf(span) {
  const clock = { hour: '2-digit', minute: '2-digit', ...(span < 600 ? { second: '2-digit' } : {}) };
  return timeWriter(span < 2 * 86400 ? clock : { day: 'numeric', month: 'short' }, LOCAL);
}
const moment = timeWriter({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' }, LOCAL);

function Charts({ scorings, rate }) {
  const quantile = (level) => scorings.map(({ scores }) => scores.quantiles[level]);
  const points = { show: true };
  const scores = {
    label: `Scores of ${count(scorings.length)} scored tables: median and 95 % quantile`,
    data: [quantile('0.5'), quantile('0.95')],
    series: [
      { label: 'median', tone: 'normal', width: 2, points },
      { label: '95 % of scores', tone: 'usual', width: 2, points },
    ],
    legend: [['normal', 'median'], ['usual', '95 % quantile']],
  };
  return html`
    <${TimeCharts} buckets=${scorings.map((job) => ({ ...job.scores, time: job.created }))} rate=${rate}
      label=${`Flag rate of ${count(scorings.length)} scored tables, target ${percent(rate)}`} scores=${scores}
      full=${moment} tick=${tickOf(scorings.at(-1).created - scorings[0].created)} />
  `;
}

const COLUMNS = [
  ...['Table', 'Scored'].map((text) => [text]),
  ...['Rows', 'Flagged', 'Flag rate', 'Median score'].map((text) => [text, 'number']),
];

const cellsOf = ({ id, title, kind, created, scores }) => [
  html`
    <a href=${`#/results/${id}`}>${title}</a>
    ${kind === 'fit' && html`<div class="quiet small">held-out scores of the training rows</div>`}
  `,
  moment(created),
  count(scores.rows),
  count(scores.flagged),
  rateText(scores),
  short(scores.quantiles['0.5']),
];

// The scorings with a model and its versions, in the order of their uploads.
export function Uploads({ scorings }) {
  if (!scorings.length) return null;
  const one = new Set(scorings.map((job) => job.model)).size === 1;
  return html`
    <${Sheet} title="Scored tables over time">
      ${scorings.length > 1 &&
        html`<${Charts} scorings=${scorings} rate=${scorings.at(-1).scores.false_alarm_rate} />`}
      ${!one &&
        html`<p class="quiet small">Scores of different versions are not on the same scale; flag rates are.</p>`}
      <${Table} id="uploads" label="Scored tables" columns=${COLUMNS} rows=${[...scorings].reverse().map(cellsOf)} />
    <//>
  `;
}
