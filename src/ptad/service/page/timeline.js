// Scores and flag rate over time: by a date column of a scored table, and by upload.

import { get } from './api.js';
import { Sheet, Table } from './components.js';
import { OverTime, rateText, TimeCharts, timeWriter } from './over_time.js';
import { InlineSelect } from './parts.js';
import { attempt } from './shell.js';
import { count, percent, short } from './text.js';
import { html, useState } from './vendor/preact.js';

// The chart of the report, for any date column of the table.
export function Timeline({ job, first, rate }) {
  const [data, setData] = useState(first);
  if (!data.columns.length) return null;
  const choose = (column) =>
    attempt(async () => setData(await get(`/v1/jobs/${job}/timeline?column=${encodeURIComponent(column)}`)));
  return html`
    <div id="timeline">
      <${OverTime} key=${data.column} data=${{ over_time: data, rate }} />
      ${data.columns.length > 1 && html`
        <${InlineSelect} id="date-column" text="Scores over time by the column" value=${data.column} onChange=${choose}
          options=${data.columns.map((column) => [column, column])} />
      `}
    </div>
  `;
}

const LOCAL = Intl.DateTimeFormat().resolvedOptions().timeZone;

// Formats times on the axis, as exactly as the span of all uploads requires, in the time zone of the user.
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

// The scorings with all versions of a model.
export function Uploads({ scorings }) {
  if (!scorings.length) return null;
  const isOneVersion = new Set(scorings.map((job) => job.model)).size === 1;
  return html`
    <${Sheet} title="Scored tables over time">
      ${scorings.length > 1 &&
        html`<${Charts} scorings=${scorings} rate=${scorings.at(-1).scores.false_alarm_rate} />`}
      ${!isOneVersion &&
        html`<p class="quiet small">Scores of different versions are not on the same scale; flag rates are.</p>`}
      <${Table} id="uploads" label="Scored tables" columns=${COLUMNS} rows=${[...scorings].reverse().map(cellsOf)} />
    <//>
  `;
}
