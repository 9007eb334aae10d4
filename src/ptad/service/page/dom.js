// Small helpers to build the page. Text from tables only ever becomes text nodes.

export function make(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  if (options.text !== undefined) node.textContent = options.text;
  if (options.class) node.className = options.class;
  if (options.id) node.id = options.id;
  for (const [name, value] of Object.entries(options.attributes || {})) {
    if (value === true) node.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  for (const [name, value] of Object.entries(options.variables || {})) node.style.setProperty(name, value);
  for (const [name, value] of Object.entries(options.on || {})) node.addEventListener(name, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function draw(tag, attributes = {}, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
export const count = (n) => whole.format(n);
export const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;
export const sum = (values) => values.reduce((a, b) => a + b, 0);

export function short(x) {
  if (x === 0) return '0';
  const size = Math.abs(x);
  if (size >= 1e7 || size < 1e-4) return x.toExponential(1);
  return new Intl.NumberFormat('en', { maximumSignificantDigits: 3 }).format(x);
}

export function percent(share) {
  if (share > 0 && share < 0.0001) return 'less than 0.01\u00a0%';
  if (share < 1 && share > 0.999) return 'more than 99.9\u00a0%';
  const size = Math.abs(share);
  const digits = size === 0 || size >= 0.1 ? 0 : size >= 0.01 ? 1 : 2;
  return `${new Intl.NumberFormat('en', { maximumFractionDigits: digits }).format(100 * share)}\u00a0%`;
}

export const oneIn = (p) => (p >= 0.1 ? `${count(Math.max(1, 10 * p))} in 10` : `1 in ${count(1 / p)}`);

export function when(seconds) {
  const ago = Date.now() / 1000 - seconds;
  if (ago < 60) return 'just now';
  if (ago < 3600) return `${plural(Math.floor(ago / 60), 'minute', 'minutes')} ago`;
  if (ago < 86400) return `${plural(Math.floor(ago / 3600), 'hour', 'hours')} ago`;
  return new Date(seconds * 1000).toLocaleDateString('en', { day: 'numeric', month: 'short', year: 'numeric' });
}

export function bar(share, label) {
  const fill = make('i', { variables: { '--size': `${Math.max(0, Math.min(100, 100 * share))}%` }, attributes: { 'aria-hidden': 'true' } });
  return make('div', { class: 'bar' }, fill, make('span', { text: label }));
}

export function pairs(entries) {
  const list = make('dl', { class: 'pairs' });
  for (const [name, value] of entries) list.append(make('div', {}, make('dt', { text: name }), make('dd', { text: value })));
  return list;
}

export const folded = (summary, ...children) => make('details', {}, make('summary', { text: summary }), ...children);
export const sheet = (title, ...children) => make('section', { class: 'sheet', attributes: { 'aria-label': title } }, make('h2', { text: title }), ...children);

// Charts are drawn for the width they have, and again when it changes.
export function responsive(container, paint) {
  let width = 0;
  const fit = () => {
    if (!container.clientWidth) return;
    const now = Math.max(240, Math.round(container.clientWidth));
    if (now !== width) { width = now; paint(now); }
  };
  new ResizeObserver(fit).observe(container);
  fit();
}

// Long tables start short; one button shows the rest.
export function limited(container, lines, n, what) {
  if (lines.length <= n) return;
  lines.slice(n).forEach((line) => { line.hidden = true; });
  const button = make('button', { class: 'more', text: `Show all ${count(lines.length)} ${what}`, attributes: { type: 'button' } });
  button.addEventListener('click', () => { lines.forEach((line) => { line.hidden = false; }); button.remove(); });
  container.after(button);
}

export function dropZone(text, hint, onFile, { compact = false, id = 'file' } = {}) {
  const input = make('input', { id, attributes: { type: 'file', accept: '.csv,.tsv,.tab,.parquet,.pq,.feather,.arrow,.ipc,.jsonl,.ndjson,.json,.gz,.bz2,.zst,.lz4,.xz' } });
  const icon = draw('svg', { viewBox: '0 0 48 48', 'aria-hidden': 'true' },
    draw('path', { d: 'M10 30v8h28v-8' }), draw('path', { d: 'M24 32V10' }), draw('path', { d: 'M15 19l9-9 9 9' }));
  const zone = make('label', { class: compact ? 'drop compact' : 'drop' }, icon, input, make('b', { text }), make('span', { class: 'quiet', text: hint }));
  const stop = (event) => { event.preventDefault(); event.stopPropagation(); };
  for (const name of ['dragenter', 'dragover']) zone.addEventListener(name, (event) => { stop(event); zone.classList.add('over'); });
  for (const name of ['dragleave', 'drop']) zone.addEventListener(name, (event) => { stop(event); zone.classList.remove('over'); });
  zone.addEventListener('drop', (event) => { if (event.dataTransfer.files.length) onFile(event.dataTransfer.files[0]); });
  input.addEventListener('change', () => { if (input.files.length) { onFile(input.files[0]); input.value = ''; } });
  return zone;
}
