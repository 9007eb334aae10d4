// The strangest rows: a table that sorts by any heading and opens an explanation under a row. Where the page is narrow the
// styles make a card of every row, which has the row's own strongest cells in the place of the columns of the table.

import { bar, clipped, count, limited, make, oneIn, percent, plural, short, sum } from './dom.js';

const FIRST_ROWS = 20; // shown before one asks for more
const REASONS = 10;
const CARD_CELLS = 4; // on a card, those that make up a tenth of the score or more
const shareOf = (contribution, row) => (row.score > 0 ? contribution / row.score : 0);
const observedText = (value) => (value === null ? 'missing' : value);

// Fills the container; returns a function that marks the rows that are no alarm at a level.
export function rowTable(container, data) {
  const { top, scores } = data;
  const nameOf = (j) => top.names[j];
  // The main reason of a row is as red as it gets, unless it makes up less than half of an alarm.
  const heat = (contribution, row) => Math.max(0, contribution) / Math.max(row.cells[0][1], scores.threshold / 2, 1e-30);
  const labelled = Boolean(scores.labelled);
  const headings = [
    { text: 'Row', key: (r) => r.row, number: true },
    { text: 'Score', key: (r) => r.score, number: true },
    { text: 'As strange as', kind: 'rarity', key: (r) => r.p, number: true, title: 'How often a normal row is at least this strange' },
    ...(labelled ? [{ text: 'Known as', kind: 'known', key: (r) => Number(r.anomaly) }] : []),
    { text: 'Main reason', kind: 'main', key: (r) => nameOf(r.cells[0][0]) },
    ...top.columns.map((j, i) => ({ text: clipped(nameOf(j)), kind: 'cell', key: (r) => r.shown[i][1], title: `${nameOf(j)}: sorts by how strange the cell is` })),
  ];
  const body = make('tbody');
  const heads = headings.map((head, i) => {
    const button = make('button', { text: head.text, attributes: { type: 'button', title: head.title }, on: { click: () => sort(i) } });
    return make('th', { class: [head.number && 'number', head.kind].filter(Boolean).join(' '), attributes: { scope: 'col', 'aria-sort': i === 1 ? 'descending' : 'none' } }, button);
  });
  const textOf = (row, [, contribution, observed]) => (data.values_shown ? observedText(observed) : percent(shareOf(contribution, row)));
  const heated = (row, [j, contribution, observed], kind = '') => ({
    class: `heat ${kind} ${observed === null && data.values_shown ? 'none' : ''}`.trim(),
    variables: { '--heat': `${Math.round(65 * heat(contribution, row))}%` },
    attributes: { title: `${nameOf(j)}: ${data.values_shown ? `${observedText(observed)}, ` : ''}${percent(shareOf(contribution, row))} of the score` },
  });
  const lines = top.rows.map((row) => ({ row, tr: line(row) }));

  function line(row) {
    const opener = make('button', { class: 'opener', text: count(row.row), attributes: { type: 'button', 'aria-expanded': 'false', 'aria-label': `Why row ${row.row} is strange` } });
    const tr = make('tr', { class: 'row' }, make('td', { class: 'number which' }, opener), make('td', { text: short(row.score), class: 'number score' }), make('td', { text: oneIn(row.p), class: 'number rarity' }));
    if (labelled) tr.append(make('td', { text: row.anomaly ? 'anomaly' : 'normal', class: row.anomaly ? 'known bad' : 'known' }));
    tr.append(make('td', { text: clipped(nameOf(row.cells[0][0])), class: 'main', attributes: { title: nameOf(row.cells[0][0]) } }));
    for (const cell of row.shown) tr.append(make('td', { ...heated(row, cell, 'cell'), text: textOf(row, cell) }));
    const strongest = row.cells.slice(0, CARD_CELLS).filter((cell, i) => i === 0 || shareOf(cell[1], row) >= 0.1);
    tr.append(make('td', { class: 'strongest' }, ...strongest.map((cell) => make('span', heated(row, cell), make('span', { class: 'name', text: clipped(nameOf(cell[0])) }), ` ${textOf(row, cell)}`))));
    // the whole row takes a click, the button in it the keyboard
    tr.addEventListener('click', () => toggle(tr, opener, row));
    return tr;
  }

  function toggle(tr, opener, row) {
    const open = opener.getAttribute('aria-expanded') === 'true';
    opener.setAttribute('aria-expanded', String(!open));
    if (open) { tr.nextSibling.remove(); return; }
    tr.after(make('tr', { class: 'explanation' }, make('td', { class: 'detail', attributes: { colspan: headings.length } }, explanation(data, row))));
  }

  function sort(i) {
    const { key } = headings[i];
    const was = heads[i].getAttribute('aria-sort');
    const text = typeof key(top.rows[0]) === 'string'; // numbers are read from the top, names from A
    const direction = was === 'none' ? (text ? 'ascending' : 'descending') : was === 'descending' ? 'ascending' : 'descending';
    const sign = direction === 'ascending' ? 1 : -1;
    heads.forEach((th, k) => th.setAttribute('aria-sort', k === i ? direction : 'none'));
    const opened = new Map(lines.map(({ tr }) => [tr, tr.nextSibling?.classList.contains('explanation') ? tr.nextSibling : null]));
    lines.sort((a, b) => sign * (text ? key(a.row).localeCompare(key(b.row)) : key(a.row) - key(b.row)));
    const few = lines.some(({ tr }) => tr.hidden);
    lines.forEach(({ tr }, k) => {
      tr.hidden = few && k >= FIRST_ROWS;
      body.append(tr);
      const below = opened.get(tr);
      if (below) { below.hidden = tr.hidden; body.append(below); }
    });
  }

  body.append(...lines.map(({ tr }) => tr));
  container.append(make('table', {}, make('thead', {}, make('tr', {}, ...heads)), body));
  limited(container, lines.map(({ tr }) => tr), FIRST_ROWS, 'rows');
  // an explanation is as wide as what is seen of the table, however far that is scrolled
  new ResizeObserver(() => container.style.setProperty('--visible', `${container.clientWidth}px`)).observe(container);
  return (index) => {
    for (const { row, tr } of lines) tr.classList.toggle('below', row.score <= scores.edges[index]);
  };
}

