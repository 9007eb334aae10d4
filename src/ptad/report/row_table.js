// The rows with the highest scores: a table that sorts by any heading and shows explanations below rows, with as many
// columns of values as fit. On a narrow page every row is a card with its strongest cells in place of the columns.

import { Bar, named, Scroller, useLimit, useWidth, valued } from './components.js';
import { count, percent, plural, pText, short, spaced, sum } from './text.js';
import { html, useMemo, useRef, useState } from './vendor/preact.js';

const FIRST_ROWS = 20; // before the button for more
const CARD_CELLS = 4; // at most, each with a tenth of the positive contributions or more
const REASONS = 10; // columns in an explanation
const FIXED_WIDTH = 470; // of the columns that are always there, and of one with values
const LABEL_WIDTH = 90;
const CELL_WIDTH = 140;
const LONG_NAME = 40; // letters; with longer names, there are fewer and wider columns
const LONG_NAME_WIDTH = 210;

// The number of a row in its file, and the file if there are several; older reports have only the position.
const rowNumber = (row) => row.number ?? row.row;
const rowName = (row) => count(rowNumber(row)) + (row.file ? ` of ${row.file}` : '');
const observedText = (value) => (value === null ? 'missing' : value);
const reasonText = (cell) => (cell.contribution > 0 ? cell.reason : 'lowers the score');

function introduction(data, row) {
  const { threshold } = data.scores;
  const n = data.fitted.n_calibration;
  const least = row.p <= 1 / (n + 0.5) ? `, the smallest that ${plural(n, 'calibration row')} can give` : '';
  const side = row.score > threshold ? 'above' : 'not above';
  return (
    `Row ${rowName(row)} has a score of ${short(row.score)}, ${side} the threshold of ${short(threshold)}. ` +
    `Its p-value is ${pText(row.p)}${least}.`
  );
}

function remainder(data, row) {
  const others = row.rest + sum(row.cells.slice(REASONS).map((c) => c.contribution));
  const n = data.fitted.n_columns - Math.min(REASONS, row.cells.length);
  const columns = n === 1 ? 'column contributes' : `${count(n)} columns contribute`;
  const isSmall = Math.abs(others) < 1e-4 * Math.abs(row.score);
  const rest = n > 0 && !isSmall ? `The other ${columns} ${short(others)}. ` : '';
  const terms = Object.entries(row.terms).map(([name, amount]) => `${spaced(name)} ${short(amount)}`);
  return `${rest}Percentages are of all positive contributions. Terms of the score: ${terms.join(', ')}.`;
}

function Explanation({ data, row }) {
  const shown = data.values_shown;
  const heads = ['Column', 'Reason', ...(shown ? ['Observed', 'Expected'] : []), 'Contribution'];
  const largest = Math.max(...row.cells.map((c) => c.percentage), 1e-30);
  const reason = (cell) => {
    const share = cell.contribution > 0 ? cell.percentage : 0;
    const text = short(cell.contribution) + (cell.contribution > 0 ? ` (${percent(share / 100)})` : '');
    return html`
      <div class="column">${named(data.top.names[cell.column])}</div>
      <div class="quiet">${named(reasonText(cell))}</div>
      ${shown && html`
        <div class="observed">${valued(observedText(cell.observed))}</div>
        <div class="expected">${valued(cell.expected ?? 'other text')}</div>
      `}
      <${Bar} share=${(share / largest) * 0.6} text=${text} />
    `;
  };
  return html`
    <div role="region" aria-label=${`Explanation of row ${rowName(row)}`}>
      <p>${introduction(data, row)}</p>
      <div class=${shown ? 'reasons' : 'reasons valueless'}>
        ${heads.map((text) => html`<b class="head">${text}</b>`)} ${row.cells.slice(0, REASONS).map(reason)}
      </div>
      <p class="quiet">${remainder(data, row)}</p>
    </div>
  `;
}

// The id of a column of the table is its number, since its name may be that of another heading.
function headingsOf({ top, scores }, n) {
  const values = (j, i) => ({
    id: j,
    text: named(top.names[j]),
    kind: 'cell',
    key: (r) => r.shown[i].contribution,
    title: `${top.names[j]}: sorts by contribution`,
  });
  return [
    { id: 'row', text: 'Row', key: (r) => r.row, kind: 'number which' },
    { id: 'score', text: 'Score', key: (r) => r.score, kind: 'number' },
    { id: 'p', text: 'p-value', key: (r) => r.p, kind: 'number p', title: 'Share of normal rows with such a score' },
    ...(scores.labelled ? [{ id: 'label', text: 'Label', kind: 'known', key: (r) => Number(r.anomaly) }] : []),
    { id: 'main', text: 'Main reason', kind: 'main', key: (r) => top.names[r.cells[0].column] },
    ...top.columns.slice(0, n).map(values),
  ];
}

function sorted(rows, { key }, direction) {
  const sign = direction === 'ascending' ? 1 : -1;
  const compared = (a, b) => typeof a === 'string' ? a.localeCompare(b) : a - b;
  return [...rows].sort((a, b) => sign * compared(key(a), key(b)));
}

