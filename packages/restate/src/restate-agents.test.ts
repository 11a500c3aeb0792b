import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Http2Server } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Agent,
  createAgent,
  type ModelRequest,
  suspend,
  textOf,
  tool,
  toolResults,
} from '@millrace/core';
import { scriptedModel, text, toolCall } from '@millrace/core/testing';
import { openFiles } from '@millrace/store';
import { createEndpointHandler } from '@restatedev/restate-sdk';
import { restateAgents, type RestateAgentsOptions } from './index.js';
import { type RestateServer, startRestate } from './restate-server.test-support.js';

let server: RestateServer;
let directory: string;
const endpoints: Http2Server[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-restate-'));
  server = await startRestate();
});
afterAll(async () => {
  await server.stop();
  endpoints.forEach((endpoint) => endpoint.close());
  await rm(directory, { recursive: true });
});

const serve = async (agents: readonly Agent[], options: Partial<RestateAgentsOptions> = {}) => {
  const store = openFiles(await mkdtemp(join(directory, 'store-')));
  const { services } = restateAgents(agents, { store, ...options });
  const endpoint = createServer(createEndpointHandler({ services, logger: () => undefined }));
  endpoints.push(endpoint);
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  const address = endpoint.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await server.register(`http://127.0.0.1:${port}`);
  return store;
};

it('remembers', async () => {
  const model = scriptedModel([text('Hi.')], ({ messages }) => [text(String(messages.length))]);
  await serve([createAgent({ name: 'one', model })]);
  const t0 = Date.now();
  console.log(await server.call('/one/s%2F1/call', { input: 'Hello.' }), Date.now() - t0);
  console.log(await server.call('/one/s%2F1/call', { input: 'And?' }), Date.now() - t0);
});
