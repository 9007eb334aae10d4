// The API of the service, from /openapi.json: what every address does, takes and answers.

import { get } from './api.js';
import { Folded, Sheet, Table } from './components.js';
import { html } from './vendor/preact.js';

const METHODS = { get: 'act', post: 'good', patch: 'warn', delete: 'anomaly' }; // and their colours
const TITLES = {
  scores: 'Score and explain rows',
  models: 'Models',
  tables: 'Tables',
  jobs: 'Jobs',
  results: 'Results and comparisons',
  operation: 'Operation',
};

// Turns names in double backticks into code.
const prose = (text) =>
  text.replace(/\n/g, ' ').split('``').map((part, i) => (i % 2 ? html`<code>${part}</code>` : part));

let schemas = {};
const refName = (ref) => ref.split('/').pop();
const resolved = (schema) => (schema?.$ref ? schemas[refName(schema.$ref)] : schema);

// The type of a value in a few words.
function typeText(schema) {
  if (!schema || !Object.keys(schema).length) return 'any';
  if (schema.$ref) return refName(schema.$ref);
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeText))].join(' or ');
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(', ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === 'array') return `list of ${typeText(schema.items)}`;
  if (schema.type === 'object' && schema.additionalProperties) {
    return `object of ${typeText(schema.additionalProperties)}`;
  }
  return schema.type ?? 'any';
}

function Fields({ fields }) {
  const cells = ({ name, schema, required, note }) => [
    html`<code>${name}</code>${required && html`<small class="anomaly">required</small>`}`,
    typeText(schema) + (schema?.default === undefined ? '' : `; ${JSON.stringify(schema.default)} if not given`),
    note ?? schema?.description ?? '',
  ];
  return html`<${Table} label="Fields" kind="fields" columns=${[[], [], ['', 'quiet']]} rows=${fields.map(cells)} />`;
}

const fieldsOf = ({ properties = {}, required = [] }) =>
  Object.entries(properties).map(([name, schema]) => ({ name, schema, required: required.includes(name) }));

function Body({ content, answer = false }) {
  const json = resolved(content['application/json']?.schema);
  const others = Object.keys(content).filter((type) => type !== 'application/json');
  const fields = json ? fieldsOf(answer ? { properties: json.properties } : json) : [];
  return html`
    ${fields.length > 0 && html`<${Fields} fields=${fields} />`}
    ${json && !fields.length && html`<p><code>application/json</code>: ${typeText(json)}</p>`}
    ${others.length > 0 && html`<p class="small">${json ? 'Or ' : ''}as ${others.join(', ')}.</p>`}
  `;
}

function Operation({ method, path, parameters = [], requestBody, responses, description = '', operationId }) {
  const [first, ...rest] = description.split('\n\n');
  const answers = Object.entries(responses).filter(([status]) => status < 300);
  const problems = Object.keys(responses).filter((status) => status >= 300);
  const fields = parameters.map((p) => ({ ...p, note: p.description ?? (p.in === 'path' ? 'in the address' : '') }));
  const answer = ([status, { content, description: text }]) =>
    html`
      <h3>Answer ${status}</h3>
      ${content ? html`<${Body} content=${content} answer=${true} />` : html`<p>${text}</p>`}
    `;
  return html`
    <details class="operation" id=${operationId}>
      <summary><span class=${`tag ${METHODS[method]}`}>${method.toUpperCase()}</span> <code>${path}</code>
        <span class="quiet"> ${prose(first)}</span></summary>
      ${rest.map((text) => html`<p>${prose(text)}</p>`)}
      ${fields.length > 0 && html`
        <h3>Parameters</h3>
        <${Fields} fields=${fields} />
      `}
      ${requestBody && html`
        <h3>Body</h3>
        <${Body} content=${requestBody.content} />
      `}
      ${answers.map(answer)}
      ${problems.length > 0 &&
        html`<p class="quiet small">Problems: ${problems.join(', ')}, as application/problem+json.</p>`}
    </details>
  `;
}

export async function apiView() {
  const { paths, components, info } = await get('/openapi.json');
  schemas = components?.schemas ?? {};
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(METHODS).filter((method) => methods[method]).map((method) => ({ method, path, ...methods[method] }))
  );
  const tagOf = ({ tags }) => tags?.[0] ?? 'operation';
  const types = Object.entries(schemas).filter(([, schema]) => schema.properties);
  const body = html`
    <p class="lead">
      ptad ${info.version}. The whole description for programs: <a href="/openapi.json">openapi.json</a>. With a token,
      send it as the header <code>Authorization: Bearer TOKEN</code>.
    </p>
    ${[...new Set(operations.map(tagOf))].map((tag) =>
      html`
        <${Sheet} title=${TITLES[tag] ?? tag}>
          ${operations.filter((o) => tagOf(o) === tag).map((entry) => html`<${Operation} ...${entry} />`)}
        <//>
      `
    )}
    <${Sheet} title="Types">
      ${types.map(([name, schema]) =>
        html`
          <${Folded} summary=${name}>
            <p>${schema.description}</p>
            <${Fields} fields=${fieldsOf(schema)} />
            <//>
        `
      )}
    <//>
  `;
  return { title: 'API', body };
}
