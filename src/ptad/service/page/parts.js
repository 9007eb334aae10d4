// Parts that only this page has: a place to drop a file, and times as people say them.

import { draw, make, plural } from './dom.js';

export function when(seconds) {
  const ago = Date.now() / 1000 - seconds;
  if (ago < 60) return 'just now';
  if (ago < 3600) return `${plural(Math.floor(ago / 60), 'minute', 'minutes')} ago`;
  if (ago < 86400) return `${plural(Math.floor(ago / 3600), 'hour', 'hours')} ago`;
  return new Date(seconds * 1000).toLocaleDateString('en', { day: 'numeric', month: 'short', year: 'numeric' });
}

export function dropZone(text, hint, onFile, { compact = false, id = 'file' } = {}) {
  const input = make('input', {
    id,
    attributes: {
      type: 'file',
      accept: '.csv,.tsv,.tab,.parquet,.pq,.feather,.arrow,.ipc,.jsonl,.ndjson,.json,.xlsx,.xlsm,.xlsb,.xls,.ods,.gz,.bz2,.zst,.lz4,.xz',
    },
  });
  const icon = draw(
    'svg',
    { viewBox: '0 0 48 48', 'aria-hidden': 'true' },
    draw('path', { d: 'M10 30v8h28v-8' }),
    draw('path', { d: 'M24 32V10' }),
    draw('path', { d: 'M15 19l9-9 9 9' }),
  );
  const zone = make(
    'label',
    { class: compact ? 'drop compact' : 'drop' },
    icon,
    input,
    make('b', { text }),
    make('span', { class: 'quiet', text: hint }),
  );
  const stop = (event) => {
    event.preventDefault();
    event.stopPropagation();
  };
  for (const name of ['dragenter', 'dragover'])
    zone.addEventListener(name, (event) => {
      stop(event);
      zone.classList.add('over');
    });
  for (const name of ['dragleave', 'drop'])
    zone.addEventListener(name, (event) => {
      stop(event);
      zone.classList.remove('over');
    });
  zone.addEventListener('drop', (event) => {
    if (event.dataTransfer.files.length) onFile(event.dataTransfer.files[0]);
  });
  input.addEventListener('change', () => {
    if (input.files.length) {
      onFile(input.files[0]);
      input.value = '';
    }
  });
  return zone;
}
