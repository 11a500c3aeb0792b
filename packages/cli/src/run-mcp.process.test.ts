import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  type FaultServer,
  stall,
  startFaultServer,
  streamed,
  streamHeaders,
  streamOf,
} from '@millrace/fault-server';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const program = fileURLToPath(new URL('../dist/bundle/bin.js', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'millrace-mcp-'));
writeFileSync(join(directory, 'a.txt'), 'first line\n');

const children: ChildProcess[] = [];
const clients: Client[] = [];
let models: FaultServer;
beforeAll(async () => {
  models = await startFaultServer();
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  for (const child of children.splice(0)) child.kill('SIGKILL');
});
afterAll(async () => {
  await models.close();
  rmSync(directory, { recursive: true });
});

type Variables = Readonly<Record<string, string>>;

/** The official client of a program that it starts. */
const connected = async (argv: readonly string[], env: Variables = {}) => {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [program, 'mcp', ...argv],
    env: { ...env },
    stderr: 'pipe',
    cwd: directory,
  });
  let logged = '';
  transport.stderr?.on('data', (chunk) => (logged += String(chunk)));
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: 'legacy' } },
  );
  clients.push(client);
  await client.connect(transport);
  return { client, transport, logged: () => logged };
};

const textIn = (result: object): string => JSON.stringify(Reflect.get(result, 'content'));

/** The program, with its output. */
const started = (argv: readonly string[], env: Variables = {}) => {
  const child = spawn(process.execPath, [program, 'mcp', ...argv], { cwd: directory, env });
  children.push(child);
  const ended = once(child, 'close');
  let err = '';
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  const logged = new Promise<string>((resolve) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text;
      if (err.includes('Serving MCP')) resolve(err);
    });
  });
  return { child, ended, logged, out: () => out, err: () => err };
};

const hello =
  '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}\n';

describe('npx @millrace/cli mcp', () => {
  it('serves its tools, which say that they only read', async () => {
    const { client, logged } = await connected([]);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      'calculator',
      'clock',
      'read_file',
      'search_docs',
    ]);
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint)).toBe(true);
    const sum = { name: 'calculator', arguments: { expression: '6 * 7' } };
    expect(textIn(await client.callTool(sum))).toContain('42');
    const file = { name: 'read_file', arguments: { path: 'a.txt' } };
    expect(textIn(await client.callTool(file))).toContain('first line');
    const wrong = { name: 'calculator', arguments: { expression: '1 +' } };
    expect(await client.callTool(wrong)).toMatchObject({ isError: true });
    expect(textIn(await client.callTool(wrong))).toContain('Cannot read');
    expect(logged()).toMatch(/^Serving MCP over stdin and stdout: calculator, clock,/m);
  });

  it('serves the agent as a tool, and cancels its model request', async () => {
    const { url, arrived, closed } = await models.play({
      responses: [
        streamed(streamOf('chat', { text: 'It is noon.' })),
        [streamHeaders, stall()],
        streamed(streamOf('chat', { text: 'Still here.' })),
      ],
    });
    const env = { OPENAI_BASE_URL: url, OPENAI_API_KEY: 'sk-key' };
    const { client, logged } = await connected(
      ['--agent', '--model', 'big', '--directory', directory],
      env,
    );
    const ask = { name: 'ask_millrace', arguments: { question: 'Which time is it?' } };
    const { tools } = await client.listTools();
    expect(tools.at(-1)).toMatchObject({
      name: 'ask_millrace',
      annotations: { openWorldHint: true },
    });
    expect(textIn(await client.callTool(ask))).toContain('It is noon.');
    expect(logged()).toContain('The agent uses the model big at 127.0.0.1');

    const abort = new AbortController();
    const call = client.callTool(ask, { signal: abort.signal }).catch((error: unknown) => error);
    await arrived(1);
    abort.abort();
    expect(await call).toBeInstanceOf(Error);
    expect(await closed(1)).toMatchObject({ closedEarly: true });
    expect(textIn(await client.callTool(ask))).toContain('Still here.');
    expect(logged()).not.toContain('sk-key');
  });

  it('leaves out the reader of files if it is started in the root', async () => {
    const child = spawn(process.execPath, [program, 'mcp'], { cwd: '/', env: {} });
    children.push(child);
    const [line] = await once(child.stderr.setEncoding('utf8'), 'data');
    expect(line).toContain('Files cannot be read: choose a directory with --directory.');
  });

  it('ends with its input, and writes nothing but the protocol to stdout', async () => {
    const { child, ended, logged, out } = started([]);
    await logged;
    child.stdin.end(`${hello}no message\n`);
    expect(await ended).toEqual([0, null]);
    for (const line of out().split('\n').filter(Boolean)) {
      expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' });
    }
  });

  it('ends at Ctrl-C', async () => {
    const { child, ended, logged, out } = started([]);
    await logged;
    child.stdin.write(hello);
    await once(child.stdout, 'data');
    child.kill('SIGINT');
    expect(await ended).toEqual([130, null]);
    expect(out().split('\n')).toHaveLength(2);
  });

  it('listens on this machine only, for clients that know the token, until SIGTERM', async () => {
    const { child, ended, logged, out } = started(['--http'], { MILLRACE_MCP_TOKEN: 'secret' });
    const [, url = ''] = /at (http:\/\/127\.0\.0\.1:\d+\/mcp): calculator/.exec(await logged) ?? [];
    expect((await fetch(url, { method: 'POST', body: hello })).status).toBe(401);
    const client = new Client({ name: 'test', version: '1' });
    clients.push(client);
    const headers = { Authorization: 'Bearer secret' };
    await client.connect(
      new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }),
    );
    expect((await client.listTools()).tools).toHaveLength(4);
    child.kill('SIGTERM');
    expect(await ended).toEqual([143, null]);
    expect(out()).toBe('');
  });

  it('fails with a message if the port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const address = other.address();
    const port = typeof address === 'object' ? String(address?.port) : '';
    const { ended, err } = started(['--http', port]);
    expect(await ended).toEqual([1, null]);
    expect(err()).toContain(`cannot listen on 127.0.0.1:${port}`);
    other.close();
  });
});
