// The quiet parts: the judgement in short, what was learned, drivers, the health of the model.

import { bar, card, count, folded, make, pairs, percent, plural, sheet } from './dom.js';
import { lossChart } from './loss_chart.js';

export const KIND_NAMES = {
  number: ['number', 'numbers'], boolean: ['yes or no', 'yes or no'], category: ['category', 'categories'], text: ['text', 'texts'],
  datetime: ['date and time', 'dates and times'], date: ['date', 'dates'], time: ['time of day', 'times of day'], duration: ['duration', 'durations'],
};

function headline(data) {
  const expected = data.rate * data.n_rows;
  const margin = 3 * Math.sqrt(expected) + 1;
  const n = data.n_strange;
  const start = n === 0 ? `None of the ${count(data.n_rows)} rows looks unlike what the model knows.`
    : `${plural(n, 'row', 'rows')} of ${count(data.n_rows)} (${percent(n / data.n_rows)}) ${n === 1 ? 'looks' : 'look'} unlike what the model knows.`;
  const usual = `If every row were normal, up to about ${count(Math.max(1, expected))} would look strange by chance`;
  const verdict = n > expected + margin ? `${usual}: this is clearly more, so there are real anomalies here, or the table itself has changed.`
    : n < expected - margin || n === 0 ? `${usual}: this is fewer.` : `${usual}: their number alone tells nothing, so look at the highest scores.`;
  return `${start} ${verdict}`;
}

export function summarySheet(data, ...more) {
  const cards = make('div', { id: 'cards', class: 'cards' },
    card(count(data.n_rows), 'rows checked'),
    card(count(data.n_strange), `strange rows (${percent(data.n_strange / data.n_rows)})`),
    card(percent(data.rate), 'promised false alarms among normal rows'),
    card(`${count(data.drift.n_some + data.drift.n_strong)} of ${count(data.drift.n_columns)}`, 'columns that changed since training'));
  const auc = data.scores.labelled?.auc;
  if (auc !== null && auc !== undefined) cards.append(card(percent(auc), 'of pairs of a known anomaly and a normal row are ranked rightly (AUC-ROC)'));
  return sheet('In short', make('p', { id: 'headline', class: 'headline', text: headline(data) }), cards, ...more);
}

export function learnedSheet(data) {
  const l = data.learned;
  const word = (kind, n) => KIND_NAMES[kind]?.[n === 1 ? 0 : 1] || kind;
  const kinds = Object.entries(l.kinds).map(([kind, n]) => `${count(n)} ${word(kind, n)}`).join(', ');
  const names = l.columns.map(([name, kind]) => [name, word(kind, 1)]);
  const more = l.n_columns - names.length;
  return sheet('What the model learned', make('div', { id: 'learned' },
    make('p', {
      text: `It learned how ${plural(l.n_columns, 'column', 'columns')} of normal rows go together: ${kinds}. Its alarm level was set with `
        + `${plural(l.n_calibration, 'normal row', 'normal rows')} that the network judging them had not seen, and it keeps ${count(l.n_reference)} training rows for comparison.`,
    }),
    folded(`The columns (${count(l.n_columns)})`, pairs(more > 0 ? [...names, ['and others', count(more)]] : names)),
    l.left_out.length ? folded(`Columns left out (${count(l.left_out.length)})`, pairs(l.left_out)) : null,
    data.ignored.length ? make('p', { class: 'quiet', text: `Columns of this table that the model does not know, and ignores: ${data.ignored.join(', ')}.` }) : null));
}

export function driversSheet(data) {
  const grid = make('div', { id: 'drivers', class: 'bars' });
  const largest = Math.max(...data.drivers.map((d) => d.share), 1e-30);
  for (const { name, share, first } of data.drivers) {
    grid.append(make('div', { text: name }), bar((share / largest) * 0.6, first > 0 ? `${percent(share)}, main reason in ${percent(first)} of rows` : percent(share)));
  }
  return sheet('Which columns drive the alarms', make('p', {
    text: data.drivers.length ? 'How much of the score of the strange rows comes from each column, on average, and how often it is the main reason.'
      : 'No row raised an alarm, so there is nothing to explain.',
  }), grid);
}

export function healthSheet(data) {
  const history = make('div', { id: 'history', class: 'chart' });
  const curves = data.health.history;
  lossChart(history, { empty: 'No curve was kept.' })(curves, Math.max(1, ...curves.flatMap((c) => c.step)));
  return sheet('Health of the model', make('div', { class: 'two' },
    make('div', {}, make('h3', { text: 'Anomalies made on purpose' }),
      make('p', { class: 'quiet', text: 'How reliably the model ranks a made-up anomaly above a normal row that it has not seen. 50\u00a0% is guessing.' }), synthetic(data)),
    make('div', {}, make('h3', { text: 'Training' }), make('p', { class: 'quiet', text: 'The loss should fall and then flatten.' }), history)));
}

function synthetic(data) {
  const kinds = {
    local: 'Slightly off: a bit away from its own group', global: 'Far off: any value in any column',
    dependency: 'Mismatched: plausible values, wrong combination', clustered: 'A new group: many alike, all elsewhere',
  };
  const word = (auc) => (auc >= 0.95 ? 'very reliable' : auc >= 0.85 ? 'reliable' : auc >= 0.7 ? 'fair' : 'weak');
  const grid = make('div', { id: 'synthetic', class: 'bars' });
  for (const [kind, auc] of Object.entries(data.health.synthetic)) {
    grid.append(make('div', { text: kinds[kind] }), auc === null ? make('div', { class: 'quiet', text: 'not possible with these columns' }) : bar(auc * 0.6, `${percent(auc)}, ${word(auc)}`, 'is-normal'));
  }
  return grid;
}

export const settingsSheet = (data) => sheet('Settings and versions', make('div', { id: 'settings' }, pairs(Object.entries(data.versions)), folded('All settings of the model', pairs(data.settings))));
