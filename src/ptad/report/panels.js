// The quiet parts of the page: what was learned, drivers, drift, health, settings.

function cards(container) {
  const card = (value, text) => make('div', { class: 'card' }, make('b', { text: value }), make('span', { text }));
  const drifted = data.drift.n_some + data.drift.n_strong;
  container.append(
    card(count(data.n_rows), 'rows checked'),
    card(count(data.n_strange), `strange rows (${percent(data.n_strange / data.n_rows)})`),
    card(percent(data.rate), 'promised false alarms among normal rows'),
    card(`${count(drifted)} of ${count(data.drift.n_columns)}`, 'columns that changed since training'),
  );
}

function headline() {
  const expected = data.rate * data.n_rows;
  const margin = 3 * Math.sqrt(expected) + 1;
  const n = data.n_strange;
  const start = n === 0 ? `None of the ${count(data.n_rows)} rows looks unlike what the model knows.`
    : `${plural(n, 'row', 'rows')} of ${count(data.n_rows)} (${percent(n / data.n_rows)}) ${n === 1 ? 'looks' : 'look'} unlike what the model knows.`;
  const usual = `If every row were normal, up to about ${count(Math.max(1, expected))} would look strange by chance`;
  const verdict = n > expected + margin ? `${usual}: this is clearly more, so there are real anomalies here, or the table itself has changed.`
    : n < expected - margin ? `${usual}: this is fewer.` : `${usual}: this is no more than that.`;
  return `${start} ${verdict}`;
}

function learned(container) {
  const l = data.learned;
  const kinds = Object.entries(l.kinds).map(([kind, n]) => plural(n, KIND_NAMES[kind]?.[0] || kind, KIND_NAMES[kind]?.[1] || kind)).join(', ');
  container.append(make('p', {
    text: `It learned how ${plural(l.n_columns, 'column', 'columns')} of normal rows go together: ${kinds}. Its alarm level was set with `
      + `${plural(l.n_calibration, 'normal row', 'normal rows')} that the network judging them had not seen, and it keeps ${count(l.n_reference)} training rows for comparison.`,
  }));
  const names = l.columns.map(([name, kind]) => [name, KIND_NAMES[kind]?.[0] || kind]);
  const more = l.n_columns - names.length;
  container.append(folded(`The columns (${count(l.n_columns)})`, pairs(more > 0 ? [...names, ['and others', count(more)]] : names)));
  if (l.left_out.length) container.append(folded(`Columns left out (${l.left_out.length})`, pairs(l.left_out)));
  if (data.ignored.length) {
    container.append(make('p', { class: 'quiet', text: `Columns of this table that the model does not know, and ignores: ${data.ignored.join(', ')}.` }));
  }
}

const KIND_NAMES = {
  number: ['number', 'numbers'], boolean: ['yes or no', 'yes or no'], category: ['category', 'categories'], text: ['text', 'texts'],
  datetime: ['date and time', 'dates and times'], date: ['date', 'dates'], time: ['time of day', 'times of day'], duration: ['duration', 'durations'],
};

function drivers(container) {
  if (!data.drivers.length) { byId('drivers-note').textContent = 'No row raised an alarm, so there is nothing to explain.'; return; }
  byId('drivers-note').textContent = 'How much of the score of the strange rows comes from each column, on average, and how often it is the main reason.';
  const largest = Math.max(...data.drivers.map((d) => d.share), 1e-30);
  const grid = make('div', { class: 'bars' });
  for (const driver of data.drivers) {
    grid.append(make('div', { text: driver.name }), bar((driver.share / largest) * 0.6, driver.first > 0 ? `${percent(driver.share)}, main reason in ${percent(driver.first)} of rows` : percent(driver.share)));
  }
  container.append(grid);
}

function drift(container) {
  const d = data.drift;
  const changed = d.n_some + d.n_strong;
  byId('drift-note').textContent = changed
    ? `${plural(changed, 'column', 'columns')} of ${count(d.n_columns)} changed visibly, ${count(d.n_strong)} of them strongly. Where a table changes, more rows look strange; if the change is meant, train the model anew.`
    : 'No column changed more than chance explains.';
  const body = make('tbody');
  for (const column of d.columns) {
    const verdict = { strong: 'strong change', some: 'some change', steady: 'steady' }[column.verdict];
    body.append(make('tr', {}, make('td', { text: column.name }),
      make('td', {}, make('span', { class: `tag ${column.verdict}`, text: verdict })),
      make('td', {}, twinBars(column)),
      make('td', { class: 'change', text: largestChange(column) }),
      make('td', { class: 'number', text: `${percent(column.missing[0])} → ${percent(column.missing[1])}` }),
      make('td', { class: 'number', text: column.psi.toFixed(2) })));
  }
  const heads = ['Column', 'Verdict', 'Training and now', 'Largest change (share of rows)', 'Missing', 'Index'];
  const legend = make('ul', { class: 'legend' }, make('li', {}, make('i', { class: 'is-usual' }), 'training'), make('li', {}, make('i', { class: 'is-normal' }), 'this table'),
    make('li', { text: 'Index: population stability index; from 0.10 some, from 0.25 strong' }));
  container.append(legend, make('table', {}, make('thead', {}, make('tr', {}, ...heads.map((text, i) => make('th', { text, class: i > 3 ? 'number' : '', attributes: { scope: 'col' } })))), body));
  limited(container, [...body.children], 12, 'columns');
  if (d.n_columns > d.columns.length) container.append(make('p', { class: 'quiet', text: `${count(d.n_columns - d.columns.length)} steadier columns are not listed.` }));
}

