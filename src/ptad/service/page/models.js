// The list of models, and one model: its false-alarm rate, its columns, and another table for it.

import { download, get, send } from './api.js';
import { count, folded, make, pairs, percent, plural, sheet, short, spaced } from './dom.js';
import { TYPE_NAMES } from './panels.js';
import { dropZone, when } from './parts.js';
import { attempt, bringIn, go } from './shell.js';

export const modelLine = (model) =>
  make(
    'li',
    {},
    make(
      'div',
      { class: 'what' },
      make('a', { text: model.name, attributes: { href: `#/models/${model.id}` } }),
      make('div', {
        class: 'quiet small',
        text: [
          model.table ? `from ${model.table}` : null,
          model.training_rows ? plural(model.training_rows, 'training row', 'training rows') : null,
          when(model.created),
        ]
          .filter(Boolean)
          .join(', '),
      }),
    ),
    make(
      'div',
      { class: 'actions' },
      model.fixed ? make('span', { class: 'tag', text: 'given at the start' }) : null,
      make('a', {
        class: 'button',
        text: 'Score a table',
        attributes: { href: `#/models/${model.id}`, 'aria-label': `Score a table with ${model.name}` },
      }),
    ),
  );

export async function showModels(view) {
  view.title('Models');
  const models = await get('/v1/models');
  if (!models.length) {
    view.add(
      make('p', {
        class: 'lead',
        text:
          'There is no model yet. A model is fitted to a table of normal rows; it then scores any other table ' +
          'with the same columns.',
      }),
      make('a', { class: 'button primary', text: 'Start with a table', attributes: { href: '#/' } }),
    );
    return;
  }
  view.add(sheet('Models, the newest first', make('ul', { class: 'lines' }, ...models.map(modelLine))));
}

function about(model) {
  const rows = model.training_rows ? `, fitted on ${plural(model.training_rows, 'row', 'rows')}` : '';
  const rate =
    model.false_alarm_rate === null
      ? 'It has no threshold.'
      : `Of normal rows, at most ${percent(model.false_alarm_rate)} are flagged.`;
  return `${plural(model.columns.length, 'column', 'columns')}${rows}. ${rate}`;
}

export async function showModel(view, id) {
  const model = await get(`/v1/models/${id}`);
  view.title(model.name);
  const zone = dropZone(
    'Drop a table to score',
    'or choose a file with the same columns',
    (file) =>
      bringIn(zone, file, async (table) => {
        const job = await send('POST', '/v1/scorings', { table: table.id, model: id });
        go(`#/jobs/${job.id}`);
      }),
    { compact: true, id: 'second-file' },
  );
  const calibrated = model.false_alarm_rate !== null;
  view.add(
    make('p', {
      class: 'lead',
      text: about(model),
    }),
    sheet('Score another table', zone),
    calibrated ? rateSheet(id, model) : null,
    sheet(
      'Columns',
      pairs(
        model.columns.map((c) => [
          c.name,
          [TYPE_NAMES[c.type], c.missing_rate ? `${percent(c.missing_rate)} missing` : null]
            .filter(Boolean)
            .join(', '),
        ]),
      ),
      Object.keys(model.excluded).length
        ? folded(
            `Excluded columns (${count(Object.keys(model.excluded).length)})`,
            pairs(Object.entries(model.excluded)),
          )
        : null,
    ),
    sheet(
      'Details',
      pairs([
        ['preset', model.preset],
        ['terms', model.terms.map((term) => spaced(term.name)).join(', ')],
        ['threshold (score)', calibrated ? short(model.threshold) : 'none'],
        ['calibration rows', count(model.calibration_rows)],
        ['reference rows', count(model.reference_rows)],
        ['size', `${short(model.bytes / 1e6)} MB`],
        ['written by', `ptad ${model.ptad_version}`],
      ]),
      make(
        'div',
        { class: 'actions more' },
        make('button', {
          id: 'download-model',
          text: 'Download the model',
          attributes: { type: 'button' },
          on: { click: () => attempt(() => download(`/v1/models/${id}/download`, `${id}.zip`)) },
        }),
        model.fixed
          ? null
          : make('button', {
              id: 'delete-model',
              class: 'danger',
              text: 'Delete the model',
              attributes: { type: 'button' },
              on: {
                click: (event) =>
                  confirmed(event.target, async () => {
                    await send('DELETE', `/v1/models/${id}`);
                    go('#/models', `${model.name} is deleted.`);
                  }),
              },
            }),
      ),
    ),
  );
}

// The first click asks, the second does it: no dialog that takes the keyboard away.
function confirmed(button, action) {
  if (button.dataset.asked) {
    attempt(action);
    return;
  }
  button.dataset.asked = 'yes';
  button.textContent = 'Really delete it?';
  setTimeout(() => {
    delete button.dataset.asked;
    button.textContent = 'Delete the model';
  }, 4000);
}

function rateSheet(id, model) {
  const input = make('input', {
    id: 'rate',
    attributes: { type: 'number', min: 0, max: 100, step: 'any', required: true },
  });
  input.value = Number((100 * model.false_alarm_rate).toPrecision(6));
  const form = make(
    'form',
    { class: 'actions' },
    make('label', { text: 'Target false-alarm rate, in % of normal rows', attributes: { for: 'rate' } }),
    input,
    make('button', { text: 'Change', attributes: { type: 'submit' } }),
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    attempt(async () => {
      const changed = await send('PATCH', `/v1/models/${id}`, { false_alarm_rate: Number(input.value) / 100 });
      go(
        `#/models/${id}`,
        `The target false-alarm rate is now ${percent(changed.false_alarm_rate)}: rows with a score above ` +
          `${short(changed.threshold)} are flagged.`,
      );
    });
  });
  return sheet(
    'False-alarm rate',
    form,
    make('p', {
      class: 'quiet small',
      text:
        `Its ${plural(model.calibration_rows, 'calibration row', 'calibration rows')} support a rate down to ` +
        `${percent(model.smallest_rate)}. The model is not fitted again.`,
    }),
  );
}
