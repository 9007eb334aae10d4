// Scores and flag rate over time: by a date column of a scored table, and by upload.

import { get } from './api.js';
import { TimeChart } from './chart.js';
import { Folded, Legend, Scroller, Sheet } from './components.js';
import { count, percent, plural, short } from './dom.js';
import { Select, versionName } from './parts.js';
import { attempt } from './shell.js';
import { html, useMemo, useState } from './vendor/preact.js';

const moment = (seconds, period) => {
  const text = new Date(seconds * 1000).toISOString();
  if (['second', 'minute', 'hour'].includes(period)) {
    return text.slice(0, period === 'second' ? 19 : 16).replace('T', ' ');
  }
  if (['day', 'week'].includes(period)) return text.slice(0, 10);
  return text.slice(0, ['month', 'quarter'].includes(period) ? 7 : 4);
};

function Charts({ entries, rate, threshold }) {
  const x = useMemo(() => entries.map((e) => e.start), [entries]);
  const rates = useMemo(
    () => [
      { name: 'flag rate', values: entries.map((e) => e.flag_rate), kind: 'anomaly' },
      ...(rate === null ? [] : [{ name: 'target', values: entries.map(() => rate), kind: 'quiet', dash: [5, 3] }]),
    ],
    [entries],
  );
  const scores = useMemo(
    () => [
      { name: 'median', values: entries.map((e) => e.score_median), kind: 'normal' },
      { name: '95 %', values: entries.map((e) => e.score_q95), kind: 'usual' },
      ...(threshold === null
        ? []
        : [{ name: 'threshold', values: entries.map(() => threshold), kind: 'ink', dash: [5, 3] }]),
    ],
    [entries],
  );
  return html`
    <h3>Flag rate</h3>
    <${Legend} entries=${[
      ['is-anomaly', 'flagged rows, of all'],
      ...(rate === null ? [] : [['is-target', 'target false-alarm rate']]),
    ]} />
    <${TimeChart} label="Flag rate over time" x=${x} series=${rates} text=${percent} fromZero=${true} />
    <h3 class="more">Score</h3>
    <${Legend} entries=${[
      ['is-normal', 'median'],
      ['is-usual', '95 % quantile'],
      ...(threshold === null ? [] : [['is-line', 'threshold']]),
    ]} />
    <${TimeChart} label="Scores over time" x=${x} series=${scores} />
  `;
}

const Table = ({ id, entries }) =>
  html`
    <${Scroller} id=${id} label="Scores and flag rate over time, as a table">
      <table>
        <thead>
          <tr>
            <th scope="col">${id === 'uploads' ? 'Scored' : 'From'}</th>
            <th scope="col" class="number">Rows</th>
            <th scope="col" class="number">Flagged</th>
            <th scope="col" class="number">Flag rate</th>
            <th scope="col" class="number">Median score</th>
          </tr>
        </thead>
        <tbody>
          ${entries.map((e) =>
            html`
              <tr>
                <td>${e.link ? html`<a href=${e.link}>${e.text}</a>` : e.text}</td>
                <td class="number">${count(e.rows)}</td>
                <td class="number">${count(e.flagged)}</td>
                <td class="number">${e.rows < 20 ? '–' : percent(e.flag_rate)}</td>
                <td class="number">${short(e.score_median)}</td>
              </tr>
            `
          )}
        </tbody>
      </table>
      <//>
  `;

// Nothing where the table has no date column.
export function OverTime({ job, first, data }) {
  const [found, setFound] = useState(first);
  if (!found.columns.length) return null;
  const choose = (column) =>
    attempt(async () => setFound(await get(`/v1/jobs/${job}/timeline?column=${encodeURIComponent(column)}`)));
  const entries = found.periods.map((p) => ({ ...p, text: moment(p.start, found.period) }));
  const undated = found.undated ? ` ${plural(found.undated, 'row has', 'rows have')} no date.` : '';
  return html`
    <${Sheet} title="Over time">
      <div class="actions">
        <label for="date-column">By the column</label>
        <${Select} id="date-column" value=${found.column} options=${found.columns.map((
          c,
        ) => [c, c])} onChange=${choose} />
        <span class="quiet">${entries.length > 0 &&
          `${plural(entries.length, 'period', 'periods')} of one ${found.period}.`}${undated}</span>
      </div>
      ${entries.length > 1
        ? html`<${Charts} key=${found.column} entries=${entries} rate=${data.rate} threshold=${data.scores.threshold} />`
        : html`<p class="quiet more">All dates lie in one ${
          found.period ?? 'period'
        }: there is nothing to compare.</p>`}
      ${entries.length > 0 && html`
        <${Folded} summary="As a table">
          <${Table} id="periods" entries=${entries} />
          <//>
      `}
    <//>
  `;
}

// The scorings with a model and its versions, in the order of their uploads.
export function OverUploads({ scorings, models }) {
  const names = new Map(models.map((m) => [m.id, versionName(m)]));
  const entries = useMemo(() =>
    scorings.map((job) => ({
      start: job.created,
      text: `${job.title}${job.kind === 'fit' ? ' (training table, held-out scores)' : ''}`,
      link: `#/results/${job.id}`,
      rows: job.scores.rows,
      flagged: job.scores.flagged,
      flag_rate: job.scores.flagged / job.scores.rows,
      score_median: job.scores.quantiles['0.5'],
      score_q95: job.scores.quantiles['0.95'],
      model: names.get(job.model),
    })), [scorings]);
  if (!entries.length) return null;
  const one = new Set(scorings.map((job) => job.model)).size === 1;
  const last = scorings[scorings.length - 1].scores;
  return html`
    <${Sheet} title="Scored tables over time">
      ${entries.length > 1 && html`
        <${Charts} entries=${entries} rate=${last.false_alarm_rate} threshold=${one ? last.threshold : null} />
        ${!one &&
          html`<p class="quiet small">Scores of different versions are not on the same scale; flag rates are.</p>`}
      `}
      <${Table} id="uploads" entries=${[...entries].reverse()} />
    <//>
  `;
}
