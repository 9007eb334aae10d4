// The threshold: the histogram with its slider, what it means in words, and the table of anomalies that follows it.

import { Sheet } from './components.js';
import { RowTable } from './row_table.js';
import { ScoreChart } from './score_chart.js';
import { chosen, count, inPercent, percent, plural, short, sum } from './text.js';
import { html, useRef, useState } from './vendor/preact.js';

// How many scores lie beyond the edge i.
const beyond = (counts, i) => sum(counts.slice(i + 1));

// What a threshold means, in words.
function meaning({ n_rows: all, scores, training_table: isTraining }, i, rate) {
  const n = beyond(scores.counts, i);
  const threshold = `the threshold of ${short(scores.edges[i])}`;
  const rows = all === 1 ? 'The row' : `${plural(n, 'row')} of ${count(all)}${inPercent(n, all)}`;
  const are = chosen(n, 'is flagged: its score is', 'are flagged: their scores are');
  const none = all === 1 ? 'The row is not flagged: its' : `No row of ${count(all)} is flagged: no`;
  const start = n
    ? `${rows} ${are} above ${threshold}.`
    : `${none} score is ${all === 1 ? 'not ' : ''}above ${threshold}.`;
  const found = `${start} Of normal rows, at most ${percent(rate)} are flagged.`;
  if (!scores.labelled) return found;
  const known = beyond(scores.labelled.counts, i);
  const anomalies = sum(scores.labelled.counts);
  const named = isTraining
    ? plural(anomalies, 'anomaly of the training table', 'anomalies of the training table')
    : plural(anomalies, 'known anomaly', 'known anomalies');
  const share = `${count(known)} of the ${named} ${chosen(known, 'is', 'are')} found${inPercent(known, anomalies)}.`;
  const right = `${count(known)} of the ${plural(n, 'flagged row')} ` +
    `${chosen(known, 'is a known anomaly', 'are known anomalies')}${inPercent(known, n)}.`;
  return [found, share, ...(n ? [right] : [])].join(' ');
}

function topNote({ top, values_shown: shown }) {
  const n = top.rows.length;
  return (
    `The ${n === 1 ? 'row with the highest score' : `${count(n)} rows with the highest scores`}; ` +
    `${top.counting?.note ?? 'rows are counted from 0'}. The redder a cell, the more it contributes to the score. ` +
    `Choose a row to see ${shown ? 'what was expected' : 'its reasons'}, or a heading to sort.` +
    (shown ? '' : ' This report shows no values, as was asked for.')
  );
}

// ``keep``, where there is one, makes the rate at the slider that of the model.
export function Threshold({ data, keep }) {
  const { scores } = data;
  const [index, setIndex] = useState(scores.threshold_index);
  const slider = useRef(null);
  const isTarget = index === scores.threshold_index;
  const rate = isTarget ? data.rate : scores.rates[index];
  const last = scores.edges.length - 1;
  const reset = () => {
    setIndex(scores.threshold_index);
    slider.current.focus();
  };
  const spoken = `score ${short(scores.edges[index])}, ${plural(beyond(scores.counts, index), 'flagged row')}`;
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
          <button id="reset" type="button" disabled=${isTarget} onClick=${reset}>Back to the target rate</button>
          ${keep && html`
            <button id="keep" type="button" disabled=${isTarget || rate >= 1} onClick=${() => keep(rate)}>
              Use this false-alarm rate from now on
            </button>
          `}
        </div>
      </div>
      <p id="threshold-text" role="status" aria-live="polite">${meaning(data, index, rate)}</p>
      <//>
      <${Sheet} title="Highest scores">
        <p id="top-note">${topNote(data)}</p>
        <${RowTable} data=${data} threshold=${scores.edges[index]} />
        <//>
  `;
}
