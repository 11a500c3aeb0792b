import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { HttpAgent, type Message } from '@ag-ui/client';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import OpenAI from 'openai';
import { accumulateResponse } from 'openai/lib/responses/ResponseAccumulator';
import type { Response as OpenAiResponse } from 'openai/resources/responses/responses';
import { BehaviorSubject, filter, firstValueFrom } from 'rxjs';
import { visits } from './browser.test-support.js';

/** What the model and the tool of a server do. */
interface Life {
  /** The beginning of its text, and the number of the pieces that follow. Default: endless. */
  readonly says: string;
  readonly pieces?: number;
  readonly thinks?: boolean;
  /** Calls a tool before it answers. */
  readonly looks?: boolean;
  /** The tool never ends. */
  readonly hangs?: boolean;
  /** The answer ends once a line arrives at the standard input. */
  readonly ends?: boolean;
}

const script = `
import { createAgent, tool } from 'millrace';
import { toolCall } from 'millrace/testing';
import { chatPage } from '@millrace/chat-page';
import { agUi } from '@millrace/server/ag-ui';
import { serve } from '@millrace/server/node';
import { openAi } from '@millrace/server/openai';
import { openFiles } from '@millrace/store';
import { concat, fromEvent, interval, map, NEVER, of, take } from 'rxjs';

const [, directory, port, plan] = process.argv;
const { says, pieces = Infinity, thinks, looks, hangs, ends } = JSON.parse(plan);
const finish = { type: 'finish', finish: 'stop' };
const line$ = fromEvent(process.stdin, 'data').pipe(take(1), map(() => finish));
const piece$ = interval(2).pipe(
  take(pieces),
  map((at) => ({ type: thinks ? 'thinking' : 'text', text: says + ' ' + (at + 1) + '. ' })),
);
const model = {
  name: 'told',
  stream$: ({ messages }) =>
    looks && messages.every(({ role }) => role !== 'tool')
      ? of({ type: 'text', text: 'I look.' }, toolCall('look', {}, 'look-1'), finish)
      : concat(piece$, ends ? line$ : NEVER),
};
const look = tool({
  name: 'look',
  description: 'Looks.',
  idempotent: true,
  run: () => (hangs ? NEVER : 'Found it.'),
});
const protocols = [chatPage(), agUi(), openAi()];
const options = { port: Number(port), store: openFiles(directory), protocols };
const agent = createAgent({ name: 'Helper', model, tools: looks ? [look] : [] });
serve(agent, options).subscribe(({ url }) => console.log(url));
`;

const children: ChildProcess[] = [];

const start = async (directory: string, port: string, life: Life) => {
  const parameters = ['--input-type=module', '-e', script, directory, port, JSON.stringify(life)];
  const child = spawn(process.execPath, parameters, {
    cwd: import.meta.dirname,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  children.push(child);
  const exited = once(child, 'exit');
  const line = once(createInterface(child.stdout), 'line');
  const failed = exited.then(() => Promise.reject(new Error('It did not start.')));
  const [url] = (await Promise.race([line, failed])) as [string];
  return {
    url,
    end: () => child.stdin.write('\n'),
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
};

/** What a client shows of a call, as one string. */
const follower = () => {
  const shown$ = new BehaviorSubject('');
  return {
    show: (shown: unknown): void => {
      shown$.next(JSON.stringify(shown));
    },
    shown: (): string => shown$.value,
    sees: (text: string) => firstValueFrom(shown$.pipe(filter((shown) => shown.includes(text)))),
  };
};

/** The client of AG-UI, with its verifier. It connects again after the server was killed, and keeps its messages. */
const agUiClient = (url: string, threadId: string) => {
  const { show, ...follows } = follower();
  const agent = new HttpAgent({ url: `${url}/api/ag-ui/connect`, threadId, fetch: fetchToLoss });
  const errors: string[] = [];
  let hasEnded = false;
  agent.subscribe({
    onRunStartedEvent: () => {
      hasEnded = false;
      show(began);
    },
    onRunFinishedEvent: () => {
      hasEnded = true;
    },
    onMessagesChanged: ({ messages }) => {
      show(messages);
    },
    onRunErrorEvent: ({ event }) => void errors.push(event.message),
    onRunFailed: ({ error }) => void errors.push(String(error)),
  });
  return {
    ...follows,
    messages: () => agent.messages.filter(isNoThought).map(({ role, content }) => [role, content]),
    /** Follows the call to its end. Returns the errors. */
    connect: async () => {
      await agent.runAgent().catch(() => undefined);
      return hasEnded ? errors.splice(0) : ['It has not ended.'];
    },
  };
};

/** Thoughts are left out: the client keeps those that a snapshot of the messages lacks. */
const isNoThought = ({ role }: Message): boolean => role !== 'reasoning';

/** Ends a body where its connection is lost: if it errors, the client of AG-UI leaves a rejection that no one can handle. */
const fetchToLoss = async (url: string, init: RequestInit) => {
  const { body, status, headers } = await fetch(url, init);
  const reader = body?.getReader();
  const untilLost = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const next = await reader?.read().catch(() => undefined);
      if (next?.value === undefined) controller.close();
      else controller.enqueue(next.value);
    },
  });
  return new Response(untilLost, { status, headers });
};

