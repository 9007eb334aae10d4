// The router: the hash of the address decides which view is shown, so reloads and links lead to the same view.

import { get } from './api.js';
import { modelComparison, scoringComparison } from './comparison.js';
import { homeView } from './home.js';
import { jobView } from './job.js';
import { jobsView, modelsView } from './lists.js';
import { modelView } from './model.js';
import { apiView } from './operations.js';
import { renewalView } from './renewal.js';
import { resultView } from './result.js';
import { setupView } from './setup.js';
import { attempt, clearMessage } from './shell.js';
import { html, render } from './vendor/preact.js';

const main = document.getElementById('main');
// Pattern of the address, with an asterisk for every id; view, an async function of the ids that returns {title, body}
// and perhaps {error}, if a part cannot be shown; section of the navigation.
const ROUTES = [
  ['#/models/*', modelView, '#/models'],
  ['#/models/*/renew/*', renewalView, '#/models'],
  ['#/models/*/compare/*', modelComparison, '#/models'],
  ['#/results/*/compare/*', scoringComparison, '#/jobs'],
  ['#/models', modelsView, '#/models'],
  ['#/tables/*', setupView, '#/'],
  ['#/jobs/*', jobView, '#/jobs'],
  ['#/jobs', jobsView, '#/jobs'],
  ['#/results/*', resultView, '#/jobs'],
  ['#/api', apiView, '#/api'],
].map(([pattern, ...route]) => [new RegExp(`^${pattern.replaceAll('*', '([a-z0-9-]+)')}$`), ...route]);
const HOME = [/.*/, homeView, '#/'];
const EMPTY = html`<p class="sheet">There is nothing to show here. <a href="#/">Go to the start</a></p>`;

let current = null;
let started = false;

async function show() {
  const hash = location.hash || '#/';
  const [pattern, open, section] = ROUTES.find(([test]) => test.test(hash)) ?? HOME;
  const id = Symbol(hash);
  current = id;
  clearMessage();
  render(null, main); // components remove their listeners
  for (const link of document.querySelectorAll('nav a')) {
    if (link.getAttribute('href') === section) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  await attempt(async () => {
    const view = await open(...pattern.exec(hash).slice(1));
    if (!view || id !== current) return; // the user has left it already
    document.title = `${view.title} · ptad`;
    render(html`<h1 tabindex="-1">${view.title}</h1>${view.body}`, main);
    if (view.error) throw view.error;
  });
  if (id !== current) return;
  if (!main.children.length) render(EMPTY, main);
  if (started && !main.querySelector(':focus')) main.querySelector('h1')?.focus({ preventScroll: true });
  started = true;
  window.scrollTo(0, 0);
}

main.replaceChildren();
window.addEventListener('hashchange', show);
// the hash is that of the view: the skip link must not change it
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
// a file dropped outside the zone must not replace the page
for (const name of ['dragover', 'drop']) window.addEventListener(name, (event) => event.preventDefault());
show();
get('/v1/service')
  .then((service) => {
    document.getElementById('footer').textContent = `ptad ${service.version}. This page loads nothing from elsewhere.`;
  })
  .catch(() => {});
