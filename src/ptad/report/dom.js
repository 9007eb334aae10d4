// Building blocks. Text from the table only ever becomes textContent; no markup is made from strings.

const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);

function make(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  if (options.text !== undefined) node.textContent = options.text;
  if (options.class) node.className = options.class;
  for (const [name, value] of Object.entries(options.attributes || {})) node.setAttribute(name, value);
  for (const [name, value] of Object.entries(options.variables || {})) node.style.setProperty(name, value);
  node.append(...children);
  return node;
}

function draw(tag, attributes = {}, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const count = (n) => whole.format(n);
const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;

// Three digits that matter, never in scientific notation unless it cannot be helped.
function short(x) {
  if (x === 0) return '0';
  const size = Math.abs(x);
  if (size >= 1e7 || size < 1e-4) return x.toExponential(1);
  return new Intl.NumberFormat('en', { maximumSignificantDigits: 3 }).format(x);
}

function percent(share) {
  if (share > 0 && share < 0.0001) return 'less than 0.01\u00a0%';
  if (share < 1 && share > 0.999) return 'more than 99.9\u00a0%';
  const size = Math.abs(share);
  const digits = size === 0 || size >= 0.1 ? 0 : size >= 0.01 ? 1 : 2;
  return `${new Intl.NumberFormat('en', { maximumFractionDigits: digits }).format(100 * share)}\u00a0%`;
}

const oneIn = (p) => (p >= 0.1 ? `${count(Math.max(1, 10 * p))} in 10` : `1 in ${count(1 / p)}`);

function bar(share, label, kind = '') {
  const fill = make('i', { class: kind, variables: { '--size': `${Math.max(0, Math.min(100, 100 * share))}%` } });
  fill.setAttribute('aria-hidden', 'true');
  return make('div', { class: 'bar' }, fill, make('span', { text: label }));
}

function pairs(entries) {
  const list = make('dl', { class: 'pairs' });
  for (const [name, value] of entries) {
    list.append(make('div', {}, make('dt', { text: name }), make('dd', { text: value })));
  }
  return list;
}

function folded(summary, ...children) {
  return make('details', {}, make('summary', { text: summary }), ...children);
}

// Charts are drawn for the width they have, and again when it changes.
function responsive(container, paint) {
  let width = 0;
  const fit = () => {
    const now = Math.max(240, Math.round(container.clientWidth));
    if (now !== width) { width = now; paint(now); }
  };
  new ResizeObserver(fit).observe(container);
  fit();
}

// Long tables start short; one button shows the rest.
function limited(container, lines, n, what) {
  if (lines.length <= n) return;
  lines.slice(n).forEach((line) => { line.hidden = true; });
  const button = make('button', { class: 'more', text: `Show all ${count(lines.length)} ${what}`, attributes: { type: 'button' } });
  button.addEventListener('click', () => { lines.forEach((line) => { line.hidden = false; }); button.remove(); });
  container.after(button);
}
