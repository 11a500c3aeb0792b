import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { concat, filter, map, NEVER, of, throwError, timer, VirtualTimeScheduler } from 'rxjs';
import {
  type AgentEvent,
  type Approver,
  type CallOptions,
  createAgent,
  inProcessMemory,
  interruptOn,
  type Message,
  on,
  type Reply,
  requireApproval,
  suspend,
  suspensionsIn,
  tool,
  toolOutput,
  transient,
} from '../index.js';
import type { ToolPolicy } from './types.js';
import { unpaired } from '../values/pairing.js';
import { jsonSchema } from '../schema/index.js';
import { finish, scriptedModel, text, verifyEvents } from '../testing/index.js';
import { sessions } from '../layers/sessions/index.js';

/** What a tool does: how it ends, after how long, and what is decided of it. */
const kinds = {
  works: () => 'worked',
  late: () => timer(7, scheduler()).pipe(map(() => 'late')),
  streams: () => concat(of('a'), timer(2, scheduler()).pipe(map(() => 'b'))),
  throws: () => {
    throw new Error('no');
  },
  throwsOddly: () => {
    throw Object.create(null);
  },
  rejects: () => throwError(() => new Error('no')),
  falters: () => throwError(() => transient('busy')),
  hangs: () => NEVER,
  suspends: () => suspend({ why: 'wait' }),
  passesOn: () => toolOutput({ content: 'passed on', extras: { gift: 1n } }),
} satisfies Record<string, () => unknown>;

let clock = new VirtualTimeScheduler();
const scheduler = () => clock;

const policies: Record<string, ToolPolicy & { readonly approve?: boolean | Approver }> = {
  plain: {},
  exclusive: { exclusive: true },
  denied: { approve: false },
  approvedLate: { approve: () => timer(3, clock).pipe(map(() => true)) },
  neverApproved: { approve: () => NEVER },
  approverFails: { approve: () => throwError(() => new Error('no')) },
  edited: { approve: () => ({ approved: true, input: { n: -1 } }) },
  spoilt: { approve: () => ({ approved: true, input: { n: 'x' } }) },
  retried: { retry: { attempts: 2, backoffMs: 2 } },
  brief: { timeoutMs: 4 },
  deduped: { dedupe: true },
};

const use = fc.record({
  kind: fc.constantFrom(...Object.keys(kinds), 'unknown'),
  policy: fc.constantFrom(...Object.keys(policies)),
  json: fc.constantFrom('{"n":1}', '{"n":1}', '{"n":2}', "{'n':3}", '{"n":"x"}', '{"n":', '[]'),
});
const plan = fc.record({
  turns: fc.array(fc.array(use, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 3 }),
  veto: fc.boolean(),
  options: fc.record({
    parallel: fc.constantFrom(true, false, 2),
    maxToolCalls: fc.constantFrom(Infinity, 0, 2).map((limit) => (limit === Infinity ? 99 : limit)),
    maxToolErrors: fc.integer({ min: 0, max: 2 }),
    toolBackoffMs: fc.constantFrom(0, 2),
  }),
  interruptAt: fc.constantFrom(0, 0, 5),
});

type Plan = typeof plan extends fc.Arbitrary<infer Value> ? Value : never;

let executed: string[] = [];

/** Each kind with each policy. */
const tools = Object.entries(kinds).flatMap(([kind, run]) =>
  Object.entries(policies).map(([policy, { approve = true, ...rules }]) =>
    requireApproval(
      tool({
        name: `${kind}_${policy}`,
        description: 'Does something.',
        input: jsonSchema({
          type: 'object',
          properties: { n: { type: 'number' } },
          required: ['n'],
        }),
        run: ({ n }, { toolCallId }) => {
          executed.push(`${toolCallId} ${n}`);
          return run();
        },
        ...rules,
      }),
      approve,
      { timeoutMs: 10 },
    ),
  ),
);

const noTwos = on(
  'preActing',
  filter(({ toolCall: { input } }) => input['n'] !== 2),
);