/** The SDK of OpenAI. It reads the response again after the last event that it has, and continues its snapshot. */
const openAiClient = (url: string, callId: string) => {
  const { show, ...follows } = follower();
  const { responses } = new OpenAI({ apiKey: 'none', baseURL: `${url}/v1` });
  const response_id = `resp_${callId}`;
  let snapshot: OpenAiResponse | undefined;
  let last: number | undefined;
  const after = () => (last === undefined ? {} : { starting_after: last });
  const read = async () => {
    for await (const event of await responses.retrieve(response_id, { stream: true, ...after() })) {
      expect(event.sequence_number).toBeGreaterThan(last ?? -1);
      last = event.sequence_number;
      snapshot = accumulateResponse(event, snapshot);
      show([began, snapshot.output]);
    }
  };
  return {
    ...follows,
    /** The output of the snapshot. */
    output: () => outputOf(snapshot),
    /** Follows the call to its end. Returns the errors. */
    connect: () =>
      read().then(
        () => [],
        (error: unknown) => [String(error)],
      ),
    /** The same with the helper of the SDK, which has no snapshot from before. */
    finalOutput: async () =>
      outputOf(await responses.stream({ response_id, ...after() }).finalResponse()),
  };
};

const began = 'began';

const outputOf = (response: OpenAiResponse | undefined) =>
  response?.output.map((item) => {
    if (item.type === 'mcp_call') return `${item.name}: ${item.output}`;
    return item.type === 'message'
      ? item.content.map((part) => (part.type === 'output_text' ? part.text : '')).join('')
      : item.type;
  });

const { visit } = visits();
let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-page-'));
});
afterEach(async () => {
  children.splice(0).forEach((child) => child.kill('SIGKILL'));
  await rm(directory, { recursive: true, force: true });
});

const says = 'Broken';
const looks = true;

/** When the server is killed, and what it does until then. */
const moments: readonly { readonly moment: string; readonly lives: readonly [Life, ...Life[]] }[] =
  [
    { moment: 'before its first word', lives: [{ says, pieces: 0 }] },
    { moment: 'after 1 delta', lives: [{ says, pieces: 1 }] },
    { moment: 'after 3 deltas', lives: [{ says, pieces: 3 }] },
    { moment: 'after 30 deltas', lives: [{ says, pieces: 30 }] },
    { moment: 'after 200 deltas', lives: [{ says, pieces: 200 }] },
    { moment: 'while it says more', lives: [{ says }] },
    { moment: 'while it thinks', lives: [{ says, pieces: 3, thinks: true }] },
    { moment: 'during a tool', lives: [{ says, looks, hangs: true }] },
    { moment: 'in the message after a tool', lives: [{ says, looks, pieces: 3 }] },
    {
      moment: 'twice',
      lives: [
        { says, pieces: 3 },
        { says: 'Broken again', pieces: 3 },
      ],
    },
  ];

