import { describe, expect, it } from '@jest/globals';
import {
  type Agent,
  type AgentEvent,
  inProcessMemory,
  type Model,
  textOf,
  tool,
  toolResults,
} from 'millrace';
import {
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  type NewRecord,
  type Journal,
  journal,
  suspendBelow,
} from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { sessions } from 'millrace/sessions';
import { finish, record, text, toolCall } from 'millrace/testing';
import { concatMap, defer, from, lastValueFrom, map, type Observable, Subject } from 'rxjs';
import { type FlowOptions, flowAgent } from './flow-agent.js';

/** What outlasts a process. */
interface World {
  readonly driver: CallStoreDriver;
  readonly effects: string[];
}

const begin = (...downstream: readonly string[]) => ({
  component_name: 'begin',
  params: {},
  downstream,
});
const component = (component_name: string, params: object, ...upstream: readonly string[]) => ({
  component_name,
  params,
  ...(upstream.length > 0 && { upstream }),
});
const ask = (content: string, more: object = {}, ...upstream: readonly string[]) =>
  component('agent', { llm_id: 'm', prompts: [{ role: 'user', content }], ...more }, ...upstream);
const say = (content: string, ...upstream: readonly string[]) =>
  component('message', { content }, ...upstream);

/** Says again what it was asked last, and asks for a tool first where that is to be paid. */
const model: Model = {
  name: 'echo',
  stream$: ({ messages, outputSchema }) => {
    const last = messages.at(-1);
    const asked = textOf(last ?? { content: [] });
    if (outputSchema !== undefined) return from([text('{"category":"pay"}'), finish()]);
    return last?.role !== 'tool' && asked.includes('pay')
      ? from([toolCall('pay', { to: asked }), finish()])
      : from([text('Of '), text(asked), finish()]);
  },
};

const documents: Readonly<Record<string, object>> = {
  'a branch': {
    begin: begin('c'),
    c: component('categorize', {
      llm_id: 'm',
      categories: {
        pay: { description: 'Pay.', to: ['p'] },
        talk: { description: 'Talk.', to: ['t'] },
      },
    }),
    p: ask('pay {{sys.query}}', { tools: ['pay'] }),
    t: ask('{{sys.query}}'),
    say: say('{{p@output}}{{t@output}}', 'p', 't'),
  },
  'a loop': {
    begin: begin('i'),
    i: component('iterate', {
      items: '["a", "b", "c"]',
      components: {
        each: begin('p'),
        p: ask('pay {{i@item}}', { tools: ['pay'] }),
        f: component('code', { function: 'note', input: { x: '{{p@output}}' } }, 'p'),
        said: say('{{f@output}}', 'f'),
      },
    }),
    say: say('{{i@output}}', 'i'),
  },
  'a loop until a condition, with variables': {
    begin: begin('l'),
    l: component('loop', {
      max_rounds: 3,
      until: { conditions: [{ value: '{{var.paid}}', operator: '≥', operand: '2' }] },
      components: {
        each: begin('p'),
        p: ask('pay {{l@index}}', { tools: ['pay'] }),
        n: component('set', { assign: [{ variable: 'paid', operator: 'add', value: 1 }] }, 'p'),
        said: say('{{p@output}} after {{l@previous.said}}', 'n'),
      },
    }),
    say: say('{{l@output}} {{l@rounds.0.p}} {{var.paid}}', 'l'),
  },
  'a person, a request and an error': {
    begin: begin('h'),
    h: component('human', { message: 'Pay?', choices: ['yes', 'no'] }),
    r: component(
      'http',
      {
        url: 'https://bank.test/',
        method: 'POST',
        body: { pay: '{{h@output}}' },
        idempotency_key: true,
        headers: { authorization: '{{secret.KEY}}' },
      },
      'h',
    ),
    b: component('code', { function: 'fails', on_error: { value: '{{b@error.code}}' } }, 'r'),
    t: component('tool', { tool: 'pay', input: { to: '{{r@output.n}} {{b@output}}' } }, 'b'),
    say: say('{{t@output}} {{h@output}}', 't'),
  },
  'ways side by side': {
    begin: begin('a', 'b', 'f'),
    a: ask('pay a', { tools: ['pay'] }),
    b: ask('pay b', { tools: ['pay'] }),
    f: component('code', { function: 'note', input: { x: '{{sys.query}}' } }),
    t: component('tool', { tool: 'pay', input: { to: '{{f@output}}' } }, 'f'),
    d: ask('{{a@output}} and {{b@output}} and {{t@output}}', {}, 'a', 'b', 't'),
    say: say('{{d@output}}', 'd'),
  },
};

