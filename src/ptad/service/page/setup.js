// A table that has just come in: its columns and their problems, what is normal, and the start of a fit.

import { get, send } from './api.js';
import { columnTable } from './columns.js';
import { count, make, plural, sheet } from './dom.js';
import { attempt, go } from './shell.js';

export async function showSetup(view, id) {
  const addresses = [`/v1/tables/${id}`, '/v1/models', '/v1/service'];
  const [table, models, service] = await Promise.all(addresses.map(get));
  view.title(table.name);
  const usable = table.columns.filter((c) => !c.problem).length;
  const few = table.rows < 2;
  const columnCount = plural(table.columns.length, 'column', 'columns');
  const usableText =
    usable === table.columns.length
      ? 'All columns can be used.'
      : `${plural(usable, 'column', 'columns')} can be used; the remarks tell why the others are excluded.`;
  view.add(
    make('p', {
      class: 'lead',
      text: few
        ? `1 row and ${columnCount}: it can be scored with a model that is there. To fit a model, at least 2 rows ` +
          'are needed, better some hundred.'
        : `${plural(table.rows, 'row', 'rows')}, ${columnCount}. ${usableText}`,
    }),
  );
  if (models.length) view.add(withModel(table, models));
  if (few) {
    view.add(make('a', { class: 'button', text: 'Choose another file', attributes: { href: '#/' } }));
    return;
  }
  const columns = columnTable(table);
  const label = labelField(table, columns);
  const name = make('input', { id: 'name', attributes: { type: 'text', maxlength: 100, required: true } });
  name.value = table.name.replace(/\.[a-z0-9]+(\.[a-z0-9]+)?$/i, '').slice(0, 100) || 'model';
  const rate = make(
    'select',
    { id: 'rate' },
    ...[
      ['auto', '1 %, or the smallest that the rows support'],
      ['0.1', '10 %'],
      ['0.05', '5 %'],
      ['0.01', '1 %'],
      ['0.001', '0.1 %'],
      ['0.0001', '0.01 %'],
    ].map(([value, text]) => make('option', { text, attributes: { value } })),
  );
  const preset = presetField(service.presets);
  const form = make(
    'form',
    {},
    sheet(
      'Columns',
      make('p', {
        text:
          'Exclude what says nothing about a row, such as a number that only identifies it, and correct a type that ' +
          'was recognised wrongly.',
      }),
      table.notes.length ? make('ul', { class: 'notes' }, ...table.notes.map((text) => make('li', { text }))) : null,
      columns.node,
    ),
    sheet(
      'What is normal',
      make('p', {
        text:
          'The model is fitted to normal rows. If a label column tells normal rows from anomalies, name it; ' +
          'otherwise all rows are taken for normal.',
      }),
      label.node,
    ),
    sheet(
      'The model',
      make(
        'div',
        { class: 'form' },
        make('label', {}, 'Name', name),
        make(
          'label',
          {},
          'Target false-alarm rate',
          rate,
          make('small', { text: 'The share of normal rows that may be flagged. It can be changed later.' }),
        ),
        ...preset.nodes,
      ),
      make(
        'p',
        { class: 'more' },
        make('button', {
          id: 'fit',
          class: 'primary',
          text: 'Fit a model to this table',
          attributes: { type: 'submit' },
        }),
      ),
    ),
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    attempt(async () => {
      const body = {
        table: id,
        name: name.value.trim() || 'model',
        false_alarm_rate: rate.value === 'auto' ? 'auto' : Number(rate.value),
        ...columns.choice(),
        ...label.choice(),
        ...preset.choice(),
      };
      const job = await send('POST', '/v1/fits', body);
      go(`#/jobs/${job.id}`);
    });
  });
  view.add(form);
}

function withModel(table, models) {
  const select = make(
    'select',
    { id: 'model' },
    ...models.map((m) => make('option', { text: m.name, attributes: { value: m.id } })),
  );
  const button = make('button', {
    id: 'score-with',
    text: 'Score it',
    attributes: { type: 'button' },
    on: {
      click: () =>
        attempt(async () => {
          const job = await send('POST', '/v1/scorings', { table: table.id, model: select.value });
          go(`#/jobs/${job.id}`);
        }),
    },
  });
  return sheet(
    'Score it with a model you have',
    make('div', { class: 'actions' }, make('label', { text: 'Model', attributes: { for: 'model' } }), select, button),
  );
}

// The paper's network is trained, and needs a package that not every service has.
function presetField(presets) {
  const names = { default: 'default', paper: 'paper: a network, trained for minutes' };
  const known = presets.map((value) => make('option', { text: names[value] || value, attributes: { value } }));
  const select = make('select', { id: 'preset' }, ...known);
  const steps = make('input', { id: 'steps', attributes: { type: 'number', min: 1, max: 100000 } });
  steps.placeholder = 'as the preset has it';
  const trained = make('label', { attributes: { hidden: true } }, 'Training steps', steps);
  select.addEventListener('change', () => {
    trained.hidden = select.value !== 'paper';
  });
  const choice = () => {
    if (select.value !== 'paper') return {};
    return { preset: 'paper', config: steps.value ? { 'network.n_steps': Number(steps.value) } : {} };
  };
  return { nodes: presets.length > 1 ? [make('label', {}, 'Preset', select), trained] : [], choice };
}

function labelField(table, columns) {
  const candidates = table.columns.filter((c) => c.values && c.values.length > 1);
  const select = make(
    'select',
    { id: 'label' },
    make('option', { text: 'None: all rows are normal', attributes: { value: '' } }),
    ...candidates.map((c) => make('option', { text: c.name, attributes: { value: c.name } })),
  );
  const values = make('div', {
    class: 'values',
    attributes: { role: 'group', 'aria-label': 'Values of normal rows' },
  });
  const field = make(
    'div',
    { class: 'field', attributes: { hidden: true } },
    'Normal rows have',
    values,
    make('small', {
      text: 'All other rows are not fitted on, and count as known anomalies when the table is scored.',
    }),
  );
  select.addEventListener('change', () => {
    const column = candidates.find((c) => c.name === select.value);
    field.hidden = !column;
    values.replaceChildren(
      ...(column
        ? column.values.map(([value, n], i) => {
            const box = make('input', { attributes: { type: 'checkbox', value } });
            box.checked = i === 0; // the most frequent value is the likeliest to be normal
            return make('label', {}, box, `${value} (${count(n)})`);
          })
        : []),
    );
    if (column) {
      const use = columns.used.get(column.name);
      use.checked = false;
      use.dispatchEvent(new Event('change'));
    }
  });
  const choice = () => {
    if (!select.value) return {};
    return { label: select.value, normal: [...values.querySelectorAll('input:checked')].map((box) => box.value) };
  };
  return {
    node: make('div', { class: 'form' }, make('label', {}, 'Label column', select), field),
    choice,
  };
}
