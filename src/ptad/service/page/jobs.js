// A job while it runs, and the list of jobs.

import { follow, get, send } from './api.js';
import { count, inPercent, make, plural, sheet, short } from './dom.js';
import { lossChart } from './loss_chart.js';
import { when } from './parts.js';
import { attempt, go } from './shell.js';

const STATES = { waiting: 'waiting', running: 'under way', done: 'done', failed: 'failed', cancelled: 'cancelled' };
const stateTag = (state) => make('span', { class: `tag ${state}`, text: STATES[state] });

export async function showJob(view, id) {
  const job = await get(`/v1/jobs/${id}`);
  const fit = job.kind === 'fit';
  if (!fit && job.state === 'done') {
    go(`#/results/${id}`);
    return;
  }
  view.title(fit ? `Fitting ${job.title}` : `Scoring ${job.title}`);
  // the state is read out when it changes; every single step would drown everything else
  const tag = make('span', { attributes: { role: 'status' } }, stateTag(job.state));
  const note = make('p', { class: 'lead', text: 'One moment …' });
  const fill = make('i');
  const meter = make(
    'div',
    {
      class: 'meter unknown',
      attributes: {
        role: 'progressbar',
        'aria-label': fit ? 'Fit' : 'Scoring',
        'aria-valuemin': 0,
        'aria-valuemax': 100,
      },
    },
    fill,
  );
  const remark = make('p', { class: 'quiet small' });
  const chart = make('div', { id: 'loss', class: 'chart' });
  const cancel = make('button', {
    id: 'cancel',
    class: 'danger',
    text: 'Cancel',
    attributes: { type: 'button' },
    on: { click: () => attempt(() => send('POST', `/v1/jobs/${id}/cancel`)) },
  });
  const actions = make('div', { class: 'actions more' }, cancel);
  const curve = fit
    ? sheet(
        'Training',
        make('p', {
          class: 'quiet',
          text:
            'The loss tells how far off the network is when it predicts hidden cells: it should fall and then ' +
            'flatten. When the fit is done, the table is scored at once.',
        }),
        chart,
      )
    : null;
  if (curve) curve.hidden = true; // until something is trained
  view.add(make('p', {}, tag), sheet(fit ? 'Progress' : 'Rows', note, meter, remark, actions), curve);
  const draw = fit ? lossOf(chart) : null;
  const progress = (share, text) => {
    meter.classList.remove('unknown');
    fill.style.setProperty('--size', `${100 * share}%`);
    meter.setAttribute('aria-valuenow', Math.round(100 * share));
    note.textContent = text;
  };
  const onProgress = (entry) => {
    if (entry.note) remark.textContent = entry.note;
    else if (entry.step) {
      curve.hidden = false;
      draw(entry);
      progress(
        entry.step / entry.steps,
        `Step ${count(entry.step)} of ${count(entry.steps)}, loss ${short(entry.loss)}`,
      );
      if (entry.step === entry.steps) note.textContent += '; now the threshold is set …';
    } else if (entry.rows)
      progress(entry.rows / Math.max(entry.total, 1), `${count(entry.rows)} of ${count(entry.total)} rows`);
  };
  const onState = (now) => {
    tag.replaceChildren(stateTag(now.state));
    if (now.state === 'waiting') note.textContent = 'Waiting for other jobs to end …';
    if (now.state === 'running' && meter.classList.contains('unknown'))
      note.textContent = fit ? 'Reading the rows and fitting …' : 'Loading the model …';
    if (!['done', 'failed', 'cancelled'].includes(now.state)) return;
    cancel.remove();
    meter.hidden = now.state !== 'done';
    if (now.state === 'failed') {
      note.setAttribute('role', 'alert');
      note.textContent = now.error;
      failed(now, actions);
    }
    if (now.state === 'cancelled') {
      note.textContent = 'Cancelled. Nothing of it is kept.';
      actions.append(
        make('a', { class: 'button', text: 'Back to the table', attributes: { href: `#/tables/${now.table}` } }),
      );
    }
    if (now.state === 'done' && !fit) go(`#/results/${id}`);
    if (now.state === 'done' && fit) attempt(() => fitted(now, note, actions));
  };
  view.leave = follow(
    id,
    (event, data) => (event === 'state' ? onState(data) : onProgress(data)),
    (error) => {
      remark.textContent = error
        ? error.status
          ? error.message
          : 'The service cannot be reached just now; trying again …'
        : '';
    },
  );
}

