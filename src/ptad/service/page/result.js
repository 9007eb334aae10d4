// What a judged table looks like: headline, histogram with slider, strangest rows, drivers, drift, downloads.

import { download, get, send } from './api.js';
import { scoreChart } from './charts.js';
import { bar, count, draw, folded, limited, make, pairs, percent, plural, sheet, short, sum } from './dom.js';
import { rowTable } from './rows.js';
import { attempt, go, say } from './shell.js';

export async function showResult(view, id) {
  const job = await get(`/v1/jobs/${id}`);
  if (job.state !== 'done') { go(`#/jobs/${id}`); return; }
  const data = await get(`/v1/jobs/${id}/report`);
  const { scores } = data;
  view.title(`${data.table}: what is strange`);
  const save = (format, label) => make('button', { text: label, attributes: { type: 'button' }, on: { click: () => attempt(() => download(`/v1/jobs/${id}/scores?format=${format}`, `scored.${format}`)) } });
  view.add(
    make('p', { class: 'quiet' }, 'Judged by ', make('a', { text: data.model, attributes: { href: `#/models/${job.model}` } }), ` · ${data.made}`),
    sheet('In short', make('p', { class: 'headline lead', text: headline(data) }), cards(data),
      make('div', { class: 'actions more' }, save('csv', 'Download as CSV'), save('parquet', 'Download as Parquet'))),
    scoresSheet(data, job, view),
    drivers(data),
    drift(data),
    sheet('About the model', pairs([
      ['columns used', count(data.learned.n_columns)], ['rows that set the alarm level', count(data.learned.n_calibration)],
      ['rows kept for comparison', count(data.learned.n_reference)], ['version', data.versions.ptad]]),
    data.learned.left_out.length ? folded(`Columns left out (${data.learned.left_out.length})`, pairs(data.learned.left_out)) : null,
    data.ignored.length ? make('p', { class: 'quiet', text: `Columns that the model does not know, and ignores: ${data.ignored.join(', ')}.` }) : null),
  );
  view.move(Number(scores.threshold_index));
}

