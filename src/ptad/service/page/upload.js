// A place to drop a file, and its way to the service.

import { upload } from './api.js';
import { Meter } from './parts.js';
import { attempt, hush } from './shell.js';
import { percent } from './text.js';
import { html, useEffect, useRef, useState } from './vendor/preact.js';

const ACCEPT = '.csv,.tsv,.tab,.parquet,.pq,.feather,.arrow,.ipc,.jsonl,.ndjson,.json,.xlsx,.xlsm,.xlsb,.xls,.ods,' +
  '.gz,.bz2,.zst,.lz4,.xz';

function Sending({ file, share, onStop }) {
  const reading = share === 1;
  return html`
    <div class="sheet">
      <p>${reading ? 'Reading' : 'Sending'} ${file.name}${share && !reading ? `, ${percent(share)}` : ''} …</p>
      <${Meter} label="Upload" share=${reading ? null : share ?? 0} />
      <button id="stop-upload" type="button" onClick=${onStop}>Stop</button>
    </div>
  `;
}

// ``then`` hears of the table once the service has read it; ``example`` makes a file for whoever has none.
export function Upload({ text, hint, then, compact = false, id = 'file', example = null }) {
  const [sending, setSending] = useState(null);
  const [over, setOver] = useState(false);
  const stop = useRef(null);
  const input = useRef(null);
  const ended = useRef(false);
  useEffect(() => {
    // whoever leaves the view does not wait for the file any more, and must not be taken to it later
    const leave = () => stop.current?.abort();
    window.addEventListener('hashchange', leave);
    return () => window.removeEventListener('hashchange', leave);
  }, []);
  useEffect(() => {
    if (ended.current && !sending) input.current?.focus({ preventScroll: true }); // ready for another file
  }, [sending]);
  const bring = async (file) => {
    if (!file) return;
    hush();
    stop.current = new AbortController();
    setSending({ file, share: null });
    const progress = (share) => share !== null && setSending({ file, share });
    const table = await attempt(() => upload(file, progress, stop.current.signal));
    ended.current = true;
    setSending(null);
    if (table) await attempt(() => then(table));
  };
  const drag = (inside) => (event) => {
    event.preventDefault();
    event.stopPropagation();
    setOver(inside);
    if (event.type === 'drop') bring(event.dataTransfer.files[0]);
  };
  const chosen = (event) => {
    bring(event.target.files[0]);
    event.target.value = '';
  };
  if (sending) return html`<${Sending} ...${sending} onStop=${() => stop.current.abort()} />`;
  return html`
    <label class=${`drop ${compact ? 'compact' : ''} ${over ? 'over' : ''}`} onDragEnter=${drag(true)}
      onDragOver=${drag(true)} onDragLeave=${drag(false)} onDrop=${drag(false)}>
      <svg class="act" viewBox="0 0 48 48" aria-hidden="true">
        <path d="M10 30v8h28v-8M24 32V10M15 19l9-9 9 9" />
      </svg>
      <input id=${id} type="file" accept=${ACCEPT} ref=${input} onChange=${chosen} />
      <b>${text}</b>
      <span class="quiet">${hint}</span>
    </label>
    ${example && html`
      <p class="more">
        <button id="example" type="button" onClick=${() => bring(example())}>Try it with an example table</button>
      </p>
    `}
  `;
}