describe('a call that the page and clients of AG-UI and OpenAI watch when its server is killed', () => {
  it.each(moments)('$moment ends with one message on each of them', async ({ moment, lives }) => {
    const name = moment.replaceAll(' ', '-');
    let server = await start(directory, '0', lives[0]);
    const { url } = server;
    const { port } = new URL(url);
    const { page, ask, sees, answers, isAnswered, screenshot } = await visit(url);
    const accepted = page.waitForResponse(
      (response) => response.request().method() === 'POST' && /\/api\/chat\?/u.test(response.url()),
    );
    await ask('A story?');
    await accepted;
    const chatId = new URL(page.url()).hash.slice(1);
    const history = async () =>
      (await (await fetch(`${url}/api/chat/${chatId}`)).json()) as History;
    const { running = '' } = await history();
    const agUi = agUiClient(url, chatId);
    const openAi = openAiClient(url, running);
    const connect = () => Promise.all([agUi.connect(), openAi.connect()]);
    const everyoneSees = async ({ says, pieces = 20, thinks, hangs }: Life) => {
      if (thinks === true) await page.getByText('Thinking …').click();
      const tool = page.getByRole('group', { name: 'Tool look' });
      const [onPage, text] = hangs
        ? [tool.getByText('Running').waitFor(), '"name":"look"']
        : pieces === 0
          ? [page.locator('.working').waitFor(), began]
          : [sees(`${says} ${pieces}.`), `${says} ${pieces}.`];
      await Promise.all([onPage, agUi.sees(text), openAi.sees(text)]);
    };

    for (const [at, life] of lives.entries()) {
      if (at > 0) server = await start(directory, port, life);
      const connected = connect();
      await everyoneSees(life);
      await screenshot(`killed-${name}-${at}-before`);
      await server.kill();
      expect(await connected).toEqual([[expect.any(String)], [expect.any(String)]]);
      await page.getByText('Reconnecting…').waitFor();
      await screenshot(`killed-${name}-${at}-down`);
    }

    const whole: Life = { says: 'Whole', pieces: 3, ends: true, looks: lives[0].looks ?? false };
    server = await start(directory, port, whole);
    const finalOutput = openAi.finalOutput();
    const connected = connect();
    await everyoneSees(whole);
    expect(JSON.stringify([agUi.messages(), openAi.shown()])).not.toContain(says);
    expect(await page.getByText(says).count()).toBe(0);
    server.end();

    expect(await connected).toEqual([[], []]);
    await isAnswered();
    await screenshot(`killed-${name}-after`);
    const isLooking = whole.looks === true;
    const end = 'Whole 1. Whole 2. Whole 3.';
    const shown = isLooking ? ['I look.', end] : [end];
    const isWhole = async () => {
      expect(await answers()).toEqual(shown);
      expect(await page.locator('.answer').count()).toBe(1);
      expect(await page.locator('body').innerText()).not.toMatch(/Broken|Reconnecting|Thoughts/u);
    };
    await isWhole();
    const said = `${end} `;
    expect(agUi.messages()).toEqual([
      ['user', 'A story?'],
      ...(isLooking
        ? [
            ['assistant', 'I look.'],
            ['tool', 'Found it.'],
          ]
        : []),
      ['assistant', said],
    ]);
    const output = isLooking ? ['I look.', 'look: Found it.', said] : [said];
    expect([openAi.output(), await finalOutput]).toEqual([output, output]);

    const { messages, ...rest } = await history();
    expect([messages.map(({ role }) => role), rest]).toEqual([
      ['user', 'assistant'],
      { id: chatId, head: running, branches: {} },
    ]);
    expect(JSON.stringify(messages)).not.toContain(says);
    await page.reload();
    await sees('Whole 3.');
    await isWhole();
  });
});

interface History {
  readonly messages: readonly { readonly role: string }[];
  readonly running?: string;
}
