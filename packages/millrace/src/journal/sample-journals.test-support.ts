import {
  concat,
  defer,
  endWith,
  filter,
  from,
  ignoreElements,
  lastValueFrom,
  map,
  NEVER,
  of,
  ReplaySubject,
  take,
} from 'rxjs';
import {
  addTools,
  type Agent,
  type AgentEvent,
  approval,
  type Approver,
  createAgent,
  history,
  type InputMessage,
  type Model,
  type ModelChunk,
  type ModelRequest,
  output,
  prepare,
  requireApproval,
  selectTools,
  suspend,
  textBlock,
  textOf,
  tool,
  toolOutput,
} from '../index.js';
import { insertAfter, insertBefore, acting, reasoning } from '../phases/index.js';
import { type LongTermMemory, withLongTermMemory } from '../layers/long-term-memory/index.js';
import { analyseTask, reflect } from '../layers/planning/index.js';
import { retrieve } from '../layers/retrieval/index.js';
import { agentTool } from '../layers/teams/index.js';
import {
  inProcessSessions,
  keepSessions,
  type Session,
  sessions,
} from '../layers/sessions/index.js';
import { jsonSchema } from '../schema/index.js';
import { finish, text, thinking, toolCall } from '../testing/index.js';
import {
  type CallStoreDriver,
  createCallStore,
  fork$,
  inProcessCalls,
  journal,
  type NewRecord,
} from './index.js';

/** What is kept of the calls of a sample: as they were recorded, and as they were seen meanwhile. */
export interface SampleJournal {
  readonly calls: Readonly<Record<string, readonly SampleRecord[]>>;
  /** The state of the session `s`, where a store kept it. */
  readonly state?: unknown;
  /** What the tools did, with their keys. */
  readonly effects: readonly string[];
  /** The events that a subscriber got of each call. */
  readonly seen: Readonly<Record<string, readonly string[]>>;
}

/** A record, with its text parsed. */
export interface SampleRecord extends Omit<NewRecord, 'text'> {
  readonly value: unknown;
}

const picture = {
  type: 'image',
  source: { kind: 'base64', mediaType: 'image/png', data: 'iVBORw0KGgo=' },
} as const;

const paper = {
  type: 'file',
  name: 'a.pdf',
  source: { kind: 'url', url: 'https://example.com/a.pdf' },
} as const;

const usage: ModelChunk = {
  type: 'usage',
  usage: { inputTokens: 10, outputTokens: 2, cacheReadTokens: 3, cacheWriteTokens: 1 },
};

const signature: ModelChunk = { type: 'thinking', text: '', signature: 's1g' };

/** What layers make of the options of a call. */
const cooler = { request: { temperature: 0.2 } };

const fact = {
  id: 'm1',
  text: 'Ann likes tea.',
  kind: 'fact',
  createdAt: 1,
  metadata: {},
} as const;

const pay = (to: string, id: string): ModelChunk => toolCall('pay', { to }, id);
const look = (to: string, id: string): ModelChunk => toolCall('look', { to }, id);

type Turns = readonly (readonly ModelChunk[])[];

