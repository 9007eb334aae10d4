// The columns of a table that has just come in: which are used, and as what.

import { count, heading, make, percent, scroller } from './dom.js';
import { TYPE_NAMES } from './panels.js';

const FIRST_COLUMNS = 30;

export function columnTable(table) {
  const types = new Map();
  const used = new Map();
  const body = make('tbody');
  for (const [i, column] of table.columns.entries()) {
    const select = make(
      'select',
      { attributes: { 'aria-label': `Type of ${column.name}` } },
      ...Object.entries(TYPE_NAMES).map(([value, text]) =>
        make('option', { text, attributes: { value, selected: value === column.type } }),
      ),
    );
    const use = make('input', {
      id: `use-${i}`,
      attributes: { type: 'checkbox', 'aria-label': `Use ${column.name}` },
    });
    use.checked = !column.problem;
    const tr = make(
      'tr',
      { class: use.checked ? '' : 'out' },
      make('td', { class: 'use' }, use),
      make('td', { class: 'name', text: column.name }),
      make('td', {}, column.type ? select : make('span', { class: 'quiet', text: 'none' })),
      make('td', { class: 'examples', text: column.examples.join(', ') || 'no value' }),
      make('td', { class: 'number missing', text: column.missing ? percent(column.missing) : '' }),
      make('td', { class: 'problem', text: column.problem || '' }),
    );
    use.addEventListener('change', () => tr.classList.toggle('out', !use.checked));
    if (!column.type) use.disabled = true;
    types.set(column.name, select);
    used.set(column.name, use);
    body.append(tr);
  }
  const find = table.columns.length > FIRST_COLUMNS ? finder(body, table.columns) : null;
  const heads = ['Use', 'Column', 'Type', 'For example', 'Missing', 'Remark'];
  const list = scroller(
    'columns',
    'Table of the columns',
    make(
      'table',
      { class: 'columns' },
      make('thead', {}, make('tr', {}, ...heads.map((text) => heading(text, text === 'Missing' ? 'number' : '')))),
      body,
    ),
  );
  const node = make('div', {}, find, list);
  const choice = () => {
    const given = {};
    const drop = [];
    for (const column of table.columns) {
      const wanted = used.get(column.name).checked;
      const type = types.get(column.name).value;
      if (!wanted) drop.push(column.name);
      // naming the type keeps a column that looks like an identifier
      else if (type !== column.type || (column.problem || '').startsWith('identifier')) given[column.name] = type;
    }
    return { types: given, drop };
  };
  return { node, choice, used };
}

// Of many columns, the first ones and those with a remark are shown until one looks for others.
function finder(body, columns) {
  const lines = [...body.children];
  const input = make('input', { id: 'find', attributes: { type: 'search', placeholder: 'part of its name' } });
  const status = make('span', { class: 'quiet small', attributes: { role: 'status' } });
  let few = true;
  const all = make('button', {
    text: 'Show all columns',
    attributes: { type: 'button' },
    on: {
      click: () => {
        few = false;
        all.remove();
        input.focus();
        show();
      },
    },
  });
  const show = () => {
    const wanted = input.value.trim().toLowerCase();
    lines.forEach((line, i) => {
      line.hidden = wanted
        ? !columns[i].name.toLowerCase().includes(wanted)
        : few && i >= FIRST_COLUMNS && !columns[i].problem;
    });
    status.textContent = `${count(lines.filter((line) => !line.hidden).length)} of ${count(lines.length)} shown`;
  };
  input.addEventListener('input', show);
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') event.preventDefault();
  }); // it would start the fit
  show();
  return make(
    'div',
    { class: 'find' },
    make('label', { text: 'Find a column', attributes: { for: 'find' } }),
    input,
    all,
    status,
  );
}
