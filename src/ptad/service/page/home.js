// The start: a place to drop a file, and what is there already.

import { get } from './api.js';
import { make, sheet } from './dom.js';
import { exampleFile } from './example.js';
import { modelLine } from './models.js';
import { dropZone } from './parts.js';
import { bringIn, go } from './shell.js';
import { jobLine } from './jobs.js';

export async function showHome(view) {
  const [models, jobs] = await Promise.all([get('/v1/models'), get('/v1/jobs')]);
  view.title('Find the rows that do not belong');
  const open = (table) => go(`#/tables/${table.id}`);
  const zone = dropZone(
    'Drop a table here',
    'or choose a file: CSV, TSV, Parquet, Arrow or JSON lines, compressed or not',
    (file) => bringIn(zone, file, open),
  );
  view.add(
    make('p', {
      class: 'lead',
      text:
        'Give the service a table of mostly normal rows. It fits a model to them, then tells which rows are ' +
        'anomalies, which cells make them so, and what was expected there.',
    }),
    zone,
  );
  const now = jobs.filter((job) => ['running', 'waiting'].includes(job.state));
  const done = jobs.filter((job) => job.kind === 'score' && job.state === 'done').slice(0, 5);
  if (!models.length && !now.length && !done.length) {
    const example = make('button', {
      id: 'example',
      text: 'Try it with an example table',
      attributes: { type: 'button' },
      on: { click: () => bringIn(zone, exampleFile(), open) },
    });
    const step = (title, text) => make('li', {}, make('b', { text: title }), make('span', { class: 'quiet', text }));
    view.add(
      make('p', { class: 'more' }, example),
      make(
        'ol',
        { class: 'steps' },
        step('Drop a file', 'See its columns, their types, and their problems.'),
        step('Fit', 'The model and its threshold come from the normal rows, mostly within seconds.'),
        step('Look', 'The highest scores come first, each with its reasons. You set the false-alarm rate.'),
      ),
      make('p', {
        class: 'quiet small',
        text: 'Nothing leaves this service, and no cell of your table is ever executed.',
      }),
    );
    return;
  }
  const reload = () => go('#/');
  if (now.length)
    view.add(sheet('Under way', make('ul', { class: 'lines' }, ...now.map((job) => jobLine(job, reload)))));
  if (models.length) view.add(sheet('Models', make('ul', { class: 'lines' }, ...models.slice(0, 5).map(modelLine))));
  if (done.length)
    view.add(sheet('Scored tables', make('ul', { class: 'lines' }, ...done.map((job) => jobLine(job, reload)))));
}