/** What the model asks for in the turns before its answer, by the question. */
const turns: Readonly<Record<string, Turns>> = {
  finished: [
    [
      thinking('Well, '),
      signature,
      text('Look'),
      text('i'),
      text('ng.'),
      pay('ann', 'u1'),
      look('bob', 'u2'),
    ],
    [toolCall('photograph', {}, 'u3'), toolCall('pay', { to: 7 }, 'u4'), toolCall('fly', {}, 'u5')],
  ],
  'cut-in-a-tool': [[pay('ann', 'u1')], [pay('bob', 'u2'), look('cat', 'u3'), pay('dan', 'u4')]],
  'cut-in-an-answer': [[pay('ann', 'u1')]],
  interrupted: [[text('I pay.'), pay('ann', 'u1'), pay('bob', 'u2')]],
  failed: [[pay('ann', 'u1')]],
  'below-another': [
    [pay('ann', 'u1'), toolCall('helper', { user_prompt: 'help' }, 'u2')],
    [pay('cat', 'u3')],
  ],
  'cut-below': [[pay('ann', 'u1'), toolCall('helper', { user_prompt: 'help' }, 'u2')]],
  help: [[look('eve', 'h1')], [pay('fay', 'h2')]],
  approved: [
    [
      pay('ann', 'u1'),
      toolCall('refund', { to: 'bob' }, 'u2'),
      toolCall('refund', { to: 'eve' }, 'u3'),
    ],
  ],
  'waiting-for-approval': [[toolCall('refund', { to: 'ann' }, 'u1'), pay('bob', 'u2')]],
  suspended: [[toolCall('sign', {}, 'u1'), pay('ann', 'u2')]],
  steered: [[pay('ann', 'u1')], [pay('bob', 'u2')]],
  kept: [[pay('ann', 'u1'), pay('bob', 'u2')]],
  options: [[pay('ann', 'u1')]],
  typed: [[pay('ann', 'u1')]],
  added: [[pay('ann', 'u1')]],
  informed: [[pay('ann', 'u1')], [pay('bob', 'u2')]],
};

const toInput = jsonSchema({
  type: 'object',
  properties: { to: { type: 'string' } },
  required: ['to'],
});

/** What outlasts the process of a sample. */
export interface SampleWorld {
  /** The question that its agents have the tools for. */
  readonly question: string;
  readonly driver: CallStoreDriver;
  /** Tools that do not end, as `tool to`, and questions whose answer does not. */
  readonly hanging?: readonly string[];
  /** Questions at which the model fails instead of answering. */
  readonly failing?: readonly string[];
  readonly onUncertain?: 'ask' | 'report' | 'rerun';
}

