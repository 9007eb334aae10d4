// The start: the drop zone, and the newest models and jobs.

import { get } from './api.js';
import { exampleFile } from './example.js';
import { isUnfinished, JobItem, ListSheet, ModelItem } from './lists.js';
import { navigate } from './shell.js';
import { Upload } from './upload.js';
import { html } from './vendor/preact.js';

const LEAD = 'Give the service a table of normal rows. It fits a model to them, then tells which rows are ' +
  'anomalies, which cells make them so, and what was expected there.';
const STEPS = [
  ['Drop a file', 'See its columns, their types, and their problems.'],
  ['Fit', 'The model and its threshold come from the normal rows, mostly within seconds.'],
  ['Look', 'The highest scores come first, each with its reasons. You set the false-alarm rate.'],
];
const HINT = 'or choose a file: CSV, TSV, Excel, Parquet, Arrow or JSON lines, compressed or not';
const SAFE = 'Nothing leaves this service, and no cell of your table is ever executed.';

export async function homeView() {
  const [models, jobs] = await Promise.all([get('/v1/models'), get('/v1/jobs')]);
  const unfinished = jobs.filter(isUnfinished);
  const scored = jobs.filter((job) => job.scores).slice(0, 5);
  const isEmpty = !models.length && !unfinished.length && !scored.length;
  const line = (job) => html`<${JobItem} job=${job} reload=${() => navigate('#/')} />`;
  const body = html`
    <p class="lead">${LEAD}</p>
    <${Upload} text="Drop a table here" hint=${HINT}
      then=${(table) => navigate(`#/tables/${table.id}`)} example=${isEmpty ? exampleFile : null} />
    ${isEmpty && html`
      <ol class="steps grid">
        ${STEPS.map(([title, text]) => html`<li><b>${title}</b><span class="quiet">${text}</span></li>`)}
      </ol>
      <p class="quiet small">${SAFE}</p>
    `}
    <${ListSheet} title="Unfinished jobs" lines=${unfinished.map(line)} />
    <${ListSheet} title="Models" lines=${models.slice(0, 5).map((model) => html`<${ModelItem} model=${model} />`)} />
    <${ListSheet} title="Scored tables" lines=${scored.map(line)} />
  `;
  return { title: 'Find anomalous rows', body };
}