// Colour, tooltip and text of a cell.
function cellOf({ scores, top, values_shown: shown }, row, cell) {
  // The main reason of a row has the full colour, unless it is less than half of the distance from a typical normal row
  // to the threshold.
  const full = Math.max((scores.threshold - scores.scale[0]) / 2, 1e-30);
  const heat = Math.max(0, cell.contribution) / Math.max(row.cells[0].contribution, full);
  const part = percent(cell.percentage / 100);
  return {
    class: cell.observed === null ? 'heat none' : 'heat',
    style: { '--heat': `${Math.round(65 * heat)}%` },
    title: `${top.names[cell.column]}: ${reasonText(cell)}, ${part}`,
    text: valued(shown ? observedText(cell.observed) : part),
  };
}

function cellsOf(data, row, n, open) {
  const { names } = data.top;
  const [first] = row.cells;
  const strongest = row.cells.slice(0, CARD_CELLS).filter((cell, i) => i === 0 || cell.percentage >= 10);
  const observed = data.values_shown && first.observed !== null && html`<i>${first.observed} · </i>`;
  const cell = (shown) => {
    const { text, ...attributes } = cellOf(data, row, shown);
    return html`
      <td ...${attributes} class=${`${attributes.class} cell`}>
        <div>${text}</div>
      </td>
    `;
  };
  const chip = (shown) => {
    const { text, ...attributes } = cellOf(data, row, shown);
    return html`<span ...${attributes}>${named(names[shown.column])}: ${text}</span>`;
  };
  return html`
    <td class="number which">
      <button class="opener" type="button" aria-expanded=${String(open)}
        aria-label=${`Why row ${rowName(row)} has its score`}>${count(rowNumber(row))}</button>
      ${row.file && html`<small class="quiet">${named(row.file)}</small>`}
    </td>
    <td class="number score">${short(row.score)}</td>
    <td class="number p">${pText(row.p)}</td>
    ${data.scores.labelled &&
      html`<td class=${row.anomaly ? 'known bad' : 'known'}>${row.anomaly ? 'anomaly' : 'normal'}</td>`}
    <td class="main"><b>${named(names[first.column])}</b><span>${observed}${named(reasonText(first))}</span></td>
    ${row.shown.slice(0, n).map(cell)}
    <td class="strongest">${strongest.map(chip)}</td>
  `;
}

function Line({ data, row, n, below, open, span, onToggle }) {
  // memoised, since they do not depend on the threshold and the slider renders up to a thousand rows
  const cells = useMemo(() => cellsOf(data, row, n, open), [row, n, open]);
  const why = useMemo(() => open && html`<${Explanation} data=${data} row=${row} />`, [row, open]);
  // the whole row reacts to clicks, the button in it to the keyboard
  return html`
    <tr class=${below ? 'row below' : 'row'} onClick=${onToggle}>${cells}</tr>
    ${why && html`
      <tr class="explanation">
        <td class="detail" colspan=${span}>${why}</td>
      </tr>
    `}
  `;
}

// ``threshold`` is the score above which rows are flagged.
export function RowTable({ data, threshold }) {
  const { rows, names, columns } = data.top;
  const place = useRef(null);
  const width = useWidth(place);
  const isLong = Object.values(names).some((name) => name.length > LONG_NAME);
  const cell = isLong ? LONG_NAME_WIDTH : CELL_WIDTH;
  const room = width - FIXED_WIDTH - (cell - CELL_WIDTH) - (data.scores.labelled ? LABEL_WIDTH : 0);
  const n = Math.max(1, Math.min(columns.length, Math.floor(room / cell)));
  const headings = headingsOf(data, n);
  const [{ by, direction }, setOrder] = useState({ by: 'score', direction: 'descending' });
  const [open, setOpen] = useState([]);
  const [few, more] = useLimit(rows.length, FIRST_ROWS, place);
  const used = headings.find(({ id }) => id === by) ?? headings[1];

  const shown = useMemo(() => sorted(rows, used, direction).slice(0, few), [by, direction, few]);
  const sort = (head) => {
    // numbers start with the largest, names with A
    const first = typeof head.key(rows[0]) === 'string' ? 'ascending' : 'descending';
    const other = direction === 'ascending' ? 'descending' : 'ascending';
    setOrder({ by: head.id, direction: head === used ? other : first });
  };
  const toggle = (row) => setOpen(open.includes(row) ? open.filter((r) => r !== row) : [...open, row]);
  const heading = (head) =>
    html`
      <th class=${head.kind} scope="col" aria-sort=${head === used ? direction : 'none'}>
        <button type="button" title=${head.title} onClick=${() => sort(head)}>${head.text}</button>
      </th>
    `;
  // an explanation is as wide as the visible part of the table
  return html`
    <${Scroller} id="top" label="Table of the rows with the highest scores" place=${place}>
      <table style=${{ '--visible': `${width}px`, '--cell': `${cell}px` }}>
        <thead><tr>${headings.map(heading)}</tr></thead>
        <tbody>
          ${shown.map((row) =>
            html`
              <${Line} key=${row.row} ...${{ data, row, n }} below=${row.score <= threshold} span=${headings.length}
                open=${open.includes(row)} onToggle=${() => toggle(row)} />
            `
          )}
        </tbody>
      </table>
    <//>
    ${more('rows')}
  `;
}
