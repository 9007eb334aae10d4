// Which view is shown follows from the address, so a reload or a link brings one back to the same place.

import { get } from './api.js';
import { showModelComparison, showScoringComparison } from './comparison.js';
import { mounted } from './components.js';
import { make } from './dom.js';
import { showHome } from './home.js';
import { showModel } from './model.js';
import { showModels } from './models.js';
import { showApi } from './operations.js';
import { showRenewal } from './renewal.js';
import { showResult } from './result.js';
import { showSetup } from './setup.js';
import { attempt, hush } from './shell.js';
import { showJob } from './job.js';
import { showJobs } from './jobs.js';
import { render } from './vendor/preact.js';

const main = document.getElementById('main');
const ROUTES = [
  [/^#\/models\/([a-z0-9-]+)$/, showModel, '#/models'],
  [/^#\/models\/([a-z0-9-]+)\/renew\/([a-z0-9-]+)$/, showRenewal, '#/models'],
  [/^#\/models\/([a-z0-9-]+)\/compare\/([a-z0-9-]+)$/, showModelComparison, '#/models'],
  [/^#\/results\/([a-z0-9-]+)\/compare\/([a-z0-9-]+)$/, showScoringComparison, '#/jobs'],
  [/^#\/models$/, showModels, '#/models'],
  [/^#\/tables\/([a-z0-9-]+)$/, showSetup, '#/'],
  [/^#\/jobs\/([a-z0-9-]+)$/, showJob, '#/jobs'],
  [/^#\/jobs$/, showJobs, '#/jobs'],
  [/^#\/results\/([a-z0-9-]+)$/, showResult, '#/jobs'],
  [/^#\/api$/, showApi, '#/api'],
  [/.*/, showHome, '#/'],
];

let current = null;

class View {
  constructor() {
    this.leave = () => {};
  }

  title(text) {
    document.title = `${text} · ptad`;
    this.add(make('h1', { text, attributes: { tabindex: '-1' } }));
  }

  show(component) {
    this.add(mounted(component));
  }

  // a view that was left while it was being built adds nothing any more
  add(...nodes) {
    if (this === current) main.append(...nodes.filter(Boolean));
  }
}

async function show() {
  current?.leave();
  for (const node of main.querySelectorAll('.mount')) render(null, node); // components end what they listen to
  const view = new View();
  current = view;
  hush();
  main.replaceChildren();
  const hash = location.hash || '#/';
  const [pattern, open, section] = ROUTES.find(([test]) => test.test(hash));
  for (const link of document.querySelectorAll('nav a[href^="#"]')) {
    if (link.getAttribute('href') === section) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  await attempt(() => open(view, ...pattern.exec(hash).slice(1)));
  if (view !== current) {
    view.leave();
    return;
  }
  if (!main.children.length) {
    main.append(
      make(
        'p',
        { class: 'sheet' },
        'There is nothing to show here. ',
        make('a', { text: 'Go to the start', attributes: { href: '#/' } }),
      ),
    );
  }
  if (started && !main.querySelector(':focus')) main.querySelector('h1')?.focus({ preventScroll: true });
  started = true;
  window.scrollTo(0, 0);
}

let started = false;
window.addEventListener('hashchange', show);
// the address names a view, so the skip link must not change it
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
// a file dropped beside the zone must not replace the page
for (const name of ['dragover', 'drop']) window.addEventListener(name, (event) => event.preventDefault());
show();
get('/v1/service')
  .then((service) => {
    document.getElementById('footer').textContent = `ptad ${service.version}. This page loads nothing from elsewhere.`;
  })
  .catch(() => {});
