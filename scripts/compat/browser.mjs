import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { build } from 'esbuild';
import { startEndpoint } from '../platforms/endpoint.mjs';
import { edgeVm, runtime, withWorkerd } from '../platforms/runtimes.mjs';

export const name = 'browser';
export const goal =
  'Chromium, Cloudflare Workers and edge functions load every portable entry, and run an agent with a tool';

/** Entries that need Node, or compile code. Every other one must bundle for browsers without a `node:` import. */
const notPortable = [
  /^@millrace\/(cli|dbos|devtools|mcp|restate|store|tools-extra)(\/|$)/,
  /^@millrace\/server\/(node|web-socket)$/,
  /^@millrace\/tools(\/(?!(patterns|edits)$)|$)/,
  /^@millrace\/evals\/(file|matchers)$/,
  /^@millrace\/skills\/folder$/,
  /^@millrace\/deep-agent\/.+$/,
  // It compiles the schema of its documents.
  /^@millrace\/flow$/,
  /^create-millrace$/,
];

/** Asks models of both vendors, whose agents call a tool; then leaves an answer that has begun. */
const program = `
import { createAgent, text, textOf, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { anthropic } from '@millrace/anthropic';
import { openai } from '@millrace/openai';
import { firstValueFrom } from 'rxjs';

const weather = tool({
  name: 'weather',
  description: 'Returns the weather of a city.',
  input: jsonSchema({ type: 'object', properties: { city: { type: 'string', minLength: 1 } }, required: ['city'] }),
  run: ({ city }) => \`snow in \${city}\`,
});
const question = [
  { type: 'text', text: 'How is the weather?' },
  { type: 'image', source: { kind: 'url', url: 'data:image/png;base64,AAAA' } },
];
const failure = (promise) => promise.then(() => 'no error', ({ code }) => code);
const compiles = () => {
  try {
    return new Function('return true')();
  } catch {
    return false;
  }
};

export const run = async (url) => {
  const settings = { apiKey: 'of-the-user', dangerouslyAllowBrowser: true };
  const models = [
    openai('gpt', { ...settings, baseURL: \`\${url}/v1\` }),
    anthropic('claude', { ...settings, baseURL: url }),
  ];
  const answers = [];
  for (const model of models) {
    answers.push(textOf(await createAgent({ model, tools: [weather] }).call(question)));
  }
  await firstValueFrom(createAgent({ model: models[0] }).stream$('Please wait').pipe(text()));
  const left = await (await fetch(url)).text();
  const withKey = openai('gpt', { apiKey: 'ours', baseURL: \`\${url}/v1\` });
  return {
    answers,
    left,
    compiles: compiles(),
    missingKey: await failure(createAgent({ model: openai('gpt') }).call('Hello')),
    keyOfOthers: await failure(createAgent({ model: withKey }).call('Hello')),
  };
};
`;

const answers = ['The tool says: snow in Oslo', 'The tool says: snow in Oslo'];
const expected = { answers, left: 'left', compiles: false, missingKey: 'config' };

export async function rows(context) {
  context.write('browser/program.js', program);
  context.write('browser/page.js', "import { run } from './program.js';\nglobalThis.run = run;\n");
  context.write(
    'browser/worker.js',
    `import { run } from './program.js';
export default {
  fetch: async (request) => Response.json(await run(new URL(request.url).searchParams.get('url'))),
};
`,
  );
  const edge = await runtime('@edge-runtime/vm');
  return [
    await bundled(context, edge),
    await ran('Chromium', await chromium(), { ...expected, keyOfOthers: 'config' }, (found, url) =>
      inChromium(context, found, url),
    ),
    await ran('Cloudflare Workers', await runtime('workerd'), workers, ({ path }, url) =>
      inWorkerd(context, path, url),
    ),
    await ran('Vercel Edge', edge, workers, (_, url) => inEdgeVm(context, url)),
  ];
}

/** A server may hold a key. */
const workers = { ...expected, keyOfOthers: 'no error' };

/** Runs the program in a runtime, if that is there. */
async function ran(platform, found, wanted, use) {
  const what = `${platform} (${found.label}) runs an agent without code generation`;
  if (found.path === undefined) return { what, skipped: found.why };
  const endpoint = await startEndpoint();
  try {
    const result = await use(found, endpoint.url);
    return isDeepStrictEqual(result, wanted) ? { what } : { what, problem: JSON.stringify(result) };
  } catch (error) {
    return { what, problem: String(error?.stack ?? error) };
  } finally {
    endpoint.close();
  }
}