function twinBars(column) {
  const width = 144;
  const height = 36;
  const n = column.before.length;
  const most = Math.max(...column.before, ...column.now, 0.01);
  const svg = draw('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${column.name}: ${largestChange(column) || 'shares in training and now'}` });
  const step = width / n;
  for (let i = 0; i < n; i += 1) {
    [[column.before[i], 'fill-usual', 0], [column.now[i], 'fill-normal', 0.46]].forEach(([share, kind, shift]) => {
      const size = (share / most) * (height - 1);
      const rect = draw('rect', { x: (i + shift) * step, y: height - size, width: Math.max(1, step * 0.44), height: size, class: kind });
      svg.append(rect);
    });
    if (column.labels) {
      const tip = draw('title');
      tip.textContent = `${column.labels[i]}: ${percent(column.before[i])} → ${percent(column.now[i])}`;
      svg.append(draw('rect', { x: i * step, y: 0, width: step, height, 'fill-opacity': 0 }, tip));
    }
  }
  return svg;
}

function largestChange(column) {
  if (!column.labels) return '';
  let best = 0;
  column.now.forEach((share, i) => {
    if (Math.abs(share - column.before[i]) > Math.abs(column.now[best] - column.before[best])) best = i;
  });
  return `${column.labels[best]}: ${percent(column.before[best])} → ${percent(column.now[best])}`;
}

function synthetic(container) {
  const kinds = {
    local: 'Slightly off: a bit away from its own group', global: 'Far off: any value in any column',
    dependency: 'Mismatched: plausible values, wrong combination', clustered: 'A new group: many alike, all elsewhere',
  };
  const word = (auc) => (auc >= 0.95 ? 'very reliable' : auc >= 0.85 ? 'reliable' : auc >= 0.7 ? 'fair' : 'weak');
  const grid = make('div', { class: 'bars' });
  for (const [kind, auc] of Object.entries(data.health.synthetic)) {
    grid.append(make('div', { text: kinds[kind] }), auc === null ? make('div', { class: 'quiet', text: 'not possible with these columns' }) : bar(auc * 0.6, `${percent(auc)}, ${word(auc)}`, 'is-normal'));
  }
  container.append(grid);
}

function history(container) {
  const curves = data.health.history;
  const values = curves.flatMap((c) => [...c.total, ...(c.held_out || [])]).filter((v) => v > 0).map(Math.log);
  if (!values.length) { container.append(make('p', { class: 'quiet', text: 'No curve was kept.' })); return; }
  const low = Math.min(...values);
  const high = Math.max(...values, low + 0.1);
  const last = Math.max(...curves.flatMap((c) => c.step));
  responsive(container, (width) => {
    const height = 190;
    const x = (step) => 48 + (step / last) * (width - 60);
    const y = (value) => 8 + ((high - Math.log(value)) / (high - low)) * (height - 48);
    const svg = draw('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Loss over the training steps' });
    for (const share of [0, 0.5, 1]) {
      const value = Math.exp(low + share * (high - low));
      const label = draw('text', { x: 42, y: y(value) + 4, 'text-anchor': 'end' });
      label.textContent = short(value);
      svg.append(draw('line', { x1: 48, x2: width - 12, y1: y(value), y2: y(value), class: 'stroke-line' }), label);
    }
    const path = (steps, series) => steps.map((step, i) => `${i ? 'L' : 'M'}${x(step)} ${y(Math.max(series[i], Math.exp(low)))}`).join('');
    for (const curve of curves) {
      svg.append(draw('path', { d: path(curve.step, curve.total), class: 'stroke-normal' }));
      if (curve.held_out) svg.append(draw('path', { d: path(curve.step, curve.held_out), class: 'stroke-strange' }));
    }
    const title = draw('text', { x: width / 2 + 24, y: height - 6, 'text-anchor': 'middle' });
    title.textContent = `training step, 0 to ${count(last)}${curves.some((c) => c.held_out) ? '; dashed: rows held back' : ''}`;
    svg.append(title);
    container.replaceChildren(svg);
  });
}