function explanation(data, row) {
  const { top, scores, values_shown: shown } = data;
  const box = make('div', { attributes: { role: 'region', 'aria-label': `Explanation of row ${row.row}` } });
  box.append(make('p', {
    text: `Row ${count(row.row)} has a score of ${short(row.score)}, ${short(row.score / Math.max(scores.threshold, 1e-30))} times the alarm level of the promised rate. `
      + `About ${oneIn(row.p)} normal rows ${row.p <= 1 / (data.learned.n_calibration + 0.5) ? 'or fewer ' : ''}would be at least this strange.`,
  }));
  const grid = make('div', { class: shown ? 'reasons' : 'reasons valueless' });
  const head = shown ? ['Column', 'Observed', 'Expected', 'Share of the score'] : ['Column', 'Share of the score'];
  grid.append(...head.map((text) => make('div', { text, class: 'head' })));
  const largest = Math.max(...row.cells.map((c) => c[1]), 1e-30);
  for (const [j, contribution, observed, expected] of row.cells.slice(0, REASONS)) {
    grid.append(make('div', { text: top.names[j], class: 'column' }));
    if (shown) grid.append(make('div', { text: observedText(observed), class: 'observed' }), make('div', { text: expected === null ? 'a new value' : expected, class: 'expected' }));
    grid.append(contribution < 0 ? bar(0, `lowers it by ${percent(-shareOf(contribution, row))}`, 'is-nothing') : bar((contribution / largest) * 0.8, percent(shareOf(contribution, row))));
  }
  box.append(grid);
  const others = row.rest + sum(row.cells.slice(REASONS).map((c) => c[1]));
  const n = data.learned.n_columns - Math.min(REASONS, row.cells.length);
  if (n > 0) box.append(make('p', { class: 'quiet', text: `The other ${plural(n, 'column', 'columns')} make up ${percent(Math.max(0, shareOf(others, row)))}.` }));
  return box;
}
