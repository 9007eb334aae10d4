// The threshold: the histogram with its slider, what it means in words, and the table of anomalies that follows it.

import { mounted, Nodes, Sheet } from './components.js';
import { count, inPercent, percent, plural, short, sum } from './dom.js';
import { RowTable } from './row_table.js';
import { ScoreChart } from './score_chart.js';
import { html, useLayoutEffect, useRef, useState } from './vendor/preact.js';

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
  const rows = data.n_rows === 1
    ? 'The row'
    : `${plural(n, 'row', 'rows')} of ${count(data.n_rows)}${inPercent(n, data.n_rows)}`;
  const threshold = `the threshold of ${short(data.scores.edges[i])}`;
  const none = data.n_rows === 1
    ? `The row is not flagged: its score is not above ${threshold}.`
    : `No row of ${count(data.n_rows)} is flagged: no score is above ${threshold}.`;
  const start = n
    ? `${rows} ${n === 1 ? 'is' : 'are'} flagged: ${n === 1 ? 'its score is' : 'their scores are'} above ${threshold}.`
    : none;
  const found = `${start} Of normal rows, at most ${percent(rate)} are flagged.`;
  if (!known) return found;
  const all = sum(data.scores.labelled.counts);
  const named = data.training_table
    ? plural(all, 'anomaly of the training table', 'anomalies of the training table')
    : plural(all, 'known anomaly', 'known anomalies');
  const right = n ? ` ${count(known[i])} of the ${plural(n, 'flagged row', 'flagged rows')} ` : '';
  return (
    `${found} ${count(known[i])} of the ${named} ` +
    `${all === 1 ? 'is' : 'are'} found${inPercent(known[i], all)}.` +
    (n ? `${right}${n === 1 ? 'is a known anomaly' : 'are known anomalies'}${inPercent(known[i], n)}.` : '')
  );
}

function topNote({ top, values_shown: shown }) {
  const n = top.rows.length;
  return (
    `The ${n === 1 ? 'row' : `${count(n)} rows`} with the highest ${n === 1 ? 'score' : 'scores'}; rows are counted ` +
    `from 0. The redder a cell, the more it contributes to the score. Choose a row to see ` +
    `${shown ? 'what was expected' : 'its reasons'}, or a heading to sort.` +
    (shown ? '' : ' This report shows no values, as was asked for.')
  );
}

// ``buttons`` are nodes that stand beside the slider; ``onMove`` hears the edge and the rate there.
export function Threshold({ data, buttons = [], onMove = () => {} }) {
  const { scores } = data;
  const [index, setIndex] = useState(scores.threshold_index);
  const slider = useRef(null);
  const flagged = beyond(scores.counts, scores.edges);
  const known = scores.labelled ? beyond(scores.labelled.counts, scores.edges) : null;
  const rate = index === scores.threshold_index ? data.rate : scores.rates[index];
  const last = scores.edges.length - 1;
  useLayoutEffect(() => onMove(index, rate), [index]);
  const reset = () => {
    setIndex(scores.threshold_index);
    slider.current.focus();
  };
  const spoken = `score ${short(scores.edges[index])}, ${plural(flagged[index], 'flagged row', 'flagged rows')}`;
  return html`
    <${Sheet} title="Scores and threshold">
      <p>
        Every row has a score; the higher, the less it looks like the training rows. Rows right of the line are
        flagged. Move the line to see how their number changes.
      </p>
      <${ScoreChart} scores=${scores} index=${index} />
      <div class="slider">
        <input id="threshold" type="range" min="0" max=${last} step="1" value=${index} ref=${slider}
          style=${{ '--at': `${(100 * index) / Math.max(1, last)}%` }}
          aria-valuetext=${spoken} onInput=${(event) => setIndex(Number(event.target.value))} />
        <label for="threshold">Threshold</label>
        <div class="actions">
          <button id="reset" type="button" disabled=${index === scores.threshold_index} onClick=${reset}>
            Back to the target rate
          </button>
          <${Nodes} nodes=${buttons} />
        </div>
      </div>
      <p id="threshold-text" role="status" aria-live="polite">${meaning(data, flagged, known, index, rate)}</p>
      <//>
      <${Sheet} title="Highest scores">
        <p id="top-note">${topNote(data)}</p>
        <${RowTable} data=${data} threshold=${scores.edges[index]} />
        <//>
  `;
}

export const thresholdSheets = (data, options = {}) => [mounted(html`<${Threshold} data=${data} ...${options} />`)];
