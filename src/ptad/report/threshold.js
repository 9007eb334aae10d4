// The threshold: the histogram with its slider, what it means in words, and the table of anomalies that follows it.

import { count, inPercent, make, percent, plural, scroller, sheet, short, sum } from './dom.js';
import { rowTable } from './row_table.js';
import { scoreChart } from './score_chart.js';

function beyond(counts, edges) {
  const totals = new Array(edges.length);
  let total = counts[counts.length - 1];
  for (let i = edges.length - 1; i >= 0; i -= 1) {
    totals[i] = total;
    total += counts[i];
  }
  return totals;
}

// What a threshold means, in words.
function meaning(data, flagged, known, i, rate) {
  const n = flagged[i];
  const rows = `${plural(n, 'row', 'rows')} of ${count(data.n_rows)}${inPercent(n, data.n_rows)}`;
  const threshold = `the threshold of ${short(data.scores.edges[i])}`;
  const start = n
    ? `${rows} ${n === 1 ? 'is' : 'are'} flagged: ${n === 1 ? 'its score is' : 'their scores are'} above ${threshold}.`
    : `No row of ${count(data.n_rows)} is flagged: no score is above ${threshold}.`;
  const found = `${start} Of normal rows, at most ${percent(rate)} are flagged.`;
  if (!known) return found;
  const all = sum(data.scores.labelled.counts);
  const right = n ? ` ${count(known[i])} of the ${plural(n, 'flagged row', 'flagged rows')} ` : '';
  return (
    `${found} ${count(known[i])} of the ${plural(all, 'known anomaly', 'known anomalies')} ` +
    `${all === 1 ? 'is' : 'are'} found${inPercent(known[i], all)}.` +
    (n ? `${right}${n === 1 ? 'is a known anomaly' : 'are known anomalies'}${inPercent(known[i], n)}.` : '')
  );
}

// Two sheets that belong together. ``buttons`` stand beside the slider; ``onMove`` hears the edge and the rate there.
export function thresholdSheets(data, { buttons = [], onMove = () => {} } = {}) {
  const { scores, top } = data;
  const flagged = beyond(scores.counts, scores.edges);
  const known = scores.labelled ? beyond(scores.labelled.counts, scores.edges) : null;
  const rateAt = (i) => (i === scores.threshold_index ? data.rate : scores.rates[i]);

  const chart = make('div', { id: 'score-chart', class: 'chart' });
  const range = { type: 'range', min: 0, max: scores.edges.length - 1, step: 1 };
  const slider = make('input', { id: 'threshold', attributes: range });
  slider.value = scores.threshold_index;
  const reset = make('button', { id: 'reset', text: 'Back to the target rate', attributes: { type: 'button' } });
  const status = make('p', { id: 'threshold-text', attributes: { role: 'status', 'aria-live': 'polite' } });
  const table = scroller('top', 'Table of the rows with the highest scores');
  const moveChart = scoreChart(chart, scores);

  const chosen = sheet(
    'Scores and threshold',
    make('p', {
      text: 'Every row has a score; the higher, the less it looks like the training rows. Rows right of the line are ' +
        'flagged. Move the line to see how their number changes.',
    }),
    chart,
    make(
      'div',
      { class: 'slider' },
      slider,
      make('label', { text: 'Threshold', attributes: { for: 'threshold' } }),
      make('div', { class: 'actions' }, reset, ...buttons),
    ),
    status,
  );
  const rows = sheet('Highest scores', make('p', { id: 'top-note', text: topNote(data, top) }), table);
  const markRows = rowTable(table, data);

  function move(i) {
    moveChart(i);
    markRows(i);
    status.textContent = meaning(data, flagged, known, i, rateAt(i));
    const spoken = `score ${short(scores.edges[i])}, ${plural(flagged[i], 'flagged row', 'flagged rows')}`;
    slider.setAttribute('aria-valuetext', spoken);
    reset.disabled = i === scores.threshold_index;
    onMove(i, rateAt(i));
  }
  slider.addEventListener('input', () => move(Number(slider.value)));
  reset.addEventListener('click', () => {
    slider.value = scores.threshold_index;
    move(scores.threshold_index);
    slider.focus();
  });
  move(scores.threshold_index);
  return [chosen, rows];
}

function topNote(data, top) {
  const shown = data.values_shown;
  return (
    `The ${plural(top.rows.length, 'row', 'rows')} with the highest scores; rows are counted from 0. The redder a ` +
    `cell, the more it contributes to the score. Choose a row to see ${shown ? 'what was expected' : 'its reasons'}, ` +
    `or a heading to sort.${shown ? '' : ' This report shows no values, as was asked for.'}`
  );
}
