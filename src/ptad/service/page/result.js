// A scored table: the parts of a report, with downloads, a way to keep the threshold, time, and comparisons.

import { download, get, send } from './api.js';
import { mounted, Sheet } from './components.js';
import { make, percent } from './dom.js';
import { driftSheet } from './drift_table.js';
import { driversSheet, healthSheet, modelSheet, summarySheet } from './panels.js';
import { LinkButton, Select, when } from './parts.js';
import { attempt, go, say } from './shell.js';
import { thresholdSheets } from './threshold.js';
import { Timeline } from './timeline.js';
import { html, useState } from './vendor/preact.js';

export async function showResult(view, id) {
  const job = await get(`/v1/jobs/${id}`);
  if (!job.scores) {
    go(`#/jobs/${id}`);
    return;
  }
  const addresses = [`/v1/jobs/${id}/report`, `/v1/jobs/${id}/timeline`, '/v1/jobs', '/v1/models'];
  const [data, timeline, jobs, models] = await Promise.all(addresses.map(get));
  const model = models.some((m) => m.id === job.model)
    ? html`<a href=${`#/models/${job.model}`}>${data.model}</a>`
    : data.model;
  view.title(`${data.table}: anomalies`);
  view.show(html`
    <p class="quiet">Scored with ${model} · ${data.made}</p>
    <${Downloads} id=${id} table=${data.table} />
  `);
  view.add(
    summarySheet(data),
    ...thresholdSheets(data, keeping(data, job)),
    driversSheet(data),
    mounted(html`<${Timeline} job=${id} first=${timeline} rate=${data.rate} />`),
    mounted(html`<${Comparisons} job=${job} jobs=${jobs} />`),
    driftSheet(data),
    modelSheet(data),
    healthSheet(data),
  );
}

function Downloads({ id, table }) {
  const name = table.replace(/\.[a-z0-9]+$/i, '').slice(0, 60) || 'table';
  const save = (path, file) => () => attempt(() => download(`/v1/jobs/${id}/${path}`, `${name}-${file}`));
  return html`
    <div class="actions">
      <button type="button" onClick=${save('report.html', 'report.html')}>Download the report</button>
      <button type="button" onClick=${save('scores?format=csv', 'scored.csv')}>Download as CSV</button>
      <button type="button" onClick=${save('scores?format=parquet', 'scored.parquet')}>Download as Parquet</button>
      <span class="quiet small">Tables come with scores, p-values, flags, and the reasons of flagged rows.</span>
    </div>
  `;
}

// Other scorings, those of the same table first: only their rows can be compared one by one.
function Comparisons({ job, jobs }) {
  const others = jobs.filter((other) => other.scores && other.id !== job.id);
  const sorted = [...others.filter((o) => o.table === job.table), ...others.filter((o) => o.table !== job.table)];
  const [other, setOther] = useState(sorted[0]?.id);
  if (!sorted.length) return null;
  const name = (o) => `${o.title}, ${when(o.created)}${o.table === job.table ? ', the same table' : ''}`;
  return html`
    <${Sheet} title="Compare with another scoring">
      <div class="actions">
        <label for="other-scoring">Scoring</label>
        <${Select} id="other-scoring" value=${other} options=${sorted.map((
          o,
        ) => [o.id, name(o)])} onChange=${setOther} />
        <${LinkButton} href=${`#/results/${other}/compare/${job.id}`}>Compare<//>
      </div>
    <//>
  `;
}

// A button that makes the threshold of the slider the model's own.
function keeping(data, job) {
  let wanted = data.rate;
  const keep = () =>
    attempt(async () => {
      await send('PATCH', `/v1/models/${job.model}`, { false_alarm_rate: wanted });
      const still = percent(wanted) === percent(data.rate) ? 'the former threshold' : percent(data.rate);
      say(
        `The target false-alarm rate of ${data.model} is now ${percent(wanted)}. ` +
          `This page still shows the rows flagged at ${still}.`,
        false,
      );
    });
  const button = make('button', {
    id: 'keep',
    text: 'Use this threshold from now on',
    attributes: { type: 'button' },
    on: { click: keep },
  });
  return {
    buttons: [button],
    onMove: (i, rate) => {
      wanted = rate;
      button.disabled = i === data.scores.threshold_index || rate >= 1;
    },
  };
}