const agentOf = (
  components: object,
  { driver, effects }: World,
  isDead: () => boolean = () => false,
  more: FlowOptions = {},
): Agent => {
  const affect = (effect: string): void => {
    if (!isDead()) effects.push(effect);
  };
  return flowAgent(
    { version: 1, name: 'f', variables: { paid: { type: 'number' } }, components },
    {
      models: { m: model },
      tools: [
        tool({
          name: 'pay',
          description: 'Pays.',
          input: jsonSchema({ type: 'object', properties: { to: { type: 'string' } } }),
          run: ({ to = '' }, { idempotencyKey }) => {
            affect(idempotencyKey);
            return `Paid ${to}.`;
          },
        }),
      ],
      code: {
        note: ({ x }, { idempotencyKey }) => {
          affect(idempotencyKey);
          return `Noted ${String(x)}`;
        },
        fails: () => {
          throw new Error('It fails.');
        },
      },
      human: () => 'YES',
      secrets: { KEY: 'secret' },
      http: {
        fetch: (_url, { headers }) => {
          affect(headers['idempotency-key'] ?? '');
          return Promise.resolve(
            new Response('{"n":7}', { headers: { 'content-type': 'application/json' } }),
          );
        },
      },
      use: [journal(createCallStore(driver), { onUncertain: 'rerun' })],
      ...more,
    },
  );
};

/** The driver of a process that ends when so many records are written. */
const dying = (driver: CallStoreDriver, records: number) => {
  const ended$ = new Subject<never>();
  let left = records;
  let isDead = false;
  const append$ = (
    claim: { append$(records: readonly NewRecord[]): Observable<unknown> },
    batch: readonly NewRecord[],
  ): Observable<unknown> =>
    defer(() => {
      const kept = batch.slice(0, left);
      left -= kept.length;
      isDead ||= kept.length < batch.length;
      return claim.append$(kept).pipe(isDead ? concatMap(() => ended$) : map((done) => done));
    });
  return {
    isDead: () => isDead,
    kill: () => ended$.error(new Error('killed')),
    driver: {
      ...driver,
      claim$: (callId: string) =>
        driver
          .claim$(callId)
          .pipe(
            map((claim) => ({ append$: (batch: readonly NewRecord[]) => append$(claim, batch) })),
          ),
    },
  };
};

const cut = async (
  world: World,
  records: number,
  run$: (agent: Agent, durable: Journal) => Observable<unknown>,
  components: object,
): Promise<void> => {
  const { driver, isDead, kill } = dying(world.driver, records);
  const durable = journal(createCallStore(driver), { onUncertain: 'rerun' });
  const ended = lastValueFrom(run$(agentOf(components, { ...world, driver }, isDead), durable), {
    defaultValue: undefined,
  }).catch(() => undefined);
  // What the process waits for arrives before it is killed.
  while (!isDead() && (await isRunning(ended)));
  kill();
  await ended;
};

/** Whether something has not ended after the promises that it waits for. */
const isRunning = (ended: Promise<unknown>): Promise<boolean> =>
  Promise.race([
    ended.then(() => false),
    new Promise<boolean>((resolve) => {
      setImmediate(() => resolve(true));
    }),
  ]);

const written = (driver: CallStoreDriver) => lastValueFrom(driver.read$('c'), { defaultValue: [] });

const call$ = (agent: Agent) => agent.call$('Go', { callId: 'c' });

