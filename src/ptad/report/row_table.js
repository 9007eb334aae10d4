// The rows with the highest scores: a table that sorts by any heading and opens an explanation under a row. Where the
// page is narrow the styles make a card of every row, with the row's own strongest cells in place of the columns.

import { clipped, count, limited, make, percent, pText, short } from './dom.js';
import { explanation, observedText, reasonText } from './row_explanation.js';

const FIRST_ROWS = 20; // shown before one asks for more
const CARD_CELLS = 4; // on a card, those that make up a tenth of the positive contributions or more

// Fills the container; returns a function that marks the rows that are not flagged at a threshold.
export function rowTable(container, data) {
  const { top, scores } = data;
  const nameOf = (j) => top.names[j];
  const labelled = Boolean(scores.labelled);
  // The main reason of a row is as red as it gets, unless it is less than half of what lies between a typical normal
  // row and the threshold.
  const full = Math.max((scores.threshold - scores.scale[0]) / 2, 1e-30);
  const heat = ({ contribution }, row) => Math.max(0, contribution) / Math.max(row.cells[0].contribution, full);
  const headings = [
    { text: 'Row', key: (r) => r.row, number: true },
    { text: 'Score', key: (r) => r.score, number: true },
    {
      text: 'p-value',
      kind: 'rarity',
      key: (r) => r.p,
      number: true,
      title: 'Share of normal rows with such a score',
    },
    ...(labelled ? [{ text: 'Label', kind: 'known', key: (r) => Number(r.anomaly) }] : []),
    { text: 'Main reason', kind: 'main', key: (r) => nameOf(r.cells[0].column) },
    ...top.columns.map((j, i) => ({
      text: clipped(nameOf(j)),
      kind: 'cell',
      key: (r) => r.shown[i].contribution,
      title: `${nameOf(j)}: sorts by contribution`,
    })),
  ];
  const body = make('tbody');
  const heads = headings.map((head, i) => {
    const attributes = { type: 'button', title: head.title };
    const button = make('button', { text: head.text, attributes, on: { click: () => sort(i) } });
    const kind = [head.number && 'number', head.kind].filter(Boolean).join(' ');
    return make(
      'th',
      { class: kind, attributes: { scope: 'col', 'aria-sort': i === 1 ? 'descending' : 'none' } },
      button,
    );
  });
  const textOf = (cell) => (data.values_shown ? observedText(cell.observed) : percent(cell.percentage / 100));
  const heated = (row, cell, kind = '') => ({
    class: `heat ${kind} ${cell.observed === null ? 'none' : ''}`.trim(),
    variables: { '--heat': `${Math.round(65 * heat(cell, row))}%` },
    attributes: { title: `${nameOf(cell.column)}: ${reasonText(cell)}, ${percent(cell.percentage / 100)}` },
  });
  const lines = top.rows.map((row) => ({ row, tr: line(row) }));

  function line(row) {
    const [first] = row.cells;
    const attributes = { type: 'button', 'aria-expanded': 'false', 'aria-label': `Why row ${row.row} has its score` };
    const opener = make('button', { class: 'opener', text: count(row.row), attributes });
    const tr = make(
      'tr',
      { class: 'row' },
      make('td', { class: 'number which' }, opener),
      make('td', { text: short(row.score), class: 'number score' }),
      make('td', { text: pText(row.p), class: 'number rarity' }),
    );
    const label = row.anomaly ? 'anomaly' : 'normal';
    if (labelled) tr.append(make('td', { text: label, class: row.anomaly ? 'known bad' : 'known' }));
    tr.append(
      make(
        'td',
        { class: 'main', attributes: { title: `${nameOf(first.column)}: ${reasonText(first)}` } },
        make('b', { text: clipped(nameOf(first.column)) }),
        make('span', { text: reasonText(first) }),
      ),
    );
    for (const cell of row.shown) tr.append(make('td', { ...heated(row, cell, 'cell'), text: textOf(cell) }));
    const strongest = row.cells.slice(0, CARD_CELLS).filter((cell, i) => i === 0 || cell.percentage >= 10);
    const chip = (cell) =>
      make(
        'span',
        heated(row, cell),
        make('span', { class: 'name', text: clipped(nameOf(cell.column)) }),
        ` ${textOf(cell)}`,
      );
    tr.append(make('td', { class: 'strongest' }, ...strongest.map(chip)));
    // the whole row takes a click, the button in it the keyboard
    tr.addEventListener('click', () => toggle(tr, opener, row));
    return tr;
  }

  function toggle(tr, opener, row) {
    const open = opener.getAttribute('aria-expanded') === 'true';
    opener.setAttribute('aria-expanded', String(!open));
    if (open) {
      tr.nextSibling.remove();
      return;
    }
    const cell = make('td', { class: 'detail', attributes: { colspan: headings.length } }, explanation(data, row));
    tr.after(make('tr', { class: 'explanation' }, cell));
  }

  function sort(i) {
    const { key } = headings[i];
    const was = heads[i].getAttribute('aria-sort');
    const text = typeof key(top.rows[0]) === 'string'; // numbers are read from the top, names from A
    const first = text ? 'ascending' : 'descending';
    const direction = was === 'none' ? first : was === 'descending' ? 'ascending' : 'descending';
    const sign = direction === 'ascending' ? 1 : -1;
    heads.forEach((th, k) => th.setAttribute('aria-sort', k === i ? direction : 'none'));
    const below = (tr) => (tr.nextSibling?.classList.contains('explanation') ? tr.nextSibling : null);
    const opened = new Map(lines.map(({ tr }) => [tr, below(tr)]));
    lines.sort((a, b) => sign * (text ? key(a.row).localeCompare(key(b.row)) : key(a.row) - key(b.row)));
    const few = lines.some(({ tr }) => tr.hidden);
    lines.forEach(({ tr }, k) => {
      tr.hidden = few && k >= FIRST_ROWS;
      body.append(tr);
      const under = opened.get(tr);
      if (under) {
        under.hidden = tr.hidden;
        body.append(under);
      }
    });
  }

  body.append(...lines.map(({ tr }) => tr));
  container.append(make('table', {}, make('thead', {}, make('tr', {}, ...heads)), body));
  limited(
    container,
    lines.map(({ tr }) => tr),
    FIRST_ROWS,
    'rows',
  );
  // an explanation is as wide as what is seen of the table, however far that is scrolled
  const fit = () => container.style.setProperty('--visible', `${container.clientWidth}px`);
  new ResizeObserver(fit).observe(container);
  return (index) => {
    for (const { row, tr } of lines) tr.classList.toggle('below', row.score <= scores.edges[index]);
  };
}
