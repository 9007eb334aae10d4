// The drop zone, and the progress of an upload.

import { upload } from './api.js';
import { Meter } from './parts.js';
import { attempt, clearMessage } from './shell.js';
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

// ``then`` is called with the table once the service has read it; ``example`` returns a file for a first try.
export function Upload({ text, hint, then, compact = false, id = 'file', example = null }) {
  const [sending, setSending] = useState(null);
  const [isOver, setIsOver] = useState(false);
  const stop = useRef(null);
  const input = useRef(null);
  const hasEnded = useRef(false);
  useEffect(() => {
    // who leaves the view must not be taken to the table later
    const abort = () => stop.current?.abort();
    window.addEventListener('hashchange', abort);
    return () => window.removeEventListener('hashchange', abort);
  }, []);
  useEffect(() => {
    if (hasEnded.current && !sending) input.current?.focus({ preventScroll: true }); // ready for another file
  }, [sending]);
  const send = async (file) => {
    if (!file) return;
    clearMessage();
    stop.current = new AbortController();
    setSending({ file, share: null });
    const progress = (share) => share !== null && setSending({ file, share });
    const table = await attempt(() => upload(file, progress, stop.current.signal));
    hasEnded.current = true;
    setSending(null);
    if (table) await attempt(() => then(table));
  };
  const onDrag = (inside) => (event) => {
    event.preventDefault();
    event.stopPropagation();
    setIsOver(inside);
    if (event.type === 'drop') send(event.dataTransfer.files[0]);
  };
  const onChoose = (event) => {
    send(event.target.files[0]);
    event.target.value = '';
  };
  if (sending) return html`<${Sending} ...${sending} onStop=${() => stop.current.abort()} />`;
  return html`
    <label class=${`drop ${compact ? 'compact' : ''} ${isOver ? 'over' : ''}`} onDragEnter=${onDrag(true)}
      onDragOver=${onDrag(true)} onDragLeave=${onDrag(false)} onDrop=${onDrag(false)}>
      <svg class="act" viewBox="0 0 48 48" aria-hidden="true">
        <path d="M10 30v8h28v-8M24 32V10M15 19l9-9 9 9" />
      </svg>
      <input id=${id} type="file" accept=${ACCEPT} ref=${input} onChange=${onChoose} />
      <b>${text}</b>
      <span class="quiet">${hint}</span>
    </label>
    ${example && html`
      <p class="more">
        <button id="example" type="button" onClick=${() => send(example())}>Try it with an example table</button>
      </p>
    `}
  `;
}
