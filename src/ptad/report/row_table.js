// The rows with the highest scores: a table that sorts by any heading and opens an explanation under a row. It has as
// many columns of values as there is room for. Where the page is narrow the styles make a card of every row, with the
// row's own strongest cells in place of the columns.

import { named, Scroller, useLimit, useWidth, valued } from './components.js';
import { Explanation, observedText, reasonText, rowName, rowNumber } from './row_explanation.js';
import { count, percent, pText, short } from './text.js';
import { html, useMemo, useRef, useState } from './vendor/preact.js';

const FIRST_ROWS = 20; // shown before one asks for more
const CARD_CELLS = 4; // on a card, those that make up a tenth of the positive contributions or more
const FIXED_WIDTH = 470; // of the columns that are always there, and of one with values
const LABEL_WIDTH = 90;
const CELL_WIDTH = 140;
const LONG_NAME = 40; // letters; names beyond get more room in fewer columns
const LONG_NAME_WIDTH = 210;

// A column of the table may be called as one of ours: its id is its number.
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

// How a cell is coloured and what it says.
function cellOf({ scores, top, values_shown: shown }, row, cell) {
  // The main reason of a row is as red as it gets, unless it is less than half of what lies between a typical normal
  // row and the threshold.
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
    const { text, ...given } = cellOf(data, row, shown);
    return html`
      <td ...${given} class=${`${given.class} cell`}>
        <div>${text}</div>
      </td>
    `;
  };
  const chip = (shown) => {
    const { text, ...given } = cellOf(data, row, shown);
    return html`<span ...${given}>${named(names[shown.column])}: ${text}</span>`;
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
  // what does not depend on the threshold is made once: the slider moves over a thousand rows
  const cells = useMemo(() => cellsOf(data, row, n, open), [row, n, open]);
  const why = useMemo(() => open && html`<${Explanation} data=${data} row=${row} />`, [row, open]);
  // the whole row takes a click, the button in it the keyboard
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
    // numbers are read from the top, names from A
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
  // an explanation is as wide as what is seen of the table, however far that is scrolled
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
