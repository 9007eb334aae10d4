// A table that has just come in: its columns and their problems, what is normal, and the start of a fit.

import { get, send } from './api.js';
import { count, heading, make, percent, plural, scroller, sheet } from './dom.js';
import { KIND_NAMES } from './panels.js';
import { attempt, go } from './shell.js';

const FIRST_COLUMNS = 30;

export async function showSetup(view, id) {
  const [table, models] = await Promise.all([get(`/v1/tables/${id}`), get('/v1/models')]);
  view.title(table.name);
  const usable = table.columns.filter((c) => !c.problem).length;
  const few = table.rows < 2;
  view.add(make('p', { class: 'lead', text: few ? `One row and ${plural(table.columns.length, 'column', 'columns')}: a row can be judged with a model that is there, but to learn, at least 2 rows are needed, and better some hundred.` : `${plural(table.rows, 'row', 'rows')}, ${plural(table.columns.length, 'column', 'columns')}. ${usable === table.columns.length ? 'All columns can be used.' : `${plural(usable, 'column', 'columns')} can be used as ${usable === 1 ? 'it is' : 'they are'}; the remarks tell why the others are taken out.`}` }));
  if (models.length) view.add(withModel(table, models));
  if (few) { view.add(make('a', { class: 'button', text: 'Choose another file', attributes: { href: '#/' } })); return; }
  const columns = columnTable(table);
  const label = labelField(table, columns);
  const name = make('input', { id: 'name', attributes: { type: 'text', maxlength: 100, required: true } });
  name.value = table.name.replace(/\.[a-z0-9]+(\.[a-z0-9]+)?$/i, '').slice(0, 100) || 'model';
  const rate = make('select', { id: 'rate' }, ...[['auto', '1 in 100, or what the rows allow'], ['0.1', '1 in 10'], ['0.05', '1 in 20'], ['0.01', '1 in 100'], ['0.001', '1 in 1,000'], ['0.0001', '1 in 10,000']]
    .map(([value, text]) => make('option', { text, attributes: { value } })));
  const steps = make('input', { id: 'steps', attributes: { type: 'number', min: 1, max: 100000, placeholder: 'as the default has it' } });
  const form = make('form', {},
    sheet('Columns', make('p', { text: 'Take out what says nothing about a row, such as a number that only identifies it, and correct a kind that was taken wrongly.' }), columns.node),
    sheet('What is normal', make('p', { text: 'The model learns what normal rows look like. If a column says which rows are normal, name it; otherwise all rows are taken for normal.' }), label.node),
    sheet('The model', make('div', { class: 'form' },
      make('label', {}, 'Name', name),
      make('label', {}, 'False alarms', rate, make('small', { text: 'How many normal rows may raise an alarm. It can be changed later.' })),
      make('label', {}, 'Training steps', steps, make('small', { text: 'More steps take longer; empty is right for most tables.' }))),
    make('p', { class: 'more' }, make('button', { id: 'fit', class: 'primary', text: 'Learn from this table', attributes: { type: 'submit' } }))));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    attempt(async () => {
      const body = { table: id, name: name.value.trim() || 'model', false_alarm_rate: rate.value === 'auto' ? 'auto' : Number(rate.value), ...columns.choice(), ...label.choice() };
      if (steps.value) body.config = { n_steps: Number(steps.value) };
      const job = await send('POST', '/v1/fits', body);
      go(`#/jobs/${job.id}`);
    });
  });
  view.add(form);
}

function withModel(table, models) {
  const select = make('select', { id: 'model' }, ...models.map((m) => make('option', { text: m.name, attributes: { value: m.id } })));
  const button = make('button', { id: 'score-with', text: 'Judge it', attributes: { type: 'button' }, on: { click: () => attempt(async () => {
    const job = await send('POST', '/v1/scorings', { table: table.id, model: select.value });
    go(`#/jobs/${job.id}`);
  }) } });
  return sheet('Judge it with a model you have', make('div', { class: 'actions' }, make('label', { text: 'Model', attributes: { for: 'model' } }), select, button));
}

