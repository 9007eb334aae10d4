// The start: a place to drop a file, and what is there already.

import { get } from './api.js';
import { exampleFile } from './example.js';
import { isUnderWay, JobLine, LineSheet, ModelLine } from './lists.js';
import { go } from './shell.js';
import { Upload } from './upload.js';
import { html } from './vendor/preact.js';

const LEAD = 'Give the service a table of mostly normal rows. It fits a model to them, then tells which rows are ' +
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
  const now = jobs.filter(isUnderWay);
  const done = jobs.filter((job) => job.scores).slice(0, 5);
  const first = !models.length && !now.length && !done.length;
  const line = (job) => html`<${JobLine} job=${job} reload=${() => go('#/')} />`;
  const body = html`
    <p class="lead">${LEAD}</p>
    <${Upload} text="Drop a table here" hint=${HINT}
      then=${(table) => go(`#/tables/${table.id}`)} example=${first ? exampleFile : null} />
    ${first && html`
      <ol class="steps grid">
        ${STEPS.map(([title, text]) => html`<li><b>${title}</b><span class="quiet">${text}</span></li>`)}
      </ol>
      <p class="quiet small">${SAFE}</p>
    `}
    <${LineSheet} title="Under way" lines=${now.map(line)} />
    <${LineSheet} title="Models" lines=${models.slice(0, 5).map((model) => html`<${ModelLine} model=${model} />`)} />
    <${LineSheet} title="Scored tables" lines=${done.map(line)} />
  `;
  return { title: 'Find the rows that do not belong', body };
}