// ---------------------------------------------------------------- bundles

/** Bundles each entry, and loads it in a virtual machine that compiles no strings, if that is there. */
async function bundled({ entries, project }, edge) {
  const chosen = entries.filter((entry) => !notPortable.some((pattern) => pattern.test(entry)));
  const problems = [];
  for (const entry of chosen) {
    const contents = `import * as entry from '${entry}';\nglobalThis.entry = entry;`;
    const options = { stdin: { contents, resolveDir: project }, format: 'iife' };
    try {
      const script = await bundle(project, options);
      if (edge.path !== undefined) createEdgeVm().evaluate(script);
    } catch (error) {
      problems.push(`${entry}: ${error.message}`);
    }
  }
  const what = `${chosen.length} of ${entries.length} entries bundle for browsers, and load without code generation`;
  return problems.length === 0 ? { what } : { what, problem: problems.join('\n') };
}

async function bundle(project, options) {
  const { outputFiles } = await build({
    absWorkingDir: project,
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    logLevel: 'silent',
    ...options,
  });
  return outputFiles[0].text;
}

// ---------------------------------------------------------------- Chromium

const browsers = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

async function chromium() {
  const path = [process.env.CHROMIUM, ...browsers].find((it) => it !== undefined && existsSync(it));
  return path === undefined
    ? { label: 'not found', why: 'install Chromium, or set CHROMIUM to its path' }
    : { label: "a page without 'unsafe-eval'", path };
}

async function inChromium({ project }, { path }, url) {
  const { chromium: driver } = await import('playwright-core');
  const script = await bundle(project, { entryPoints: ['browser/page.js'] });
  const page = createServer((request, response) => {
    const policy = `default-src 'none'; script-src 'self'; connect-src ${url}`;
    const isScript = request.url === '/page.js';
    response.writeHead(200, {
      'content-security-policy': policy,
      'content-type': isScript ? 'text/javascript' : 'text/html',
    });
    response.end(
      isScript ? script : '<!doctype html><script type="module" src="/page.js"></script>',
    );
  });
  page.listen(0, '127.0.0.1');
  await once(page, 'listening');
  const browser = await driver.launch({
    executablePath: path,
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  });
  try {
    const visited = await browser.newPage();
    await visited.goto(`http://127.0.0.1:${page.address().port}/`);
    return await visited.evaluate((endpoint) => globalThis.run(endpoint), url);
  } finally {
    await browser.close();
    page.close();
  }
}

// ---------------------------------------------------------------- Workers

const config = `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "bundle.js", esModule = embed "bundle.js")],
      compatibilityDate = "2026-01-01",
      globalOutbound = "loopback",
    )),
    (name = "loopback", network = (allow = ["private", "local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
`;

async function inWorkerd({ project, write }, path, url) {
  const conditions = ['workerd', 'worker', 'browser'];
  write(
    'browser/bundle.js',
    await bundle(project, { entryPoints: ['browser/worker.js'], conditions }),
  );
  write('browser/config.capnp', config);
  return withWorkerd(path, join(project, 'browser/config.capnp'), async (worker) => {
    const response = await fetch(`${worker}/?url=${encodeURIComponent(url)}`);
    const body = await response.text();
    if (!response.ok) throw new Error(`workerd answered ${response.status}: ${body}`);
    return JSON.parse(body);
  });
}

// ---------------------------------------------------------------- edge functions

async function inEdgeVm({ project }, url) {
  const script = await bundle(project, {
    entryPoints: ['browser/page.js'],
    format: 'iife',
    conditions: ['edge-light'],
  });
  const vm = createEdgeVm();
  vm.evaluate(script);
  return JSON.parse(await vm.evaluate(`run(${JSON.stringify(url)}).then(JSON.stringify)`));
}

function createEdgeVm() {
  const EdgeVM = edgeVm();
  return new EdgeVM({
    codeGeneration: { strings: false, wasm: false },
    // As Next.js and Vercel add it.
    extend: (context) => Object.assign(context, { process: { env: {} } }),
  });
}
