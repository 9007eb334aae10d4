// A scored table: the parts of a report, with downloads and a way to keep the threshold.

import { download, get, send } from './api.js';
import { make, percent } from './dom.js';
import { driftSheet } from './drift_table.js';
import { driversSheet, healthSheet, modelSheet, summarySheet } from './panels.js';
import { attempt, go, say } from './shell.js';
import { thresholdSheets } from './threshold.js';

export async function showResult(view, id) {
  const job = await get(`/v1/jobs/${id}`);
  if (job.state !== 'done') {
    go(`#/jobs/${id}`);
    return;
  }
  const data = await get(`/v1/jobs/${id}/report`);
  view.title(`${data.table}: anomalies`);
  view.add(
    make(
      'p',
      { class: 'quiet' },
      'Scored with ',
      make('a', { text: data.model, attributes: { href: `#/models/${job.model}` } }),
      ` · ${data.made}`,
    ),
    summarySheet(
      data,
      make(
        'div',
        { class: 'actions more' },
        save(id, 'csv', 'Download as CSV'),
        save(id, 'parquet', 'Download as Parquet'),
      ),
    ),
    ...thresholdSheets(data, keeping(data, job)),
    driversSheet(data),
    driftSheet(data),
    modelSheet(data),
    healthSheet(data),
  );
}

const save = (id, format, label) =>
  make('button', {
    text: label,
    attributes: { type: 'button' },
    on: { click: () => attempt(() => download(`/v1/jobs/${id}/scores?format=${format}`, `scored.${format}`)) },
  });

// A button that makes the threshold of the slider the model's own.
function keeping(data, job) {
  let wanted = data.rate;
  const button = make('button', {
    id: 'keep',
    text: 'Use this threshold from now on',
    attributes: { type: 'button' },
    on: {
      click: () =>
        attempt(async () => {
          await send('PATCH', `/v1/models/${job.model}`, { false_alarm_rate: wanted });
          const still = percent(wanted) === percent(data.rate) ? 'the former threshold' : percent(data.rate);
          say(
            `The target false-alarm rate of ${data.model} is now ${percent(wanted)}. ` +
              `This page still shows the rows flagged at ${still}.`,
            false,
          );
        }),
    },
  });
  return {
    buttons: [button],
    onMove: (i, rate) => {
      wanted = rate;
      button.disabled = i === data.scores.threshold_index || rate >= 1;
    },
  };
}