/** A process with the agents of the samples. */
export const sampleProcess = ({
  question: own,
  driver,
  hanging = [],
  failing = [],
  onUncertain,
}: SampleWorld) => {
  const effects: string[] = [];
  const requests: ModelRequest[] = [];
  const asked: string[] = [];
  const hung$ = new ReplaySubject<string>(9);
  const released$ = new ReplaySubject<string>(9);
  const hang = (what: string) => {
    hung$.next(what);
    return released$.pipe(
      filter((it) => it === what),
      take(1),
      ignoreElements(),
    );
  };
  const effect = (name: string, { idempotent = false } = {}) =>
    tool({
      name,
      description: name,
      idempotent,
      input: toInput,
      run: ({ to }, { idempotencyKey }) => {
        effects.push(`${name} ${to} ${idempotencyKey}`);
        const done = `${name} ${to}`;
        return hanging.includes(done) ? concat(hang(done), of(done)) : of(done);
      },
    });
  const approver: Approver = ({ input }) => {
    asked.push(String(input['to']));
    const { to } = input;
    if (hanging.includes(`approve ${String(to)}`)) return hang(`approve ${String(to)}`);
    return to === 'eve' ? { approved: false, reason: 'Not Eve.' } : true;
  };
  const answer = (question: string, request: ModelRequest): readonly ModelChunk[] => {
    if (question === 'typed') return [text('{"n":3}')];
    const results = request.messages.flatMap(({ role, content }) =>
      role === 'tool' ? content.map((it) => textOf(it)) : [],
    );
    const heard = request.messages.flatMap((it) => (it.role === 'user' ? [textOf(it)] : []));
    return [
      text(`Of ${heard.map((it) => it.slice(0, 20)).join(', ')}: `),
      text(`${results.join('; ')}.`),
    ];
  };
  const model: Model = {
    name: 'sample',
    stream$: (request) => {
      requests.push(request);
      const at = request.messages.findLastIndex(
        (it) => it.role === 'user' && Object.hasOwn(turns, textOf(it)),
      );
      const question = request.messages[at];
      const key = question === undefined ? '' : textOf(question);
      const turn = request.messages.slice(at).filter(({ role }) => role === 'tool').length;
      const chunks = turns[key]?.[turn];
      if (chunks !== undefined) return from([...chunks, usage, finish()]);
      if (failing.includes(key)) throw new Error('There is no model.');
      const [first = text(''), ...rest] = answer(key, request);
      return hanging.includes(key)
        ? concat(of(first), hang(key))
        : from([first, ...rest, usage, finish()]);
    },
  };
  const tools = [
    effect('pay'),
    effect('look', { idempotent: true }),
    requireApproval(effect('refund'), approver),
    tool({
      name: 'sign',
      description: 'Signs.',
      run: () => suspend({ paper: 'A', pages: [1, 2] }),
    }),
    tool({
      name: 'photograph',
      description: 'Takes a picture.',
      run: () => toolOutput({ content: [textBlock('A cat.'), picture], details: { by: 'head' } }),
    }),
  ];
  const toolsFor = (question: string) =>
    tools.filter(({ name }) =>
      turns[question]?.flat().some((it) => it.type === 'toolCall' && it.name === name),
    );
  const store = createCallStore(driver);
  const durable = journal(store, onUncertain === undefined ? {} : { onUncertain });
  const helper = createAgent({ name: 'helper', model, tools: toolsFor('help') });
  const asksHelper = own === 'below-another' || own === 'cut-below';
  const agent = createAgent({
    name: 'sample',
    model,
    tools: [
      ...(own === 'added' ? [] : toolsFor(own)),
      ...(asksHelper ? [agentTool(helper, { description: 'Helps.' })] : []),
    ],
    use: [durable],
  });
  const look$ = <T>(what: string, found: T) => defer(() => (asked.push(what), of(found)));
  const memory: LongTermMemory = {
    record$: () => look$('record', []),
    recall$: (scope) => look$('recall', [{ ...fact, scope }]),
    forget$: () => look$('forget', 0),
  };
  const retriever = {
    retrieve$: () => look$('retrieve', [{ source: 'a.md', text: 'Bob is paid on Fridays.' }]),
  };
  const aside: Model = {
    name: 'aside',
    stream$: () => look$('aside', text('A thought.')).pipe(endWith(usage, finish())),
  };
  const informed = createAgent(
    withLongTermMemory(
      {
        name: 'sample',
        model,
        tools: toolsFor('cut-in-a-tool'),
        use: [
          durable,
          prepare(map((it) => ({ ...it, options: { ...it.options, ...cooler } }))),
          retrieve(retriever),
          selectTools({ select: () => look$('select', ['pay']), maxTools: 1 }),
          insertBefore(reasoning, analyseTask({ model: aside })),
          insertAfter(acting, reflect({ model: aside })),
        ],
      },
      { memory, scope: () => ({ userId: 'ann' }) },
    ),
  );
  return {
    added: toolsFor('added'),
    agent,
    approver,
    asked,
    durable,
    effects,
    hung$,
    informed,
    model,
    released$,
    requests,
    store,
  };
};

/** What the answers of `typed` must be. */
export const typed = output(
  jsonSchema({ type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }),
);

export const earlier: readonly InputMessage[] = [
  { role: 'user', content: [textBlock('I am Ann.')], name: 'Ann' },
  { role: 'assistant', content: [textBlock('Hello Ann.')] },
];

interface Recording {
  readonly process: ReturnType<typeof sampleProcess>;
  readonly agent: Agent;
  readonly session: Session;
  /** Follows a call, and resolves at its end. */
  readonly ends: (callId: string, events$: ReturnType<Agent['stream$']>) => Promise<void>;
  /** Follows a call until its process ends, which it does when all of these hang. */
  readonly dies: (
    callId: string,
    events$: ReturnType<Agent['stream$']>,
    ...hanging: readonly string[]
  ) => Promise<void>;
}

const nextTurn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve));

