// The report: every part of it, from the data that stands in the page itself.

import { make } from './dom.js';
import { driftSheet } from './drift_table.js';
import { driversSheet, healthSheet, modelSheet, settingsSheet, summarySheet } from './panels.js';
import { thresholdSheets } from './threshold.js';

const data = JSON.parse(document.getElementById('data').textContent);
const subtitle = `${data.table}, scored with ${data.model} · ${data.made}`;
document
  .querySelector('header')
  .append(make('h1', { text: data.title }), make('p', { class: 'quiet', text: subtitle }));
document
  .getElementById('main')
  .append(
    summarySheet(data),
    ...thresholdSheets(data),
    driversSheet(data),
    driftSheet(data),
    modelSheet(data),
    healthSheet(data),
    settingsSheet(data),
  );
const quotes = data.values_shown
  ? 'It quotes rows of the table: treat it as you treat the table.'
  : 'It quotes no values of the table.';
const made = `Made by ptad ${data.versions.ptad}. This page is one file and uses no network.`;
document.querySelector('footer').textContent = `${made} ${quotes}`;
