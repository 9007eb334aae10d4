// The report: all sections, from the data that is embedded in the page.

import { Drift } from './drift_table.js';
import { OverTime } from './over_time.js';
import { Drivers, Health, Model, Settings, Summary } from './panels.js';
import { Threshold } from './threshold.js';
import { html, render } from './vendor/preact.js';

const data = JSON.parse(document.getElementById('data').textContent);
const about = html`
  <h1>${data.title}</h1>
  <p class="quiet">${data.table}, scored with ${data.model} · ${data.made}</p>
`;
const parts = [Summary, Threshold, OverTime, Drivers, Drift, Model, Health, Settings];
const quoted = data.values_shown
  ? 'It quotes rows of the table: treat it as confidentially as the table.'
  : 'It quotes no values of the table.';

render(about, document.querySelector('header'));
render(parts.map((Part) => html`<${Part} data=${data} />`), document.getElementById('main'));
render(
  `Made by ptad ${data.versions.ptad}. This page is one file and uses no network. ${quoted}`,
  document.querySelector('footer'),
);
