import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, suspensionsIn, tool } from 'millrace';
import { suspendBelow } from 'millrace/journal';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { AsyncSubject, firstValueFrom, of, ReplaySubject } from 'rxjs';
import {
  type Answer,
  below,
  type Client,
  closeServers,
  type Kind,
  kinds,
  protocols,
  type Server,
  serving,
  stored,
  storeOf,
  waiting,
} from './results-of-clients.test-support.js';

afterEach(closeServers);

const waitingKinds: readonly (readonly [string, Kind])[] = [
  ...Object.entries(kinds).filter(
    ([, { from, tools }]) => from === 'client' && tools === undefined,
  ),
  ['a tool', { from: 'client', tools: () => [waiting()], asks: [toolCall('wait', {}, 'w')] }],
  [
    'a tool of a sub-agent',
    {
      from: 'client',
      tools: () => [below('client')],
      asks: [toolCall('desk', { user_prompt: 'Do it.' }, 'd')],
    },
  ],
];

/** A tool with an effect, which runs after the result. */
const paying = () => {
  const paid: unknown[] = [];
  const begun$ = new ReplaySubject<void>(1);
  const go$ = new AsyncSubject<string>();
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    run: () => {
      paid.push('once');
      begun$.next();
      return go$;
    },
  });
  const go = (): void => {
    go$.next('Paid.');
    go$.complete();
  };
  return { paid, pay, begun: () => firstValueFrom(begun$), go };
};

/** Servers of one store, as processes are, whose agent waits for a result, and then pays. */
const place = async (client: Client, kind: Kind) => {
  const store = storeOf();
  const { pay, ...effect } = paying();
  const start = (): Server => {
    const answer: ScriptedAnswer = ({ messages }) => {
      const isAsked = messages.at(-1)?.role === 'user';
      const hasPaid = JSON.stringify(messages).includes('"name":"pay"');
      const chunks = isAsked
        ? kind.asks
        : [hasPaid ? text('It is done.') : toolCall('pay', {}, 'y')];
      return of(...chunks, { type: 'finish', finish: 'stop' } as const);
    };
    const model = scriptedModel(...Array<ScriptedAnswer>(9).fill(answer));
    return serving(
      store,
      createAgent({
        name: 'h',
        model,
        tools: [...(kind.tools?.() ?? []), pay],
        use: [suspendBelow],
      }),
    );
  };
  const server = start();
  const asked = await client.ask(server);
  const session = client.sessionOf(asked);
  const [waits] = suspensionsIn(await stored(store, session));
  const bring = (to: Server, value = 'red'): Promise<Answer> =>
    client.bring(to, waits?.toolCall.id ?? '', asked, value);
  const messages = () => stored(store, session);
  return { ...effect, start, server, bring, messages };
};

type Place = Awaited<ReturnType<typeof place>>;

/** When the result comes again, and who gets it: the answers to both requests. */
const times: Readonly<Record<string, (at: Place, value?: string) => Promise<readonly Answer[]>>> = {
  'at once': ({ server, bring, go }, value) => {
    go();
    return Promise.all([bring(server), bring(server, value)]);
  },
  'while its call runs': async ({ server, bring, begun, go }, value) => {
    const first = bring(server);
    await begun();
    const again = bring(server, value);
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    go();
    return Promise.all([first, again]);
  },
  'after its end': async ({ server, bring, go }, value) => {
    go();
    return [await bring(server), await bring(server, value)];
  },
  'in another process, at once': ({ server, start, bring, go }, value) => {
    const other = start();
    go();
    return Promise.all([bring(server), bring(other, value)]);
  },
  'in another process, while its call runs': async ({ server, start, bring, begun, go }, value) => {
    const first = bring(server);
    await begun();
    const again = bring(start(), value);
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    go();
    return Promise.all([first, again]);
  },
  'in another process, after its end': async ({ server, start, bring, go }, value) => {
    go();
    return [await bring(server), await bring(start(), value)];
  },
};

const rows = Object.entries(protocols).flatMap(([protocol, client]) =>
  waitingKinds.flatMap(([what, kind]) =>
    Object.entries(times).map(([when, both]) => ({ protocol, what, when, client, kind, both })),
  ),
);

describe('I22: a result that a client brings again', () => {
  it.each(rows)('$protocol: $what, $when: is one call', async ({ client, kind, both }) => {
    const at = await place(client, kind);
    const answers = await both(at);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    for (const { body } of answers) expect(body).toContain('It is done.');
    expect(at.paid).toEqual(['once']);
    expect(suspensionsIn(await at.messages())).toEqual([]);
  });

  it.each(rows)(
    '$protocol: $what, $when, with another value: is a 409, and the first one counts',
    async ({ client, kind, both }) => {
      const at = await place(client, kind);
      const answers = await both(at, 'blue');
      const refused = answers.filter(({ status }) => status === 409);
      expect(refused.map(({ body }) => body)).toEqual([
        expect.stringContaining('This has already been answered. Load the conversation again.'),
      ]);
      expect(answers.filter(({ status }) => status === 200)).toEqual([
        expect.objectContaining({ body: expect.stringContaining('It is done.') }),
      ]);
      expect(at.paid).toEqual(['once']);
    },
  );

  it.each(rows.filter(({ when }) => when === 'at once'))(
    '$protocol: $what, after its process has ended: pays once, and the outcome is asked for',
    async ({ client, kind }) => {
      const { server, start, bring, begun, paid, messages } = await place(client, kind);
      const first = bring(server);
      await begun();
      await server.server.close({ timeoutMs: 0 });
      await first;
      const again = await bring(start());
      expect([200, 409]).toContain(again.status);
      expect(paid).toEqual(['once']);
      expect(suspensionsIn(await messages()).map(({ toolCall: { name } }) => name)).toEqual([
        'pay',
      ]);
    },
  );
});
