// The report: every part of it, from the data that stands in the page itself.

import { Drift } from './drift_table.js';
import { OverTime } from './over_time.js';
import { Drivers, Health, Model, Settings, Summary } from './panels.js';
import { Threshold } from './threshold.js';
import { html, render } from './vendor/preact.js';

const data = JSON.parse(document.getElementById('data').textContent);

const Heading = () =>
  html`
    <h1>${data.title}</h1>
    <p class="quiet">${data.table}, scored with ${data.model} · ${data.made}</p>
  `;

const Report = () =>
  html`
      <${Summary} data=${data} />
      <${Threshold} data=${data} />
    ${data.over_time && html`<${OverTime} over=${data.over_time} rate=${data.rate} />`}
      <${Drivers} data=${data} />
      <${Drift} data=${data} />
      <${Model} data=${data} />
      <${Health} data=${data} />
      <${Settings} data=${data} />
  `;

const Imprint = () =>
  html`
    Made by ptad ${data.versions.ptad}. This page is one file and uses no network.
    ${data.values_shown
      ? ' It quotes rows of the table: treat it as you treat the table.'
      : ' It quotes no values of the table.'}
  `;

render(html`<${Heading} />`, document.querySelector('header'));
render(html`<${Report} />`, document.getElementById('main'));
render(html`<${Imprint} />`, document.querySelector('footer'));
