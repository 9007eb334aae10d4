// The alarm level: the histogram with its slider, what it means in words, and the strangest rows that follow it.

import { count, make, percent, plural, scroller, sheet, short, sum } from './dom.js';
import { rowTable } from './row_table.js';
import { scoreChart } from './score_chart.js';

function beyond(counts, edges) {
  const totals = new Array(edges.length);
  let total = counts[counts.length - 1];
  for (let i = edges.length - 1; i >= 0; i -= 1) { totals[i] = total; total += counts[i]; }
  return totals;
}

// Two sheets that belong together. ``buttons`` stand beside the slider; ``onMove`` hears the edge and the rate there.
export function levelSheets(data, { buttons = [], onMove = () => {} } = {}) {
  const { scores, top } = data;
  const strange = beyond(scores.counts, scores.edges);
  const known = scores.labelled ? beyond(scores.labelled.counts, scores.edges) : null;
  const rateAt = (i) => (i === scores.threshold_index ? data.rate : scores.rates[i]);
  const words = (i) => {
    const n = strange[i];
    const found = `${plural(n, 'row', 'rows')} of ${count(data.n_rows)} (${percent(n / data.n_rows)}) ${n === 1 ? 'is' : 'are'} strange at a score above ${short(scores.edges[i])}. `
      + `Of normal rows, at most ${percent(rateAt(i))} would raise an alarm.`;
    if (!known) return found;
    const all = sum(scores.labelled.counts);
    return `${found} ${count(known[i])} of the ${count(all)} known anomalies are found (${percent(known[i] / Math.max(1, all))}); ${n ? percent(known[i] / n) : 'none'} of the alarms are right.`;
  };

  const chart = make('div', { id: 'score-chart', class: 'chart' });
  const slider = make('input', { id: 'threshold', attributes: { type: 'range', min: 0, max: scores.edges.length - 1, step: 1 } });
  slider.value = scores.threshold_index;
  const reset = make('button', { id: 'reset', text: 'Back to the promised rate', attributes: { type: 'button' } });
  const status = make('p', { id: 'threshold-text', attributes: { role: 'status', 'aria-live': 'polite' } });
  const table = scroller('top', 'Table of the strangest rows');
  const moveChart = scoreChart(chart, scores);

  const levels = sheet('How strange the rows are',
    make('p', { text: 'Every row has a score; the higher, the less it looks like the rows that the model learned from. Rows right of the line raise an alarm. Move the line to see how the count changes.' }),
    chart, make('div', { class: 'slider' }, slider, make('label', { text: 'Alarm level', attributes: { for: 'threshold' } }), make('div', { class: 'actions' }, reset, ...buttons)), status);
  const rows = sheet('The strangest rows', make('p', {
    id: 'top-note',
    text: `The ${plural(top.rows.length, 'row', 'rows')} with the highest scores; rows are counted from 0. The redder a cell, the more of the row’s score it causes. `
      + `Choose a row to see ${data.values_shown ? 'what was expected instead' : 'its reasons'}, or a heading to sort.${data.values_shown ? '' : ' Values were left out of this report on purpose.'}`,
  }), table);
  const markRows = rowTable(table, data);

  function move(i) {
    moveChart(i);
    markRows(i);
    status.textContent = words(i);
    slider.setAttribute('aria-valuetext', `score ${short(scores.edges[i])}, ${plural(strange[i], 'strange row', 'strange rows')}`);
    reset.disabled = i === scores.threshold_index;
    onMove(i, rateAt(i));
  }
  slider.addEventListener('input', () => move(Number(slider.value)));
  reset.addEventListener('click', () => { slider.value = scores.threshold_index; move(scores.threshold_index); slider.focus(); });
  move(scores.threshold_index);
  return [levels, rows];
}
