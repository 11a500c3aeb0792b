// Starts public MCP servers of npm, each as a child process, lists their tools and calls one that needs no network. Prints a
// table; exits with 1 if a server fails, and with 75 if they cannot be downloaded. `npm run mcp-servers`
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setUp } from './set-up.mjs';
import { run } from './run.mjs';

await setUp();
const { createAgent } = await import('millrace');
const { scriptedModel, text, toolCall } = await import('millrace/testing');
const { mcp } = await import('@millrace/mcp');

const directory = join(import.meta.dirname, '../temp/mcp-servers');
const work = mkdtempSync(join(tmpdir(), 'mcp-servers-'));
writeFileSync(join(work, 'a.txt'), 'grist');
writeFileSync(join(work, 'a.js'), 'debugger;');
writeFileSync(
  join(work, 'eslint.config.js'),
  'module.exports = [{ rules: { "no-debugger": "error" } }];',
);
writeFileSync(
  join(work, 'kubeconfig'),
  `apiVersion: v1
kind: Config
current-context: none
clusters: [{ name: none, cluster: { server: 'http://127.0.0.1:1' } }]
contexts: [{ name: none, context: { cluster: none, user: none } }]
users: [{ name: none, user: {} }]
`,
);

/** EX_TEMPFAIL of sysexits.h. */
const notDownloaded = 75;

const chromium = process.env.CHROMIUM ?? '/usr/bin/chromium';
const page = createServer((_request, response) => {
  response.setHeader('content-type', 'text/html');
  response.end('<title>Grist</title><h1>grist</h1>');
});
await new Promise((resolve) => page.listen(0, '127.0.0.1', resolve));
const url = `http://127.0.0.1:${page.address().port}/`;

// Package, version, its program, arguments, variables, and a tool call with what its result has.
const servers = [
  [
    '@modelcontextprotocol/server-everything',
    '2026.8.31',
    'dist/index.js',
    ['stdio'],
    {},
    ['echo', { message: 'grist' }],
    /grist/,
  ],
  [
    '@modelcontextprotocol/server-filesystem',
    '2026.8.31',
    'dist/index.js',
    [work],
    {},
    ['read_text_file', { path: join(work, 'a.txt') }],
    /grist/,
  ],
  [
    '@modelcontextprotocol/server-memory',
    '2026.8.31',
    'dist/index.js',
    [],
    { MEMORY_FILE_PATH: join(work, 'memory.json') },
    ['create_entities', { entities: [{ name: 'grist', entityType: 'corn', observations: [] }] }],
    /grist/,
  ],
  [
    '@modelcontextprotocol/server-sequential-thinking',
    '2026.8.31',
    'dist/index.js',
    [],
    {},
    [
      'sequentialthinking',
      { thought: 'grist', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 },
    ],
    /thoughtNumber/,
  ],
  [
    '@playwright/mcp',
    '0.0.83',
    'cli.js',
    ['--headless', '--isolated', '--no-sandbox', '--executable-path', chromium],
    {},
    ['browser_navigate', { url }],
    /Grist/,
  ],
  [
    'chrome-devtools-mcp',
    '1.11.0',
    'build/src/bin/chrome-devtools-mcp.js',
    [
      '--headless',
      '--isolated',
      '--executablePath',
      chromium,
      '--chromeArg=--no-sandbox',
      '--no-usage-statistics',
    ],
    {},
    ['new_page', { url }],
    /127\.0\.0\.1/,
  ],
  [
    'mcp-server-kubernetes',
    '4.1.7',
    'dist/index.js',
    [],
    { KUBECONFIG: join(work, 'kubeconfig') },
    ['ping', {}],
    /^$/,
  ],
  [
    '@eslint/mcp',
    '0.3.13',
    'src/mcp-cli.js',
    [],
    {},
    ['lint-files', { filePaths: [join(work, 'a.js')] }],
    /no-debugger/,
  ],
];

const versionOf = (name) => {
  const file = join(directory, 'node_modules', name, 'package.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : undefined;
};

if (servers.some(([name, version]) => versionOf(name) !== version)) {
  mkdirSync(directory, { recursive: true });
  writeFileSync(
    join(directory, 'package.json'),
    JSON.stringify({
      private: true,
      dependencies: Object.fromEntries(servers.map(([name, version]) => [name, version])),
    }),
  );
  console.log('Installing …');
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'];
  const { code, output } = await run('npm', args, { cwd: directory, quiet: true });
  if (code !== 0) {
    console.log(`${output.trimEnd()}\n\nThe servers could not be downloaded, so none was started.`);
    process.exit(notDownloaded);
  }
}

let failed = 0;
for (const [name, version, program, args, env, [tool, input], expected] of servers) {
  const layer = mcp({
    name: 's',
    prefix: '',
    stdio: {
      command: process.execPath,
      args: [join(directory, 'node_modules', name, program), ...args],
      env,
      cwd: work,
    },
    timeouts: { connectMs: 60_000, toolMs: 60_000 },
  });
  const model = scriptedModel([toolCall(tool, input)], [text('done')]);
  const { toolCalls } = await createAgent({ model, use: [layer] }).call('?');
  const { output, isError } = toolCalls[0];
  const isRight = !isError && expected.test(output);
  const tools = model.requests[0].tools?.length ?? 0;
  console.log(
    `${isRight ? 'ok    ' : 'FAILED'} ${`${name}@${version}`.padEnd(62)} ${String(tools).padStart(3)} tools, called ${tool}`,
  );
  if (!isRight) {
    failed += 1;
    console.log(output.slice(0, 600));
  }
}
page.close();
process.exit(failed > 0 ? 1 : 0);
