// The strangest rows: a table that sorts by any heading and opens an explanation under a row.

import { bar, count, limited, make, oneIn, percent, plural, short, sum } from './dom.js';

const share = (contribution, row) => (row.score > 0 ? contribution / row.score : 0);

export function rowTable(container, data) {
  const { top, scores } = data;
  const nameOf = (j) => top.names[j];
  // A cell that makes up half of an alarm is as red as it gets.
  const heat = (contribution) => Math.max(0, Math.min(1, contribution / Math.max(scores.threshold / 2, 1e-30)));
  const labelled = Boolean(scores.labelled);
  const headings = [
    { text: 'Row', key: (r) => r.row, number: true },
    { text: 'Score', key: (r) => r.score, number: true },
    { text: 'As strange as', key: (r) => r.p, number: true, title: 'How often a normal row is at least this strange' },
    ...(labelled ? [{ text: 'Known as', key: (r) => Number(r.anomaly) }] : []),
    { text: 'Main reason', key: (r) => nameOf(r.cells[0][0]) },
    ...top.columns.map((j, i) => ({ text: nameOf(j), key: (r) => r.shown[i][1], title: 'Sorts by how strange the cell is' })),
  ];
  const body = make('tbody');
  const heads = headings.map((heading, i) => {
    const button = make('button', { text: heading.text, attributes: { type: 'button', title: heading.title }, on: { click: () => sort(i) } });
    return make('th', { class: heading.number ? 'number' : '', attributes: { scope: 'col', 'aria-sort': i === 1 ? 'descending' : 'none' } }, button);
  });
  const lines = top.rows.map((row) => ({ row, tr: line(row) }));

  function line(row) {
    const tr = make('tr', { class: 'row', attributes: { tabindex: '0', 'aria-expanded': 'false', 'aria-label': `Row ${row.row}, score ${short(row.score)}. Press Enter for the explanation` } });
    tr.append(make('td', { text: count(row.row), class: 'number' }), make('td', { text: short(row.score), class: 'number' }), make('td', { text: oneIn(row.p), class: 'number' }));
    if (labelled) tr.append(make('td', { text: row.anomaly ? 'anomaly' : 'normal' }));
    tr.append(make('td', { text: nameOf(row.cells[0][0]) }));
    for (const [j, contribution, observed] of row.shown) {
      const td = make('td', { text: observed === null ? 'missing' : observed, class: 'heat', variables: { '--heat': `${Math.round(65 * heat(contribution))}%` } });
      td.title = `${nameOf(j)}: ${percent(share(contribution, row))} of the score`;
      tr.append(td);
    }
    tr.addEventListener('click', () => toggle(tr, row));
    tr.addEventListener('keydown', (event) => {
      if (event.target !== tr || (event.key !== 'Enter' && event.key !== ' ')) return;
      event.preventDefault();
      toggle(tr, row);
    });
    return tr;
  }

  function toggle(tr, row) {
    const open = tr.getAttribute('aria-expanded') === 'true';
    tr.setAttribute('aria-expanded', String(!open));
    if (open) { tr.nextSibling.remove(); return; }
    tr.after(make('tr', { class: 'explanation' }, make('td', { class: 'detail', attributes: { colspan: headings.length } }, explanation(row))));
  }

  function sort(i) {
    const { key } = headings[i];
    const was = heads[i].getAttribute('aria-sort');
    const text = typeof key(top.rows[0]) === 'string'; // numbers are read from the top, names from A
    const direction = was === 'none' ? (text ? 'ascending' : 'descending') : was === 'descending' ? 'ascending' : 'descending';
    const sign = direction === 'ascending' ? 1 : -1;
    heads.forEach((th, k) => th.setAttribute('aria-sort', k === i ? direction : 'none'));
    lines.sort((a, b) => sign * (text ? key(a.row).localeCompare(key(b.row)) : key(a.row) - key(b.row)));
    const few = lines.some(({ tr }) => tr.hidden);
    lines.forEach(({ tr }, k) => {
      tr.hidden = few && k >= 20;
      const opened = tr.getAttribute('aria-expanded') === 'true' ? tr.nextSibling : null;
      body.append(tr);
      if (opened) { body.append(opened); opened.hidden = tr.hidden; }
    });
  }

  function explanation(row) {
    const box = make('div', { attributes: { role: 'region', 'aria-label': `Explanation of row ${row.row}` } });
    box.append(make('p', {
      text: `Row ${count(row.row)} has a score of ${short(row.score)}, ${short(row.score / Math.max(scores.threshold, 1e-30))} times the alarm level of the promised rate. `
        + `About ${oneIn(row.p)} normal rows ${row.p <= 1 / (data.learned.n_calibration + 0.5) ? 'or fewer ' : ''}would be at least this strange.`,
    }));
    const grid = make('div', { class: 'reasons' });
    grid.append(...['Column', 'Observed', 'Expected', 'Share of the score'].map((text) => make('div', { text, class: 'head' })));
    const largest = Math.max(...row.cells.map((c) => c[1]), 1e-30);
    for (const [j, contribution, observed, expected] of row.cells.slice(0, 10)) {
      grid.append(make('div', { text: nameOf(j), class: 'column' }), make('div', { text: observed === null ? 'missing' : observed, class: 'observed' }),
        make('div', { text: expected === null ? 'a new value' : expected, class: 'expected' }), bar((contribution / largest) * 0.8, percent(share(contribution, row))));
    }
    box.append(grid);
    const n = data.learned.n_columns - Math.min(10, row.cells.length);
    const others = row.rest + sum(row.cells.slice(10).map((c) => c[1]));
    if (n > 0) box.append(make('p', { class: 'quiet', text: `The other ${plural(n, 'column', 'columns')} make up ${percent(Math.max(0, share(others, row)))}.` }));
    return box;
  }

  body.append(...lines.map(({ tr }) => tr));
  container.append(make('table', {}, make('thead', {}, make('tr', {}, ...heads)), body));
  limited(container, lines.map(({ tr }) => tr), 20, 'rows');
  new ResizeObserver(() => container.style.setProperty('--visible', `${container.clientWidth}px`)).observe(container);
  return (index) => {
    for (const { row, tr } of lines) tr.classList.toggle('below', row.score <= scores.edges[index]);
  };
}
