// The rows with the highest scores: a table that sorts by any heading and opens an explanation under a row. It has as
// many columns of values as there is room for. Where the page is narrow the styles make a card of every row, with the
// row's own strongest cells in place of the columns.

import { Name, Scroller, useLimit, useWidth, Value } from './components.js';
import { count, percent, pText, short } from './dom.js';
import { Explanation, observedText, reasonText } from './row_explanation.js';
import { html, useMemo, useRef, useState } from './vendor/preact.js';

const FIRST_ROWS = 20; // shown before one asks for more
const CARD_CELLS = 4; // on a card, those that make up a tenth of the positive contributions or more
const FIXED_WIDTH = 470; // of the columns that are always there, and of one with values
const LABEL_WIDTH = 90;
const CELL_WIDTH = 140;

function headingsOf({ top, scores }, n) {
  return [
    { text: 'Row', key: (r) => r.row, kind: 'number' },
    { text: 'Score', key: (r) => r.score, kind: 'number' },
    { text: 'p-value', key: (r) => r.p, kind: 'number rarity', title: 'Share of normal rows with such a score' },
    ...(scores.labelled ? [{ text: 'Label', kind: 'known', key: (r) => Number(r.anomaly) }] : []),
    { text: 'Main reason', kind: 'main', key: (r) => top.names[r.cells[0].column] },
    ...top.columns.slice(0, n).map((j, i) => ({
      id: j, // a column of the table may be called as one of ours
      text: top.names[j],
      kind: 'cell',
      key: (r) => r.shown[i].contribution,
      title: `${top.names[j]}: sorts by contribution`,
    })),
  ];
}

const idOf = (head) => head.id ?? head.text;

function sorted(rows, { key }, direction) {
  const sign = direction === 'ascending' ? 1 : -1;
  const compared = (a, b) => typeof a === 'string' ? a.localeCompare(b) : a - b;
  return [...rows].sort((a, b) => sign * compared(key(a), key(b)));
}

function Heading({ head, sort, onSort }) {
  return html`
    <th class=${head.kind} scope="col" aria-sort=${sort}>
      <button type="button" title=${head.title} onClick=${onSort}>${head.kind === 'cell'
        ? html`<${Name} text=${head.text} />`
        : head.text}</button>
    </th>
  `;
}

// How a cell is coloured and what it says.
function cellOf(data, row, cell) {
  const { scores, top } = data;
  // The main reason of a row is as red as it gets, unless it is less than half of what lies between a typical normal
  // row and the threshold.
  const full = Math.max((scores.threshold - scores.scale[0]) / 2, 1e-30);
  const heat = Math.max(0, cell.contribution) / Math.max(row.cells[0].contribution, full);
  const part = percent(cell.percentage / 100);
  return {
    kind: cell.observed === null ? 'heat none' : 'heat',
    style: { '--heat': `${Math.round(65 * heat)}%` },
    title: `${top.names[cell.column]}: ${reasonText(cell)}, ${part}`,
    text: data.values_shown ? observedText(cell.observed) : part,
  };
}

function Cell({ data, row, cell }) {
  const { kind, style, title, text } = cellOf(data, row, cell);
  return html`
    <td class=${`${kind} cell`} style=${style} title=${title}>
      <div>
        <${Value} text=${text} />
      </div>
    </td>
  `;
}

function Chip({ data, row, cell }) {
  const { kind, style, title, text } = cellOf(data, row, cell);
  const name = data.top.names[cell.column];
  return html`
    <span class=${kind} style=${style}
      title=${title}><${Name} text=${name} />: <${Value} text=${text} /></span>
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

function cellsOf(data, row, n, open) {
  const [first] = row.cells;
  const strongest = row.cells.slice(0, CARD_CELLS).filter((cell, i) => i === 0 || cell.percentage >= 10);
  const value = data.values_shown && first.observed !== null && html`<i>${first.observed} · </i>`;
  return html`
    <td class="number which">
      <button class="opener" type="button" aria-expanded=${String(open)}
        aria-label=${`Why row ${row.row} has its score`}>${count(row.row)}</button>
    </td>
    <td class="number score">${short(row.score)}</td>
    <td class="number rarity">${pText(row.p)}</td>
    ${data.scores.labelled &&
      html`<td class=${row.anomaly ? 'known bad' : 'known'}>${row.anomaly ? 'anomaly' : 'normal'}</td>`}
    <td class="main">
      <b><${Name} text=${data.top.names[first.column]} /></b>
      <span>${value}<${Name} text=${reasonText(first)} /></span>
    </td>
    ${row.shown.slice(0, n).map((cell) => html`<${Cell} ...${{ data, row, cell }} />`)}
    <td class="strongest">${strongest.map((cell) => html`<${Chip} ...${{ data, row, cell }} />`)}</td>
  `;
}

// ``threshold`` is the score above which rows are flagged.
export function RowTable({ data, threshold }) {
  const place = useRef(null);
  const width = useWidth(place);
  const room = width - FIXED_WIDTH - (data.scores.labelled ? LABEL_WIDTH : 0);
  const n = Math.max(1, Math.min(data.top.columns.length, Math.floor(room / CELL_WIDTH)));
  const headings = headingsOf(data, n);
  const [{ by, direction }, setOrder] = useState({ by: 'Score', direction: 'descending' });
  const [open, setOpen] = useState([]);
  const { rows } = data.top;
  const [few, more] = useLimit(rows.length, FIRST_ROWS, place);
  const used = headings.find((head) => idOf(head) === by) || headings[1];

  const shown = useMemo(() => sorted(rows, used, direction).slice(0, few), [by, direction, few]);
  const sort = (head) => {
    // numbers are read from the top, names from A
    const first = typeof head.key(rows[0]) === 'string' ? 'ascending' : 'descending';
    const other = direction === 'ascending' ? 'descending' : 'ascending';
    setOrder({ by: idOf(head), direction: head === used ? other : first });
  };
  const toggle = (row) => setOpen(open.includes(row) ? open.filter((r) => r !== row) : [...open, row]);

  // an explanation is as wide as what is seen of the table, however far that is scrolled
  return html`
    <${Scroller} id="top" label="Table of the rows with the highest scores" place=${place}>
      <table style=${{ '--visible': `${width}px` }}>
        <thead><tr>
          ${headings.map((head) =>
            html`
              <${Heading} head=${head} sort=${head === used ? direction : 'none'} onSort=${() => sort(head)} />
            `
          )}
        </tr></thead>
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