function columnTable(table) {
  const kinds = new Map();
  const used = new Map();
  const body = make('tbody');
  for (const [i, column] of table.columns.entries()) {
    const select = make('select', { attributes: { 'aria-label': `Kind of ${column.name}` } }, ...Object.entries(KIND_NAMES).map(([value, [text]]) => make('option', { text, attributes: { value, selected: value === column.kind } })));
    const use = make('input', { id: `use-${i}`, attributes: { type: 'checkbox', 'aria-label': `Use ${column.name}` } });
    use.checked = !column.problem;
    const tr = make('tr', { class: use.checked ? '' : 'out' }, make('td', { class: 'use' }, use), make('td', { class: 'name', text: column.name }), make('td', {}, column.kind ? select : make('span', { class: 'quiet', text: 'none' })),
      make('td', { class: 'examples', text: column.examples.join(', ') || 'no value' }), make('td', { class: 'number missing', text: column.missing ? percent(column.missing) : '' }),
      make('td', { class: 'problem', text: column.problem || '' }));
    use.addEventListener('change', () => tr.classList.toggle('out', !use.checked));
    if (!column.kind) use.disabled = true;
    kinds.set(column.name, select);
    used.set(column.name, use);
    body.append(tr);
  }
  const find = table.columns.length > FIRST_COLUMNS ? finder(body, table.columns) : null;
  const heads = ['Use', 'Column', 'Kind', 'For example', 'Missing', 'Remark'];
  const list = scroller('columns', 'Table of the columns', make('table', { class: 'columns' }, make('thead', {}, make('tr', {}, ...heads.map((text) => heading(text, text === 'Missing' ? 'number' : '')))), body));
  const node = make('div', {}, find, list);
  const choice = () => {
    const given = {};
    const drop = [];
    for (const column of table.columns) {
      const wanted = used.get(column.name).checked;
      const kind = kinds.get(column.name).value;
      if (!wanted) drop.push(column.name);
      // naming the kind keeps a column that looks like an identifier
      else if (kind !== column.kind || (column.problem || '').startsWith('identifier')) given[column.name] = kind;
    }
    return { kinds: given, drop };
  };
  return { node, choice, used };
}

// Of many columns, the first ones and those with a remark are shown until one looks for others.
function finder(body, columns) {
  const lines = [...body.children];
  const input = make('input', { id: 'find', attributes: { type: 'search', placeholder: 'part of its name' } });
  const status = make('span', { class: 'quiet small', attributes: { role: 'status' } });
  let few = true;
  const all = make('button', { text: 'Show all columns', attributes: { type: 'button' }, on: { click: () => { few = false; all.remove(); input.focus(); show(); } } });
  const show = () => {
    const wanted = input.value.trim().toLowerCase();
    lines.forEach((line, i) => { line.hidden = wanted ? !columns[i].name.toLowerCase().includes(wanted) : few && i >= FIRST_COLUMNS && !columns[i].problem; });
    status.textContent = `${count(lines.filter((line) => !line.hidden).length)} of ${count(lines.length)} shown`;
  };
  input.addEventListener('input', show);
  input.addEventListener('keydown', (event) => { if (event.key === 'Enter') event.preventDefault(); }); // it would start the fit
  show();
  return make('div', { class: 'find' }, make('label', { text: 'Find a column', attributes: { for: 'find' } }), input, all, status);
}

function labelField(table, columns) {
  const candidates = table.columns.filter((c) => c.values && c.values.length > 1);
  const select = make('select', { id: 'label' }, make('option', { text: 'No column: all rows are normal', attributes: { value: '' } }), ...candidates.map((c) => make('option', { text: c.name, attributes: { value: c.name } })));
  const values = make('div', { class: 'values', attributes: { role: 'group', 'aria-label': 'Values of normal rows' } });
  const field = make('div', { class: 'field', attributes: { hidden: true } }, 'Normal rows have', values, make('small', { text: 'All other rows are left out of learning and counted as known anomalies afterwards.' }));
  select.addEventListener('change', () => {
    const column = candidates.find((c) => c.name === select.value);
    field.hidden = !column;
    values.replaceChildren(...(column ? column.values.map(([value, n], i) => {
      const box = make('input', { attributes: { type: 'checkbox', value } });
      box.checked = i === 0; // the most frequent value is the likeliest to be normal
      return make('label', {}, box, `${value} (${count(n)})`);
    }) : []));
    if (column) { const use = columns.used.get(column.name); use.checked = false; use.dispatchEvent(new Event('change')); }
  });
  const choice = () => {
    if (!select.value) return {};
    return { label: select.value, normal: [...values.querySelectorAll('input:checked')].map((box) => box.value) };
  };
  return { node: make('div', { class: 'form' }, make('label', {}, 'Column that says what a row is', select), field), choice };
}