function headline(data) {
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

function cards(data) {
  const card = (value, text) => make('div', { class: 'card' }, make('b', { text: value }), make('span', { text }));
  const box = make('div', { class: 'cards' }, card(count(data.n_rows), 'rows checked'), card(count(data.n_strange), `strange rows (${percent(data.n_strange / data.n_rows)})`),
    card(percent(data.rate), 'promised false alarms among normal rows'), card(`${count(data.drift.n_some + data.drift.n_strong)} of ${count(data.drift.n_columns)}`, 'columns that changed since training'));
  const auc = data.scores.labelled?.auc;
  if (auc !== null && auc !== undefined) box.append(card(percent(auc), 'of pairs of a known anomaly and a normal row are ranked rightly'));
  return box;
}

function scoresSheet(data, job, view) {
  const { scores } = data;
  const beyond = (counts) => {
    const totals = new Array(scores.edges.length);
    let total = counts[counts.length - 1];
    for (let i = scores.edges.length - 1; i >= 0; i -= 1) { totals[i] = total; total += counts[i]; }
    return totals;
  };
  const strange = beyond(scores.counts);
  const known = scores.labelled ? beyond(scores.labelled.counts) : null;
  const rateAt = (i) => (i === scores.threshold_index ? data.rate : scores.rates[i]);
  const text = (i) => {
    const n = strange[i];
    const parts = [`${plural(n, 'row', 'rows')} of ${count(data.n_rows)} (${percent(n / data.n_rows)}) ${n === 1 ? 'is' : 'are'} strange at a score above ${short(scores.edges[i])}. Of normal rows, at most ${percent(rateAt(i))} would raise an alarm.`];
    if (known) {
      const all = sum(scores.labelled.counts);
      parts.push(` ${count(known[i])} of the ${count(all)} known anomalies are found (${percent(known[i] / Math.max(1, all))}); ${n ? percent(known[i] / n) : 'none'} of the alarms are right.`);
    }
    return parts.join('');
  };
  const chart = make('div', { class: 'chart' });
  const slider = make('input', { id: 'threshold', attributes: { type: 'range', min: 0, max: scores.edges.length - 1, step: 1 } });
  slider.value = scores.threshold_index;
  const status = make('p', { id: 'threshold-text', attributes: { role: 'status', 'aria-live': 'polite' } });
  const keep = make('button', { id: 'keep', text: 'Use this level from now on', attributes: { type: 'button' } });
  const reset = make('button', { id: 'reset', text: 'Back to the promised rate', attributes: { type: 'button' } });
  const top = make('div', { id: 'top', class: 'scroll', attributes: { role: 'region', 'aria-label': 'The strangest rows', tabindex: '0' } });
  const moveChart = scoreChart(chart, scores);
  const rows = sheet('The strangest rows', make('p', { text: `The ${plural(data.top.rows.length, 'row', 'rows')} with the highest scores; rows are counted from 0. The redder a cell, the more of the score it causes. Choose a row to see what was expected instead, or a heading to sort.` }), top);
  const markRows = rowTable(top, data);
  view.move = (i) => {
    moveChart(i);
    markRows(i);
    status.textContent = text(i);
    slider.setAttribute('aria-valuetext', `score ${short(scores.edges[i])}, ${plural(strange[i], 'strange row', 'strange rows')}`);
    keep.disabled = i === scores.threshold_index || rateAt(i) >= 1;
  };
  slider.addEventListener('input', () => view.move(Number(slider.value)));
  reset.addEventListener('click', () => { slider.value = scores.threshold_index; view.move(scores.threshold_index); });
  keep.addEventListener('click', () => attempt(async () => {
    const rate = rateAt(Number(slider.value));
    await send('PATCH', `/v1/models/${job.model}`, { false_alarm_rate: rate });
    say(`From now on, ${data.model} promises at most ${percent(rate)} false alarms among normal rows. This page still shows the judgement with ${percent(data.rate)}.`, false);
  }));
  const levels = sheet('How strange the rows are',
    make('p', { text: 'Every row has a score; the higher, the less it looks like the rows that the model learned from. Rows right of the line raise an alarm. Move the line to see how the count changes.' }),
    chart, make('div', { class: 'slider' }, slider, make('label', { text: 'Alarm level', attributes: { for: 'threshold' } }), make('div', { class: 'actions' }, reset, keep)), status);
  const both = make('div', {}, levels, rows);
  return both;
}

function drivers(data) {
  if (!data.drivers.length) return null;
  const grid = make('div', { class: 'bars' });
  const most = data.drivers[0].share;
  for (const entry of data.drivers) grid.append(make('div', { text: entry.name }), bar((entry.share / most) * 0.5, `${percent(entry.share)} of the strangeness, the main reason in ${percent(entry.first)} of the strange rows`));
  return sheet('Which columns drive the alarms', grid);
}

function drift(data) {
  const d = data.drift;
  const changed = d.n_some + d.n_strong;
  const note = changed
    ? `${plural(changed, 'column', 'columns')} of ${count(d.n_columns)} changed visibly, ${count(d.n_strong)} of them strongly. Where a table changes, more rows look strange; if the change is meant, train a model anew.`
    : 'No column changed more than chance explains.';
  const body = make('tbody');
  for (const column of d.columns) {
    const verdict = { strong: 'strong change', some: 'some change', steady: 'steady' }[column.verdict];
    body.append(make('tr', {}, make('td', { text: column.name }), make('td', {}, make('span', { class: `tag ${column.verdict}`, text: verdict })),
      make('td', {}, twinBars(column)), make('td', { text: largestChange(column) }),
      make('td', { class: 'number', text: `${percent(column.missing[0])} → ${percent(column.missing[1])}` })));
  }
  const heads = ['Column', 'Verdict', 'Training and now', 'Largest change (share of rows)', 'Missing'];
  const table = make('table', {}, make('thead', {}, make('tr', {}, ...heads.map((text, i) => make('th', { text, class: i > 3 ? 'number' : '', attributes: { scope: 'col' } })))), body);
  const scroll = make('div', { id: 'drift', class: 'scroll', attributes: { role: 'region', 'aria-label': 'Changes by column', tabindex: '0' } }, table);
  const found = sheet('Has the table changed since training?', make('p', { text: note }), scroll);
  limited(scroll, [...body.children], 12, 'columns');
  return found;
}

function twinBars(column) {
  const [width, height, n] = [144, 36, column.before.length];
  const most = Math.max(...column.before, ...column.now, 0.01);
  const svg = draw('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': `${column.name}: ${largestChange(column) || 'shares in training and now'}` });
  const step = width / n;
  for (let i = 0; i < n; i += 1) {
    for (const [value, kind, shift] of [[column.before[i], 'fill-usual', 0], [column.now[i], 'fill-normal', 0.46]]) {
      const size = (value / most) * (height - 1);
      svg.append(draw('rect', { x: (i + shift) * step, y: height - size, width: Math.max(1, step * 0.44), height: size, class: kind }));
    }
  }
  return svg;
}

function largestChange(column) {
  if (!column.labels) return '';
  let best = 0;
  column.now.forEach((value, i) => { if (Math.abs(value - column.before[i]) > Math.abs(column.now[best] - column.before[best])) best = i; });
  return `${column.labels[best]}: ${percent(column.before[best])} → ${percent(column.now[best])}`;
}