const recorded = async (
  question: string,
  world: Omit<SampleWorld, 'driver' | 'question'>,
  use: (recording: Recording) => unknown,
): Promise<SampleJournal> => {
  const driver = inProcessCalls();
  let isDead = false;
  // What a process would write when it is dead is lost.
  const claim$: CallStoreDriver['claim$'] = (callId) =>
    driver.claim$(callId).pipe(
      map(({ append$ }) => ({
        append$: (records) => defer(() => (isDead ? NEVER : append$(records))),
      })),
    );
  const process = sampleProcess({ ...world, question, driver: { ...driver, claim$ } });
  const seen: Record<string, string[]> = {};
  const see = (callId: string) => (event: AgentEvent) =>
    void (seen[callId] ??= []).push(`${event.seq} ${event.type}`);
  const state = await use({
    process,
    agent: process.agent,
    session: sessions(process.agent).open('s'),
    ends: (callId, events$) =>
      new Promise((resolve) => {
        events$.subscribe({ next: see(callId), error: () => resolve(), complete: resolve });
      }),
    dies: async (callId, events$, ...hanging) => {
      const subscription = events$.subscribe({ next: see(callId), error: () => undefined });
      await lastValueFrom(process.hung$.pipe(take(hanging.length)));
      await nextTurn();
      isDead = true;
      subscription.unsubscribe();
    },
  });
  return {
    calls: await recordsIn(driver),
    ...(state !== undefined && { state }),
    effects: process.effects,
    seen,
  };
};

const recordsIn = async (driver: CallStoreDriver): Promise<SampleJournal['calls']> => {
  const calls: Record<string, readonly SampleRecord[]> = {};
  const batches = await lastValueFrom(driver.list$(), { defaultValue: [] });
  for (const { callId } of [...batches].sort((a, b) => (a.callId < b.callId ? -1 : 1))) {
    const records = await lastValueFrom(driver.read$(callId));
    calls[callId] = records.map(({ kind, name, seq, text }) => ({
      kind,
      name,
      seq,
      value: JSON.parse(text),
    }));
  }
  return calls;
};

/** A session in a store that saved it behind the first call, and not behind the second. */
const keptSample = (letter: string) =>
  recorded(
    'kept',
    { hanging: ['pay bob'] },
    async ({ agent, dies, ends, process: { durable } }) => {
      const states = inProcessSessions();
      const session = await keepSessions(agent, states, { journal: durable }).open('s');
      await ends('a', session.stream$(letter, { callId: 'a' }));
      await dies('b', session.stream$('kept', { callId: 'b' }), 'pay bob');
      return (await lastValueFrom(states.load$('s')))?.state;
    },
  );

