// The start: a place to drop a file, and what is there already.

import { get } from './api.js';
import { Sheet } from './components.js';
import { exampleFile } from './example.js';
import { JobLine } from './jobs.js';
import { ModelLine } from './models.js';
import { Lines } from './parts.js';
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
const HINT = 'or choose a file: CSV, TSV, Parquet, Arrow or JSON lines, compressed or not';
const SAFE = 'Nothing leaves this service, and no cell of your table is ever executed.';

export async function showHome(view) {
  const [models, jobs] = await Promise.all([get('/v1/models'), get('/v1/jobs')]);
  const now = jobs.filter((job) => ['running', 'waiting'].includes(job.state));
  const done = jobs.filter((job) => job.scores).slice(0, 5);
  const first = !models.length && !now.length && !done.length;
  const lines = (list) =>
    html`<${Lines}>${list.map((job) => html`<${JobLine} job=${job} reload=${() => go('#/')} />`)}<//>`;
  view.title('Find the rows that do not belong');
  view.show(html`
    <p class="lead">${LEAD}</p>
    <${Upload} text="Drop a table here" hint=${HINT}
      then=${(table) => go(`#/tables/${table.id}`)} example=${first ? exampleFile : null} />
    ${first && html`
      <ol class="steps">${STEPS.map(([title, text]) =>
        html`<li><b>${title}</b><span class="quiet">${text}</span></li>`
      )}</ol>
      <p class="quiet small">${SAFE}</p>
    `}
    ${now.length > 0 && html`<${Sheet} title="Under way">${lines(now)}<//>`}
    ${models.length > 0 && html`
      <${Sheet} title="Models">
        <${Lines}>${models.slice(0, 5).map((m) => html`<${ModelLine} model=${m} />`)}<//><//>
    `}
    ${done.length > 0 && html`<${Sheet} title="Scored tables">${lines(done)}<//>`}
  `);
}
