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

async function explained(response) {
  let detail = `The service answered with ${response.status}.`;
  try {
    detail = (await response.json()).detail || detail;
  } catch {
    /* not a problem document */
  }
  return new Trouble(detail, response.status);
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
  if (!response.ok) throw await explained(response);
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
      let content = {};
      try {
        content = JSON.parse(request.responseText);
      } catch {
        /* below */
      }
      if (request.status === 201) resolve(content);
      else reject(new Trouble(content.detail || `The service answered with ${request.status}.`, request.status));
    });
    request.addEventListener('error', () =>
      reject(
        new Trouble('The upload was interrupted: the service cannot be reached, or it refused a file this large.', 0),
      ));
    request.addEventListener('abort', () => resolve(null));
    signal.addEventListener('abort', () => request.abort());
    request.send(file);
  });
}

// Server-sent events by fetch: EventSource cannot carry a token. Goes on after an interruption until told to stop.
export function follow(job, onEvent, onLost) {
  const stop = new AbortController();
  let last = 0;
  let ended = false;
  (async () => {
    while (!stop.signal.aborted && !ended) {
      try {
        const response = await fetch(`/v1/jobs/${job}/events`, {
          headers: headers({ 'Last-Event-ID': String(last) }),
          signal: stop.signal,
        });
        if (!response.ok) throw await explained(response);
        onLost(null);
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let held = '';
        for (;;) {
          const { value, done } = await reader.read();
          if (done) break;
          held += value;
          const blocks = held.split('\n\n');
          held = blocks.pop();
          for (const block of blocks) {
            const fields = Object.fromEntries(
              block
                .split('\n')
                .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]),
            );
            if (fields.id) last = Number(fields.id);
            if (!fields.event) continue;
            const data = JSON.parse(fields.data);
            onEvent(fields.event, data);
            if (fields.event === 'state' && ['done', 'failed', 'cancelled'].includes(data.state)) ended = true;
          }
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        onLost(error);
        if (error.status === 404 || error.status === 401) return;
      }
      if (!ended) {
        await new Promise((resolve) => {
          setTimeout(resolve, 1000);
        });
      }
    }
  })();
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
