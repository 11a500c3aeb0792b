import { describe, expect, it } from '@jest/globals';
import {
  concatMap,
  delay,
  firstValueFrom,
  map,
  NEVER,
  of,
  Subject,
  take,
  timer,
  VirtualTimeScheduler,
} from 'rxjs';
import {
  type AgentOptions,
  createAgent,
  inProcessMemory,
  interruptOn,
  isMillraceError,
  type MemoryFactory,
  type Model,
  type Reply,
  textOf,
  tool,
} from '../index.js';
import { kept$ } from '../values/memory.js';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from '../testing/index.js';
import { dyingAfter, recordsOf, runUntil, stepsIn } from './dying-driver.test-support.js';
import { type CallStoreDriver, createCallStore, inProcessCalls, journal } from './index.js';
import { sessions } from '../layers/sessions/index.js';
import { journalIn } from './stored-calls.test-support.js';

/** Pays in its first turn, and in its second; then it says so. */
const payer = (driver: CallStoreDriver, options: Partial<AgentOptions> = {}) => {
  const paid: string[] = [];
  const turn: ScriptedAnswer = ({ messages }) =>
    messages.filter(({ role }) => role === 'tool').length < 2 ? [toolCall('pay')] : [text('Paid.')];
  const model = scriptedModel(...Array.from({ length: 9 }, () => turn));
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    run: (_, { idempotencyKey }) => {
      paid.push(idempotencyKey);
      return 'Paid.';
    },
  });
  const durable = journal(createCallStore(driver));
  return { agent: createAgent({ model, tools: [pay], use: [durable], ...options }), model, paid };
};

const inSession = (driver: CallStoreDriver, memory = inProcessMemory()) =>
  sessions(payer(driver).agent, { memory }).open('s').call$('Pay.', { callId: 'c' });

/** A store in which the call `c` was broken off right behind a step. */
const brokenOffBehind = async (step: string, memory: MemoryFactory = inProcessMemory()) => {
  const store = inProcessCalls();
  const records = await recordsOf((driver) => inSession(driver), step);
  runUntil(store, records, (dying) => inSession(dying, memory));
  return store;
};

const never: Model = { name: 'never', stream$: () => NEVER };

const messagesIn = (memory: MemoryFactory): Promise<readonly string[]> =>
  firstValueFrom(
    kept$(memory('s')).pipe(
      map(({ entries }) => entries.map(({ message }) => `${message.role}: ${textOf(message)}`)),
    ),
  );