/** Plays a plan in virtual time, and tells all that can be seen of it. */
const play = ({ turns, veto, options, interruptAt }: Plan) => {
  clock = new VirtualTimeScheduler();
  executed = [];
  const model = scriptedModel(
    ...turns.map((uses) => [
      ...uses.map(({ kind, policy, json }, index) => ({
        ...({ type: 'toolCall', index, json } as const),
        name: `${kind}_${policy}`,
      })),
      finish(),
    ]),
    [text('done')],
  );
  const memory = inProcessMemory();
  const events: AgentEvent[] = [];
  let reply: Reply | undefined;
  let failure: unknown;
  const call: CallOptions<undefined> = {
    scheduler: clock,
    limits: { ...options, timeouts: { toolMs: 20 } },
    ...(interruptAt > 0 && { use: [interruptOn(timer(interruptAt, clock))] }),
  };
  sessions(createAgent({ model, tools, use: veto ? [noTwos] : [] }), { memory })
    .open('s')
    .stream$('?', call)
    .pipe(verifyEvents())
    .subscribe({
      next: (event) => {
        events.push(event);
        if (event.type === 'postCall') reply = event.reply;
      },
      error: (error: unknown) => (failure = error),
    });
  clock.flush();
  let stored: readonly Message[] = [];
  memory('s')
    .load$()
    .subscribe((messages) => (stored = messages));
  return { events, reply, failure, stored, executed };
};

describe('over random batches of tools, policies, arguments and limits', () => {
  const runs = { numRuns: 150 };
  const check = (judge: (plan: Plan, played: ReturnType<typeof play>) => void): void =>
    fc.assert(
      fc.property(plan, (it) => judge(it, play(it))),
      runs,
    );

  it('I1, I2: every tool call has its one result, in call order, for any siblings', () => {
    check((_, { events, reply, failure, stored }) => {
      expect(failure).toBeUndefined();
      expect(reply).toBeDefined();
      expect(unpaired(stored)).toBeUndefined();
      const results = stored.flatMap((it) =>
        it.role === 'tool' ? it.content.map(({ toolCallId }) => toolCallId) : [],
      );
      expect(results).toEqual(reply?.toolCalls.map(({ toolCallId }) => toolCallId));
      const counts = (type: AgentEvent['type']) => events.filter((it) => it.type === type).length;
      expect(counts('postActing')).toBe(results.length);
      expect(counts('preActing')).toBe(results.length);
      expect(counts('approvalDecided')).toBeLessThanOrEqual(counts('approvalRequested'));
    });
  });

  it('I11, I13: what is in memory is what was run, and what was run was valid and allowed', () => {
    check(({ options, veto }, { reply, stored, executed: all }) => {
      const inputs = new Map(
        stored.flatMap((it) =>
          it.role === 'assistant'
            ? it.content.flatMap((block) =>
                block.type === 'tool_call' ? [[block.id, block] as const] : [],
              )
            : [],
        ),
      );
      for (const entry of all) {
        if (veto) expect(entry).not.toMatch(/ 2$/);
        const [id = '', n = ''] = entry.split(' ');
        expect(inputs.get(id)?.input).toMatchObject({ n: Number(n) });
        expect(inputs.get(id)?.name).not.toMatch(/denied|neverApproved|approverFails|spoilt/);
      }
      const ran = new Set(all.map((entry) => entry.split(' ')[0]));
      expect(ran.size).toBeLessThanOrEqual(options.maxToolCalls);
      const twice = all.length - ran.size;
      const retried = [...ran].filter((id) => inputs.get(id ?? '')?.name.endsWith('retried'));
      expect(twice).toBeLessThanOrEqual(retried.length);
      expect(reply?.toolCalls.every(({ output }) => typeof output === 'string')).toBe(true);
    });
  });

  it('T13: a call is suspended where, and only where, a result is still to come', () => {
    check(({ interruptAt }, { reply, stored }) => {
      const waiting = suspensionsIn(stored);
      if (interruptAt === 0) expect(reply?.reason === 'suspended').toBe(waiting.length > 0);
      if (reply?.reason === 'suspended') expect(reply.suspensions).toEqual(waiting);
    });
  });
});
