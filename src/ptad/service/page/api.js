// Calls to the service. A token, if there is one, is kept for this tab only.

const KEY = 'ptad-token';

export class Trouble extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export const token = () => sessionStorage.getItem(KEY);
export const setToken = (value) => sessionStorage.setItem(KEY, value);
const headers = (more = {}) => (token() ? { ...more, Authorization: `Bearer ${token()}` } : more);

// What went wrong, in the words of the service if it has any.
function troubleOf(text, status) {
  let detail = `The service answered with ${status}.`;
  try {
    detail = JSON.parse(text).detail || detail;
  } catch {
    /* not a problem document */
  }
  return new Trouble(detail, status);
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: headers(options.headers) });
  } catch {
    throw new Trouble(
      'The service cannot be reached. It may have been stopped; what was under way goes on when it is started again.',
      0,
    );
  }
  if (!response.ok) throw troubleOf(await response.text(), response.status);
  return response;
}

export const get = async (path) => (await ask(path)).json();
export const send = async (method, path, body) => {
  const options = body === undefined
    ? { method }
    : { method, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  const response = await ask(path, options);
  return response.status === 204 ? null : response.json();
};

// XMLHttpRequest, since fetch does not tell how much of an upload has gone out. Answers null if it was stopped.
export function upload(file, onProgress, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', `/v1/tables?name=${encodeURIComponent(file.name.slice(0, 150))}`);
    for (const [name, value] of Object.entries(headers({ 'Content-Type': 'application/octet-stream' }))) {
      request.setRequestHeader(name, value);
    }
    request.upload.addEventListener(
      'progress',
      (event) => onProgress(event.lengthComputable ? event.loaded / event.total : null),
    );
    request.addEventListener('load', () => {
      if (request.status === 201) resolve(JSON.parse(request.responseText));
      else reject(troubleOf(request.responseText, request.status));
    });
    const lost = 'The upload was interrupted: the service cannot be reached, or it refused a file this large.';
    request.addEventListener('error', () => reject(new Trouble(lost, 0)));
    request.addEventListener('abort', () => resolve(null));
    signal.addEventListener('abort', () => request.abort());
    request.send(file);
  });
}

// The blocks of a stream of server-sent events, as {id, event, data}.
async function* blocksOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (held + value).split('\n\n');
    held = blocks.pop();
    for (const block of blocks) {
      const lines = block.split('\n').map((line) => [line, line.indexOf(':')]);
      yield Object.fromEntries(lines.map(([line, at]) => [line.slice(0, at), line.slice(at + 1).trim()]));
    }
  }
}

// Server-sent events by fetch: EventSource cannot carry a token. Goes on after an interruption until told to stop.
export function follow(job, onEvent, onLost) {
  const stop = new AbortController();
  let last = 0;
  let ended = false;
  const listen = async () => {
    const options = { headers: headers({ 'Last-Event-ID': String(last) }), signal: stop.signal };
    const response = await fetch(`/v1/jobs/${job}/events`, options);
    if (!response.ok) throw troubleOf(await response.text(), response.status);
    onLost(null);
    for await (const { id, event, data } of blocksOf(response)) {
      if (id) last = Number(id);
      if (!event) continue;
      const told = JSON.parse(data);
      onEvent(event, told);
      if (event === 'state' && ['done', 'failed', 'cancelled'].includes(told.state)) ended = true;
    }
  };
  const goOn = async () => {
    while (!ended) {
      try {
        await listen();
      } catch (error) {
        if (stop.signal.aborted) return;
        onLost(error);
        if (error.status === 404 || error.status === 401) return;
      }
      if (!ended) await new Promise((resolve) => setTimeout(resolve, 1000));
      if (stop.signal.aborted) return;
    }
  };
  goOn();
  return () => stop.abort();
}

export async function download(path, name) {
  const response = await ask(path);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
