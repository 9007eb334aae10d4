// Two scorings side by side, and two models.

import { get } from './api.js';
import { Scatter } from './scatter.js';
import { Card, Legend, Name, Scroller, Sheet, useLimit } from './components.js';
import { count, inPercent, percent, plural, pText, short, spaced } from './dom.js';
import { TYPE_NAMES } from './panels.js';
import { versionName, when } from './parts.js';
import { html, useRef } from './vendor/preact.js';

const FIRST_ROWS = 20;
const cell = (value, text) => (value === null || value === undefined ? '–' : text(value));

// Quantiles of both sides, row by row.
function Quantiles({ title, note, levels, first, second, names }) {
  return html`
    <${Sheet} title=${title}>
      <p class="quiet">${note}</p>
      <${Scroller} id="quantiles" label=${title}>
        <table class="narrow">
          <thead>
            <tr>
              <th scope="col" class="number">Quantile</th>
              ${names.map((name) => html`<th scope="col" class="number">${name}</th>`)}
            </tr>
          </thead>
          <tbody>
            ${levels.map((level, i) =>
              html`
                <tr>
                  <td class="number">${percent(level)}</td>
                  <td class="number">${short(first[i])}</td>
                  <td class="number">${short(second[i])}</td>
                </tr>
              `
            )}
          </tbody>
        </table>
        <//>
        <//>
  `;
}

export async function showScoringComparison(view, a, b) {
  const [first, second, found, models] = await Promise.all([
    get(`/v1/jobs/${a}`),
    get(`/v1/jobs/${b}`),
    get(`/v1/jobs/${a}/comparison?other=${b}`),
    get('/v1/models'),
  ]);
  const byId = new Map(models.map((m) => [m.id, versionName(m)]));
  const name = (job) => found.same_table ? byId.get(job.model) ?? job.title : job.title;
  view.title('Two scorings');
  view.show(html`<${Scorings} jobs=${[first, second]} names=${['First', 'Second']} found=${found} nameOf=${name} />`);
}

