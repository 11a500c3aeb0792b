// Measures calls on a Restate server and without one, after `npm run build`: `node packages/restate/measure/calls.mjs [--calls 100] [--turns 10]`.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import console from 'node:console';
import { parseArgs } from 'node:util';
import { createAgent, tool } from 'millrace';
import { journal } from 'millrace/journal';
import { keepSessions } from 'millrace/sessions';
import { finish, text, toolCall } from 'millrace/testing';
import { restateAgents } from '@millrace/restate';
import { openFiles } from '@millrace/store';
import { createEndpointHandler } from '@restatedev/restate-sdk';
import { of } from 'rxjs';
import { startRestate } from '../dist/restate-server.test-support.js';

const { values } = parseArgs({
  options: { calls: { type: 'string', default: '100' }, turns: { type: 'string', default: '10' } },
});
const [calls, turns] = [values.calls, values.turns].map(Number);

/** Uses a tool as often as the input says, and answers then. */
const model = {
  name: 'counts',
  stream$: ({ messages }) => {
    const asked = messages.findLastIndex(({ role }) => role === 'user');
    const used = messages.slice(asked).filter(({ role }) => role === 'tool').length;
    const isDone = used >= Number(messages[asked].content[0].text);
    return of(isDone ? text('Done.') : toolCall('step', {}), finish());
  },
};
const step = tool({ name: 'step', description: 'A step.', run: () => 'Done.' });
const agentCalled = (name) =>
  createAgent({ name, model, tools: [step], limits: { maxIterations: turns + 2 } });

const directory = mkdtempSync(join(tmpdir(), 'measure-'));
const storeIn = (name) => openFiles(join(directory, name));

const median = async (call) => {
  const times = [];
  for (let at = -10; at < calls; at += 1) {
    const before = performance.now();
    await call(`call-${at}`);
    if (at >= 0) times.push(performance.now() - before);
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
};

const rows = {};
const measure = async (name, call) => {
  const short = await median((id) => call(`${id}-short`, '0'));
  const long = await median((id) => call(`${id}-long`, String(turns)));
  rows[name] = {
    'ms per call': Number(short.toFixed(1)),
    'ms per further turn with a tool': Number(((long - short) / turns).toFixed(1)),
  };
};

const restate = await startRestate();
try {
  const files = storeIn('journal');
  const journaled = agentCalled('journaled').with(journal(files.calls));
  await measure('journal', (callId, input) => journaled.call(input, { callId }));

  const kept = storeIn('kept');
  const sessions = keepSessions(agentCalled('kept'), kept.sessions, {
    journal: journal(kept.calls),
  });
  await measure('journal and kept session', async (callId, input) => {
    const session = await sessions.open(callId);
    return session.call(input, { callId });
  });

  const { calls: plain } = storeIn('restate-calls');
  const { services } = restateAgents([agentCalled('plain')], { store: { calls: plain } });
  const inSessions = restateAgents([agentCalled('inSession')], { store: storeIn('restate') });
  const all = [...services, ...inSessions.services];
  const endpoint = createServer(createEndpointHandler({ services: all, logger: () => undefined }));
  await new Promise((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  await restate.register(`http://127.0.0.1:${endpoint.address().port}`);
  const onRestate = (name) => async (key, input) => {
    const { status, body } = await restate.call(`/${name}/${key}/call`, { input });
    if (status !== 200) throw new Error(JSON.stringify(body));
  };
  await measure('Restate, without sessions', onRestate('plain'));
  await measure('Restate, with sessions', onRestate('inSession'));
  console.table(rows);
} finally {
  await restate.stop();
  rmSync(directory, { recursive: true });
}
process.exit();
