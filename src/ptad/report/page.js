// The report: every part of it, from the data that stands in the page itself.

import { make } from './dom.js';
import { driftSheet } from './drift_table.js';
import { levelSheets } from './level.js';
import { driversSheet, healthSheet, learnedSheet, settingsSheet, summarySheet } from './panels.js';

const data = JSON.parse(document.getElementById('data').textContent);
document.querySelector('header').append(make('h1', { text: data.title }), make('p', { class: 'quiet', text: `${data.table}, judged by ${data.model} · ${data.made}` }));
document.getElementById('main').append(summarySheet(data), learnedSheet(data), ...levelSheets(data), driversSheet(data), driftSheet(data), healthSheet(data), settingsSheet(data));
document.querySelector('footer').textContent = `Made by ptad ${data.versions.ptad}. This page is one file and uses no network. ${data.values_shown ? 'It quotes rows of the table: treat it as you treat the table.' : 'It quotes no values of the table.'}`;