/** The number of cuts of a flow. CI makes a share of them. */
const cuts = Math.max(6, Math.ceil(24 * Number(process.env['MILLRACE_RUNS'] ?? 1)));

describe('a flow that is cut anywhere', () => {
  it.each(Object.entries(documents))(
    'S6, G6: %s continues at the same place',
    async (_, components) => {
      const whole: World = { driver: inProcessCalls(), effects: [] };
      const expected = await lastValueFrom(call$(agentOf(components, whole)));
      const { length } = await written(whole.driver);
      const stride = Math.max(1, Math.floor(length / cuts));
      for (let records = 1; records < length; records += stride) {
        const world: World = { driver: inProcessCalls(), effects: [] };
        await cut(world, records, call$, components);
        await cut(
          world,
          1 + ((records * 7) % length),
          (agent, durable) => durable.resume$(agent, 'c'),
          components,
        );
        const durable = journal(createCallStore(world.driver), { onUncertain: 'rerun' });
        const events = await record(durable.resumeStream$(agentOf(components, world), 'c'));
        const last = events.at(-1);
        const reply = last?.type === 'postCall' ? last.reply : undefined;
        expect([records, reply && textOf(reply), reply?.reason]).toEqual([
          records,
          textOf(expected),
          'answer',
        ]);
        // Keys have a random part, another one in each world.
        const effectsOf = ({ effects }: World) =>
          new Set(effects.map((effect) => effect.replace(/\/[0-9a-f]{16}$/u, '')));
        expect(effectsOf(world)).toEqual(effectsOf(whole));
        expect(new Set(world.effects).size).toBe(effectsOf(world).size);
        const names = (await written(world.driver)).map(({ kind, name }) => `${kind} ${name}`);
        const uncertain = names.filter((name) => name === 'event uncertain').length;
        expect(world.effects.length).toBeLessThanOrEqual(whole.effects.length + uncertain);
        const steps = names.filter((name) => name.startsWith('step'));
        expect(new Set(steps).size).toBe(steps.length);
      }
    },
  );
});

describe('a flow that waits for people', () => {
  it('T13, G6: continues in another process, with the answers of all, and repeats nothing', async () => {
    const ask = (message: string, ...upstream: readonly string[]) =>
      component('human', { message }, ...upstream);
    const components = {
      begin: begin('note', 'each', 'first'),
      note: component('code', { function: 'note' }),
      first: ask('Pay?'),
      each: component('iterate', {
        items: '["a", "b"]',
        components: { x: begin('g'), g: ask('{{each@item}}?'), y: say('{{g@output}}', 'g') },
      }),
      end: say('{{note@output}}, {{first@output}}, {{each@output}}', 'note', 'first', 'each'),
    };
    const effects: string[] = [];
    const calls = createCallStore(inProcessCalls());
    const memory = inProcessMemory();
    const session = () => {
      const code = { note: () => `noted ${effects.push('note')}` };
      const flow = flowAgent(
        { version: 1, name: 'f', components },
        { code, use: [journal(calls), suspendBelow] },
      );
      return sessions(flow, { memory }).open('s');
    };
    const events = await record(session().stream$('Go'));
    const { suspensions = [], reason } = replyIn(events) ?? {};
    expect([reason, suspensions.map(({ request }) => request)]).toMatchObject([
      'suspended',
      [{ message: 'Pay?' }, { message: 'a?' }, { message: 'b?' }],
    ]);
    expect(events.findLast(({ type }) => type === 'stateChanged')).toMatchObject({
      state: {
        components: { first: 'suspended', each: 'suspended', note: 'done', end: 'pending' },
      },
    });
    const answers = suspensions.map(({ toolCall: { id } }, index) => [id, `answer ${index}`]);
    const end = await session().call(toolResults(Object.fromEntries(answers)));
    expect([end.reason, end.text]).toEqual(['answer', 'noted 1, answer 0, answer 1\n\nanswer 2']);
    expect(effects).toEqual(['note']);
  });
});

const replyIn = (events: readonly AgentEvent[]) => {
  const last = events.at(-1);
  return last?.type === 'postCall' ? last.reply : undefined;
};