function Scorings({ jobs, found, names, nameOf }) {
  const side = (job, i) =>
    html`
      <li>
        <div class="what">
          <a href=${`#/results/${job.id}`}>${names[i]}: <${Name} text=${nameOf(job)} /></a>
          <div class="quiet small">
            ${`${job.kind === 'fit' ? 'held-out scores of the training rows' : job.title}, ${when(job.created)}: ${
              count(job.scores.flagged)
            } of ` +
              `${plural(job.scores.rows, 'row', 'rows')} flagged${inPercent(job.scores.flagged, job.scores.rows)}`}
          </div>
        </div>
      </li>
    `;
  const thresholds = jobs.map((job) => job.scores.threshold);
  return html`
    <${Sheet} title="Compared"><ul class="lines">${jobs.map(side)}</ul><//>
    ${found.same_table ? html`<${Rows} found=${found} thresholds=${thresholds} />` : html`
      <p class="lead">These are two different tables: rows cannot be compared one by one, flag rates and scores can.</p>
    `}
    <${Quantiles} title="Quantiles of the scores" levels=${found.levels} names=${names}
      note="The score that this share of the rows does not exceed. Scores of different models have different scales."
      first=${found.first.quantiles} second=${found.second.quantiles} />
  `;
}

// Flags and scores of the same rows.
function Rows({ found, thresholds }) {
  const { flags, changed, points } = found;
  const moved = flags.first_only + flags.second_only;
  const marked = new Set(changed.map(({ row }) => row));
  const correlation = found.rank_correlation;
  return html`
    <${Sheet} title="Summary">
      <p id="moved" class="headline">
        ${moved
          ? `${plural(moved, 'row', 'rows')} changed ${moved === 1 ? 'its' : 'their'} flag.`
          : 'No row changed its flag.'}
      </p>
      <div class="cards">
        <${Card} value=${count(flags.both)} text="flagged in both" />
        <${Card} value=${count(flags.first_only)} text="flagged in the first only" />
        <${Card} value=${count(flags.second_only)} text="flagged in the second only" />
        <${Card} value=${count(flags.neither)} text="flagged in neither" />
        <${Card} value=${cell(correlation, (value) => value.toFixed(3))} text="rank correlation of the scores" />
      </div>
      <//>
      <${Sheet} title="Scores of the same rows">
      <p class="quiet">
        Both axes have a symmetric log scale; the dashed lines are the thresholds.
        ${points.length < found.first.rows && ` A sample of ${count(points.length)} rows.`}
      </p>
      <${Legend} entries=${[['is-normal', 'same flag in both'], ['is-anomaly', 'flag changed']]} />
      <${Scatter} label="Scatter of the scores of both scorings" points=${points} thresholds=${thresholds}
        names=${['score of the first', 'score of the second']} strong=${([row]) => marked.has(row)} />
    <//>
    ${changed.length > 0 && html`<${Changed} changed=${changed} moved=${moved} />`}
  `;
}

function Changed({ changed, moved }) {
  const place = useRef(null);
  const [shown, more] = useLimit(changed.length, FIRST_ROWS, place);
  const flag = ({ flagged }) => flagged ? html`<span class="tag strong">flagged</span>` : 'normal';
  const line = ({ row, first, second }) =>
    html`
      <tr>
        <td class="number">${count(row)}</td>
        ${[first, second].map((side) =>
          html`
            <td>${flag(side)}</td>
            <td class="number">${short(side.score)}</td>
            <td class="number">${pText(side.p_value)}</td>
          `
        )}
      </tr>
    `;
  return html`
    <${Sheet} title="Rows that changed their flag">
      <p class="quiet">
        ${`The clearest changes first; rows are counted from 0.` +
          (changed.length < moved ? ` ${count(changed.length)} of ${count(moved)} are listed.` : '')}
      </p>
      <${Scroller} id="changed" label="Rows that changed their flag" place=${place}>
        <table>
          <thead>
            <tr>
              <th scope="col" class="number">Row</th>
              ${['First', 'Second'].map((name) =>
                html`
                  <th scope="col">${name}</th>
                  <th scope="col" class="number">Score</th>
                  <th scope="col" class="number">p-value</th>
                `
              )}
            </tr>
          </thead>
          <tbody>${changed.slice(0, shown).map(line)}</tbody>
        </table>
      <//>
      ${more('rows')}
    <//>
  `;
}

export async function showModelComparison(view, a, b) {
  const found = await get(`/v1/models/${a}/comparison?other=${b}`);
  view.title('Two models');
  view.show(html`<${Models} found=${found} />`);
}

const DETAILS = [
  ['made_by', 'made by', (value) => ({ fit: 'fit', update: 'update', recalibrate: 'recalibration' })[value] ?? value],
  ['table', 'table', String],
  ['created', 'made', when],
  ['preset', 'preset', String],
  ['columns', 'columns', count],
  ['training_rows', 'training rows', count],
  ['new_rows', 'new rows taken in', count],
  ['reference_rows', 'reference rows', count],
  ['calibration_rows', 'calibration rows', count],
  ['false_alarm_rate', 'target false-alarm rate', percent],
  ['threshold', 'threshold (score)', short],
];

function Models({ found }) {
  const sides = [found.first, found.second];
  const { columns, settings } = found;
  const list = (title, names) => names.length > 0 && html`<p><b>${title}: </b><${Name} text=${names.join(', ')} /></p>`;
  const named = (type) => TYPE_NAMES[type] ?? type;
  const same = !columns.first_only.length && !columns.second_only.length && !columns.types.length;
  return html`
    <${Sheet} title="Side by side">
      <${Scroller} id="details" label="Details of both models">
        <table class="sides">
          <thead>
            <tr>
              <th scope="col" />
              ${sides.map((m) =>
                html`<th scope="col"><a href=${`#/models/${m.id}`}><${Name} text=${versionName(m)} /></a></th>`
              )}
            </tr>
          </thead>
          <tbody>
            ${DETAILS.map(([key, name, text]) =>
              html`
                <tr class=${key !== 'created' && sides[0][key] !== sides[1][key] ? 'differs' : ''}>
                  <th scope="row">${name}</th>
                  ${sides.map((m) => html`<td>${cell(m[key], text)}</td>`)}
                </tr>
              `
            )}
          </tbody>
        </table>
        <//>
        <//>
        <${Sheet} title="Columns and settings">
      ${same && html`<p>Both use the same columns, with the same types.</p>`}
      ${list('In the first only', columns.first_only)} ${list('In the second only', columns.second_only)}
      ${list('Other types', columns.types.map(([name, one, two]) => `${name} (${named(one)}, then ${named(two)})`))}
      ${settings.length
        ? list(
          'Other settings',
          settings.map(([name, one, two]) => `${spaced(name)} (${one ?? 'none'}, then ${two ?? 'none'})`),
        )
        : html`<p>All settings are the same.</p>`}
    <//>
    ${sides.every((m) => m.quantiles) && html`
      <${Quantiles} title="Scores of the calibration rows" levels=${found.levels} names=${['First', 'Second']}
        note="The score that this share of the calibration rows does not exceed." first=${sides[0].quantiles}
        second=${sides[1].quantiles} />
    `}
  `;
}