/** Calls as processes leave them behind, by what they show. */
const samples: Readonly<Record<string, (name: string) => Promise<SampleJournal>>> = {
  finished: (name) =>
    recorded(name, {}, ({ agent, ends }) =>
      ends('c', agent.stream$([textBlock('finished'), picture, paper], { callId: 'c' })),
    ),
  'cut-in-a-tool': (name) =>
    recorded(name, { hanging: ['pay bob', 'look cat'] }, ({ agent, dies }) =>
      dies('c', agent.stream$('cut-in-a-tool', { callId: 'c' }), 'pay bob', 'look cat'),
    ),
  'cut-in-an-answer': (name) =>
    recorded(name, { hanging: ['cut-in-an-answer'] }, ({ agent, dies }) =>
      dies('c', agent.stream$('cut-in-an-answer', { callId: 'c' }), 'cut-in-an-answer'),
    ),
  interrupted: (name) =>
    recorded(name, { hanging: ['pay bob'] }, async ({ session, ends, process }) => {
      const end = ends('c', session.stream$('interrupted', { callId: 'c' }));
      await lastValueFrom(process.hung$.pipe(take(1)));
      session.interrupt('Never mind.');
      await end;
      return session.saveState();
    }),
  failed: (name) =>
    recorded(name, { failing: ['failed'] }, ({ agent, ends }) =>
      ends('c', agent.stream$('failed', { callId: 'c' })),
    ),
  'below-another': (name) =>
    recorded(name, {}, async ({ agent, ends, process }) => {
      await ends('c', agent.stream$('below-another', { callId: 'c' }));
      await lastValueFrom(fork$(process.store, 'c', { at: '2', callId: 'f' }));
    }),
  'cut-below': (name) =>
    recorded(name, { hanging: ['pay fay'] }, ({ agent, dies }) =>
      dies('c', agent.stream$('cut-below', { callId: 'c' }), 'pay fay'),
    ),
  approved: (name) =>
    recorded(name, { hanging: ['refund bob'] }, ({ agent, dies, process: { approver } }) =>
      dies(
        'c',
        agent.stream$('approved', { callId: 'c', use: [approval(approver)] }),
        'refund bob',
      ),
    ),
  'waiting-for-approval': (name) =>
    recorded(name, { hanging: ['approve ann'] }, ({ agent, dies }) =>
      dies('c', agent.stream$('waiting-for-approval', { callId: 'c' }), 'approve ann'),
    ),
  suspended: (name) =>
    recorded(name, {}, async ({ session, ends }) => {
      await ends('c', session.stream$(name, { callId: 'c' }));
      return session.saveState();
    }),
  steered: (name) =>
    recorded(name, { hanging: ['pay ann', 'pay bob'] }, async ({ session, dies, process }) => {
      const died = dies('c', session.stream$('steered', { callId: 'c' }), 'pay ann', 'pay bob');
      await lastValueFrom(process.hung$.pipe(take(1)));
      void session.steer('And the weather?');
      process.released$.next('pay ann');
      await died;
    }),
  kept: () => keptSample('A letter.'),
  // A history that the calls of a session share in the store.
  'kept-long': () => keptSample('A long letter. '.repeat(600)),
  options: (name) =>
    recorded(name, { hanging: ['pay ann'] }, ({ agent, dies }) =>
      dies(
        'c',
        agent.stream$('options', {
          callId: 'c',
          request: { temperature: 0.3, maxTokens: 500 },
          limits: { maxIterations: 5, parallel: 2, timeouts: { toolMs: 60_000 } },
          metadata: { tenant: 'a' },
          use: [history(earlier)],
        }),
        'pay ann',
      ),
    ),
  typed: (name) =>
    recorded(name, { hanging: ['pay ann'] }, ({ agent, dies }) =>
      dies('c', agent.stream$('typed', { callId: 'c', use: [typed] }), 'pay ann'),
    ),
  added: (name) =>
    recorded(name, { hanging: ['pay ann'] }, ({ agent, dies, process: { added } }) =>
      dies('c', agent.stream$(name, { callId: 'c', use: [addTools(...added)] }), 'pay ann'),
    ),
  // What was found, chosen and thought beside the loop.
  informed: (name) =>
    recorded(name, { hanging: ['pay bob'] }, ({ dies, process: { informed } }) =>
      dies('c', informed.stream$(name, { callId: 'c' }), 'pay bob'),
    ),
};

/** Makes the samples: always the same, with clocks that stand still and counted ids. */
export const sampleJournals: Readonly<Record<string, () => Promise<SampleJournal>>> =
  Object.fromEntries(
    Object.entries(samples).map(([name, make]) => [
      name,
      async () => {
        const { now } = Date;
        const { randomUUID } = crypto;
        let made = 0;
        try {
          Date.now = () => 1_800_000_000_000;
          crypto.randomUUID = () => {
            made += 1;
            return `${String(made).padStart(8, '0')}-0000-4000-8000-000000000000`;
          };
          return await make(name);
        } finally {
          Date.now = now;
          crypto.randomUUID = randomUUID;
        }
      },
    ]),
  );

/** A sample as the corpus has it: a line for each record. */
export const sampleText = ({ calls, ...more }: SampleJournal): string => {
  const lines = (list: readonly unknown[]) =>
    list.map((it) => `\n    ${JSON.stringify(it)}`).join();
  const fields = Object.entries(more).map(
    ([name, value]) => `\n  ${JSON.stringify(name)}: ${JSON.stringify(value)}`,
  );
  const logs = Object.entries(calls).map(
    ([callId, records]) => `\n  ${JSON.stringify(callId)}: [${lines(records)}\n  ]`,
  );
  return `{${fields.join()},\n"calls": {${logs.join()}\n}}\n`;
};