// Collects what a fit tells into curves, one per training.
function lossOf(container) {
  const show = lossChart(container, { empty: 'The curve begins with the first steps.', live: true });
  const curves = [];
  return ({ group, step, steps, loss }) => {
    curves.length = Math.min(curves.length, group + 1);
    const curve = curves[group] || { step: [], total: [] };
    // a fit that went on from a checkpoint tells some steps again
    const known = curve.step.findIndex((s) => s >= step);
    if (known >= 0) {
      curve.step.length = known;
      curve.total.length = known;
    }
    curve.step.push(step);
    curve.total.push(loss);
    curves[group] = curve;
    show(curves.filter(Boolean), steps);
  };
}

// A fresh model first scores the table that it was fitted on, once.
async function fitted(job, note, actions) {
  const before = (await get('/v1/jobs')).find(
    (other) => other.kind === 'score' && other.model === job.model && other.table === job.table,
  );
  const n = plural(job.summary.training_rows, 'training row', 'training rows');
  note.textContent = `The model is ready. It has ${n}.`;
  actions.append(
    make('a', { class: 'button', text: 'Look at the model', attributes: { href: `#/models/${job.model}` } }),
  );
  if (before) {
    actions.prepend(
      make('a', {
        class: 'button primary',
        text: 'See the scored table',
        attributes: { href: `#/jobs/${before.id}` },
      }),
    );
    return;
  }
  const next = await send('POST', '/v1/scorings', {
    table: job.table,
    model: job.model,
    label: job.label,
    normal: job.normal,
  });
  go(`#/jobs/${next.id}`);
}

function failed(job, actions) {
  actions.append(
    make('a', {
      class: 'button primary',
      text: job.kind === 'fit' ? 'Back to the columns' : 'Back to the table',
      attributes: { href: `#/tables/${job.table}` },
    }),
  );
  if (job.kind === 'score' && job.label) {
    actions.append(
      make('button', {
        text: 'Score it without the label',
        attributes: { type: 'button' },
        on: {
          click: () =>
            attempt(async () =>
              go(`#/jobs/${(await send('POST', '/v1/scorings', { table: job.table, model: job.model })).id}`),
            ),
        },
      }),
    );
  }
}

export function jobLine(job, reload) {
  const target = job.kind === 'score' && job.state === 'done' ? `#/results/${job.id}` : `#/jobs/${job.id}`;
  const word = ['waiting', 'running'].includes(job.state) ? 'Cancel' : 'Delete';
  const remove = make('button', {
    text: word,
    attributes: { type: 'button', 'aria-label': `${word} ${job.title}` },
    on: {
      click: () =>
        attempt(async () => {
          await send('DELETE', `/v1/jobs/${job.id}`);
          reload();
        }),
    },
  });
  const what = job.kind === 'fit' ? 'fit' : 'scoring';
  const found =
    job.kind === 'score' && job.summary
      ? `, ${count(job.summary.flagged)} of ${plural(job.summary.rows, 'row', 'rows')} flagged` +
        inPercent(job.summary.flagged, job.summary.rows)
      : '';
  return make(
    'li',
    {},
    make(
      'div',
      { class: 'what' },
      make('a', { text: job.title, attributes: { href: target } }),
      make('div', { class: 'quiet small', text: `${what}, ${when(job.created)}${found}` }),
    ),
    make('div', { class: 'actions' }, stateTag(job.state), remove),
  );
}

export async function showJobs(view) {
  view.title('Jobs');
  const jobs = await get('/v1/jobs');
  if (!jobs.length) {
    view.add(
      make('p', {
        class: 'lead',
        text: 'There are no jobs yet. Fits and scorings are listed here, with their results.',
      }),
      make('a', { class: 'button primary', text: 'Start with a table', attributes: { href: '#/' } }),
    );
    return;
  }
  view.add(
    sheet(
      'All jobs, the newest first',
      make(
        'ul',
        { class: 'lines' },
        ...jobs.map((job) => jobLine(job, () => go('#/jobs', `${job.title} is deleted.`))),
      ),
    ),
  );
}
