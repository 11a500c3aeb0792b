import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { join } from 'node:path';
import { type AgentEvent, approval, createAgent, MillraceError, tool, toolOutput } from 'millrace';
import { journal } from 'millrace/journal';
import { agentTool } from 'millrace/teams';
import { record, scriptedModel, text, thinking, toolCall } from 'millrace/testing';
import { isRecord } from 'millrace/values';
import { openFiles } from '@millrace/store';
import { catchError, EMPTY, from, lastValueFrom, toArray } from 'rxjs';
import { type Home, makeHome } from '../runs/runs.test-support.js';
import { present } from './present.js';
import { toJsonLines } from './to-json-lines.js';

const hostile = '\u001b[2J\u009b1A\u202e\u0007\r';
/** What a terminal obeys. */
// eslint-disable-next-line no-control-regex
const control = /(?!\n)[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/u;

/** What decides the type of a value. Everything else may be anything. */
const types = new Set([
  'type',
  'kind',
  'role',
  'status',
  'messageId',
  'callId',
  'rootId',
  'parentId',
]);

/** The same value, with hostile characters in each string and each key. */
const spoilt = (value: unknown, key = ''): unknown => {
  if (typeof value === 'string') return types.has(key) ? value : `${hostile}${value}${hostile}`;
  if (value instanceof MillraceError) {
    return new MillraceError(value.code, `${hostile}${value.message}`, { userMessage: hostile });
  }
  if (Array.isArray(value)) return value.map((it) => spoilt(it, key));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, spoilt(it, name)]));
};

/** A call with every kind of line that is printed. */
const calls = async (): Promise<readonly (readonly AgentEvent[])[]> => {
  const helper = createAgent({
    name: 'helper',
    model: scriptedModel([thinking('Hm.'), text('Found.')]),
  });
  const look = tool({
    name: 'look',
    description: 'Looks.',
    run: () => from(['half', toolOutput({ content: 'Seen.' })]),
  });
  const fails = tool({
    name: 'fails',
    description: 'Fails.',
    run: () => {
      throw new Error('Broken.');
    },
  });
  const model = scriptedModel(
    (_request, { report }) => {
      const error = new MillraceError('rateLimited', 'Slow down.');
      report({ type: 'modelRetry', model: 'big', attempt: 1, attempts: 2, waitMs: 1, error });
      report({ type: 'modelFallback', from: 'big', to: 'small', error });
      report({ type: 'warning', message: 'Odd.' });
      return [thinking('I see.'), toolCall('look'), toolCall('fails'), toolCall('unknown')];
    },
    [text('Let me ask.'), toolCall('helper', { user_prompt: 'Where?' })],
    [text('Done.')],
  );
  const tools = [look, fails, agentTool(helper, { description: 'Helps.' })];
  const agent = createAgent({ name: 'lead', model, tools, use: [approval(() => true)] });
  const failing = createAgent({
    model: scriptedModel(() => {
      throw new MillraceError('server', 'Down.');
    }),
  });
  const failed$ = failing.stream$('?').pipe(
    catchError(() => EMPTY),
    toArray(),
  );
  return Promise.all([record(agent.stream$('?')), lastValueFrom(failed$)]);
};

describe('a terminal obeys nothing of a model, a tool or a store', () => {
  it('in any string of any event', async () => {
    for (const events of await calls()) {
      const all = events.map((event) => spoilt(event) as AgentEvent);
      for (const presenter of [present(), toJsonLines]) {
        const printed = await lastValueFrom(from(all).pipe(presenter, toArray()));
        expect(printed.length).toBeGreaterThan(0);
        expect(printed.filter((it) => control.test(it))).toEqual([]);
      }
    }
  });
});

describe('a run that another program has recorded', () => {
  let home: Home;
  const callId = `id${hostile}of a run`;
  beforeAll(async () => {
    home = makeHome();
    const { calls: store, close$ } = openFiles(join(home.path, 'runs'));
    const model = scriptedModel(
      [toolCall(`${hostile}tool`, { [hostile]: hostile })],
      [text(hostile)],
    );
    const agent = createAgent({ name: 'lead', model, use: [journal(store)] });
    await agent.call(`Go${hostile}.`, {
      callId,
      metadata: { about: `a${hostile}b`, model: hostile },
    });
    await lastValueFrom(close$(), { defaultValue: undefined });
  });
  afterAll(() => home.remove());

  const argvs: readonly (readonly string[])[] = [
    ['runs'],
    ['runs', '-q'],
    ['runs', '--json'],
    ['runs', callId],
    ['runs', callId, '--json'],
    ['replay', callId],
    ['replay', callId, '--json'],
    ['resume', callId],
    ['fork', callId, '--at', '0'],
    ['runs', `none${hostile}`],
  ];
  it.each(argvs.map((argv) => [argv]))('%j', async (argv) => {
    const { out, err } = await home.ran([...argv, '--store', join(home.path, 'runs')]);
    expect(`${out}${err}`).not.toBe('');
    expect(control.exec(`${out}${err}`)?.index).toBe(undefined);
  });
});
