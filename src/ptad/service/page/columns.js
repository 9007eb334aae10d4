// The columns of an uploaded table: which are used, and as which type.

import { named, Table } from './components.js';
import { onValue, Select } from './parts.js';
import { count, percent, TYPE_NAMES } from './text.js';
import { html, useRef, useState } from './vendor/preact.js';

const FIRST_COLUMNS = 30;
const TYPES = Object.entries(TYPE_NAMES);
const HEADINGS = [['Use'], ['Column'], ['Type'], ['For example'], ['Missing', 'number'], ['Remark']];
const DATES = ['date', 'datetime'];
const DATE_REMARK = 'later rows look anomalous by their date alone';
const ignoreEnter = (event) => event.key === 'Enter' && event.preventDefault(); // it would start the fit

// The choice for every column before the user changes it.
export const defaultChoice = (columns) =>
  Object.fromEntries(columns.map((c) => [c.name, { use: !c.problem && Boolean(c.type), type: c.type }]));

export function columnParameters(columns, chosen) {
  const types = {};
  const drop = [];
  for (const column of columns) {
    const { use, type, format } = chosen[column.name];
    if (!use) drop.push(column.name);
    // naming the type keeps a column that looks like an identifier
    else if (format) types[column.name] = `${type}:${format}`;
    else if (type !== column.type || column.exclusion === 'identifier') types[column.name] = type;
  }
  return { types, drop };
}

function ColumnRow({ column, chosen, onChange }) {
  const { name, type, examples, missing } = column;
  const isDate = DATES.includes(chosen.type);
  const remark = column.problem || (isDate && chosen.use ? DATE_REMARK : '');
  const use = (event) => onChange(name, { use: event.target.checked });
  const retype = (value) => onChange(name, { type: value });
  const choice =
    html`<${Select} label=${`Type of ${name}`} value=${chosen.type} options=${TYPES} onChange=${retype} />`;
  const format = isDate && html`
    <input type="text" class="format" maxlength="80" aria-label=${`Date format of ${name}`} value=${chosen.format ?? ''}
      placeholder="such as %d/%m/%Y" onKeyDown=${ignoreEnter}
      onInput=${(event) => onChange(name, { format: event.target.value.trim() })} />
  `;
  return html`
    <tr class=${chosen.use ? '' : 'out'}>
      <td class="use">
        <input type="checkbox" aria-label=${`Use ${name}`} checked=${chosen.use} disabled=${!type} onChange=${use} />
      </td>
      <td class="name">${named(name)}</td>
      <td class="type">${type ? [choice, format] : html`<span class="quiet">none</span>`}</td>
      <td class="examples wide">${examples.join(', ') || 'no value'}</td>
      <td class="number missing wide">${missing ? percent(missing) : ''}</td>
      <td class="problem wide">${remark}</td>
    </tr>
  `;
}

// Of many columns, the first ones and those with a remark are shown, and those that match a search.
export function ColumnTable({ columns, chosen, onChange }) {
  const [query, setQuery] = useState('');
  const [all, setAll] = useState(columns.length <= FIRST_COLUMNS);
  const input = useRef(null);
  const text = query.trim().toLowerCase();
  const shown = columns.filter((c, i) =>
    text ? c.name.toLowerCase().includes(text) : all || i < FIRST_COLUMNS || c.problem
  );
  const showAll = () => {
    setAll(true);
    input.current.focus();
  };
  return html`
    ${columns.length > FIRST_COLUMNS && html`
      <div class="find actions">
        <label for="find">Find a column</label>
        <input id="find" type="search" placeholder="part of its name" value=${query} ref=${input}
          onKeyDown=${ignoreEnter} onInput=${onValue(setQuery)} />
        ${!all && html`<button type="button" onClick=${showAll}>Show all columns</button>`}
        <span class="quiet small" role="status">${count(shown.length)} of ${count(columns.length)} shown</span>
      </div>
    `}
    <${Table} id="columns" label="Table of the columns" kind="columns stacked" columns=${HEADINGS}>
      ${shown.map((c) =>
        html`<${ColumnRow} key=${c.name} column=${c} chosen=${chosen[c.name]} onChange=${onChange} />`
      )}
    <//>
  `;
}