describe('what comes from outside', () => {
  it('S6: another call of the same id leaves no trace in the journal of the first', async () => {
    const store = await brokenOffBehind('1/0');
    const records = async () => (await firstValueFrom(store.read$('c'))).length;
    const before = await records();
    const { agent } = payer(store);
    await expect(sessions(agent).open('s').call('Again.', { callId: 'c' })).rejects.toMatchObject({
      code: 'conflict',
    });
    await expect(agent.call([], { callId: 'c' })).rejects.toMatchObject({ code: 'conflict' });
    expect(await records()).toBe(before);
    expect((await journalIn(store).resume(sessions(agent).open('s'), 'c')).reason).toBe('answer');
  });

  it('S6, S1: an interrupt that is there from the beginning comes after it', async () => {
    const store = inProcessCalls();
    const reply = await payer(store).agent.call('Pay.', {
      callId: 'c',
      use: [interruptOn(of('No.'))],
    });
    expect(textOf(reply)).toBe('No.');
    expect((await stepsIn(store)).slice(0, 2)).toEqual(['call', 'interrupt']);
  });

  it.each(['interrupt', 'switch'] as const)(
    'S6, S3: %s of a call that waits to be resumed loses nothing of what it had done',
    async (how) => {
      const memory = inProcessMemory();
      const store = await brokenOffBehind('1/0', memory);
      const { agent, model, paid } = payer(store);
      const session = sessions(agent, { memory }).open('s');
      const end$ = new Subject<string>();
      session.call$('Wait.', { model: never, use: [interruptOn(end$)] }).subscribe();
      let reply: Reply | undefined;
      journalIn(store)
        .resume$(session, 'c')
        .subscribe((it) => (reply = it));
      if (how === 'interrupt') session.interrupt('No.', 'c');
      else session.call$('Go.', { onBusy: 'switch', use: [interruptOn(of('Gone.'))] }).subscribe();
      end$.next('Over.');
      expect(reply).toMatchObject({
        reason: 'interrupted',
        toolCalls: [{ name: 'pay', output: 'Paid.' }],
      });
      expect(paid).toEqual([]);
      expect(model.requests).toEqual([]);
      expect((await messagesIn(memory)).filter((it) => it !== 'assistant: ')).toEqual([
        'user: Pay.',
        'tool: ',
        'user: Wait.',
        `assistant: ${how === 'interrupt' ? 'Over.' : 'Interrupted.'}`,
        `assistant: ${how === 'interrupt' ? 'No.' : 'Interrupted.'}`,
        ...(how === 'interrupt' ? [] : ['user: Go.', 'assistant: Gone.']),
      ]);
    },
  );

  it('S6, S3: a call that had to give way while it waited does not run after all', async () => {
    for (let cut = 1; cut < 30; cut += 1) {
      const store = inProcessCalls();
      const { driver, end } = dyingAfter(store, cut);
      const session = sessions(payer(driver, { model: never }).agent).open('s');
      session.call$('Wait.', { callId: 'a' }).subscribe({ error: () => undefined });
      session.call$('Pay.', { callId: 'c', onBusy: 'queue' }).subscribe({ error: () => undefined });
      session
        .call$('Stop.', { callId: 'b', onBusy: 'switch' })
        .subscribe({ error: () => undefined });
      end();
      if (!(await stepsIn(store)).includes('seat')) continue;
      const after = payer(store);
      expect(await journalIn(store).resume(sessions(after.agent).open('s'), 'c')).toMatchObject({
        reason: 'interrupted',
        toolCalls: [],
      });
      expect(after.model.requests).toEqual([]);
      return;
    }
    throw new Error('It was never written down.');
  });

  it('S6, S1: nothing runs again beside what was done when an interrupt came', async () => {
    const stop$ = new Subject<void>();
    const ran: string[] = [];
    const tools = (isAgain: boolean) => [
      tool({
        name: 'slow',
        description: 'Never ends.',
        idempotent: true,
        run: () => {
          ran.push(isAgain ? 'again' : 'slow');
          return NEVER;
        },
      }),
      tool({ name: 'fast', description: 'Ends.', run: () => 'Done.' }),
    ];
    const turn: ScriptedAnswer = () => [toolCall('slow'), toolCall('fast')];
    const agentIn = (driver: CallStoreDriver, isAgain: boolean) =>
      createAgent({
        model: scriptedModel(turn, turn),
        tools: tools(isAgain),
        use: [journal(createCallStore(driver))],
      });
    const run$ = (driver: CallStoreDriver) =>
      agentIn(driver, false).call$('?', { callId: 'c', use: [interruptOn(stop$)] });
    for (let cut = 1; cut < 30; cut += 1) {
      const store = inProcessCalls();
      const { driver, end } = dyingAfter(store, cut);
      run$(driver).subscribe({ error: () => undefined });
      stop$.next();
      end();
      const steps = await stepsIn(store);
      if (!steps.includes('interrupt') || steps.includes('1/0')) continue;
      expect(steps).toContain('1/1');
      expect((await journalIn(store).resume(agentIn(store, true), 'c')).reason).toBe('interrupted');
      expect(ran).not.toContain('again');
      return;
    }
    throw new Error('It was never cut there.');
  });

  it.each(['2', 'reply'] as const)(
    'S6, S3: what is said while a call goes through what it did up to %s is not said in the past',
    async (step) => {
      const kept = inProcessMemory();
      const store = await brokenOffBehind(step, kept);
      const open$ = new Subject<void>();
      /** It takes its time. */
      const slow: MemoryFactory = (id) => {
        const memory = kept(id);
        return {
          ...memory,
          append$: (messages) =>
            open$.pipe(
              take(1),
              concatMap(() => memory.append$(messages)),
            ),
        };
      };
      const { agent } = payer(store);
      const session = sessions(agent, { memory: slow }).open('s');
      let reply: Reply | undefined;
      journalIn(store)
        .resume$(session, 'c')
        .subscribe((it) => (reply = it));
      const said = session.steer('By the way.');
      session.interrupt('Stop.');
      for (let turn = 0; turn < 9; turn += 1) open$.next();
      const outcome = await said;
      if (step === 'reply') {
        expect(reply?.reason).toBe('answer');
        expect(outcome).toEqual({ status: 'notDelivered', why: 'ended' });
        expect(await messagesIn(kept)).toEqual([
          'user: Pay.',
          'assistant: ',
          'tool: ',
          'assistant: ',
          'tool: ',
          'assistant: Paid.',
        ]);
      } else {
        expect(reply?.reason).toBe('interrupted');
        expect(reply?.toolCalls.map(({ isError }) => isError)).toEqual([false, true]);
      }
    },
  );

  it.each([
    ['queue', ['1: answer', '2: answer', '3: answer'], ['1', '2', '3']],
    ['reject', ['1: answer', '2: busy', '3: busy'], ['1']],
    ['switch', ['1: interrupted', '2: interrupted', '3: answer'], ['1', '2', '3']],
    ['steer', ['1: answer', '2: answer', '3: answer'], ['1', '2', '3']],
  ] as const)(
    'S1, S3: %s holds for the order in which calls are made, however long their journals take to open',
    (onBusy, expected, asked) => {
      const orders = [
        [3, 2, 1],
        [2, 3, 1],
        [1, 5, 0],
        [5, 1, 1],
      ];
      for (const delays of orders) {
        const time = new VirtualTimeScheduler();
        const store = inProcessCalls();
        let claims = 0;
        const driver: CallStoreDriver = {
          ...store,
          claim$: (callId) =>
            timer(delays[claims++] ?? 0, time).pipe(concatMap(() => store.claim$(callId))),
        };
        const heard: string[] = [];
        const model: Model = {
          name: 'echo',
          stream$: ({ messages }) => {
            heard.push(...messages.filter(({ role }) => role === 'user').map(textOf));
            return of(text('Yes.'), finish()).pipe(delay(10, time));
          },
        };
        const agent = createAgent({ model, use: [journal(createCallStore(driver))] });
        const session = sessions(agent).open('s');
        const ended: string[] = [];
        for (const said of ['1', '2', '3']) {
          session.call$(said, { onBusy, scheduler: time }).subscribe({
            next: ({ reason }) => ended.push(`${said}: ${reason}`),
            error: (error: unknown) =>
              ended.push(`${said}: ${isMillraceError(error) ? error.code : String(error)}`),
          });
        }
        time.flush();
        expect(onBusy === 'reject' ? ended.sort() : ended).toEqual(expected);
        expect([...new Set(heard)]).toEqual(asked);
      }
    },
  );
});
