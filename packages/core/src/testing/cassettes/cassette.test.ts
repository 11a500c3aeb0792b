import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  catchError,
  concat,
  from,
  lastValueFrom,
  map,
  NEVER,
  of,
  take,
  throwError,
  timer,
  toArray,
} from 'rxjs';
import type { TestScheduler } from 'rxjs/testing';
import fc from 'fast-check';
import { agentTool } from '../../layers/teams/index.js';
import type { ModelChunk, ModelContext, ModelReport, ModelRequest } from '../../models/model.js';
import { createRetryBudget } from '../../models/timeouts.js';
import { createAgent, createDemand, MillraceError, type Model, retry, tool } from '../../index.js';
import {
  cassette,
  finish,
  lentContext,
  marbles,
  modelContract,
  scriptedModel,
  text,
  toolCall,
} from '../index.js';

/** No key, but it looks like one. */
const key = ['sk', 'proj', 'Abc123Def456Ghi789Jkl012'].join('-');

const folder = mkdtempSync(join(tmpdir(), 'cassette-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = (): string => join(folder, `${(files += 1)}.json`);

const before = { ...process.env };
beforeEach(() => {
  delete process.env['CI'];
  delete process.env['MILLRACE_CASSETTES'];
});
afterEach(() => {
  process.env = { ...before };
});

const never: Model = {
  name: 'scripted',
  stream$: () => throwError(() => new Error('The model was asked.')),
};

const asking = (words: string, more: Partial<ModelRequest> = {}): ModelRequest => ({
  ...more,
  messages: [{ id: `${Math.random()}`, role: 'user', content: [{ type: 'text', text: words }] }],
});

const chunksOf = (model: Model, request = asking('?'), context?: Partial<ModelContext>) =>
  lastValueFrom(model.stream$(request, lentContext(context)).pipe(toArray()));

/** Records requests one after the other, and returns the path. */
const recordedBy = async (
  model: Model,
  requests: readonly ModelRequest[] = [asking('?')],
  options: Parameters<typeof cassette>[2] = {},
): Promise<string> => {
  const file = newFile();
  const recording = cassette(file, model, options);
  for (const request of requests) await chunksOf(recording, request).catch(() => undefined);
  recording.verify();
  return file;
};

const stored = (file: string) => JSON.parse(readFileSync(file, 'utf8'));

const weather = tool({ name: 'weather', description: 'Tells the weather.', run: () => 'Snow.' });

describe('cassette', () => {
  it('records a call, then replays it without asking the model', async () => {
    const file = newFile();
    const ask = (model: Model) => createAgent({ model, tools: [weather] }).call('Oslo?');
    const scripted = scriptedModel([text('Let me see.'), toolCall('weather')], [text('It snows.')]);
    const live = await ask(cassette(file, scripted));
    cassette(file, never).verify();
    const replay = cassette(file, never);
    const again = await ask(replay);
    expect(again.text).toBe('It snows.');
    expect(again.toolCalls).toMatchObject(
      live.toolCalls.map(({ name, output }) => ({ name, output })),
    );
    expect(replay.requests).toHaveLength(2);
    expect(() => replay.verify()).not.toThrow();
  });

  it('writes JSON of which each event is a line, and a conversation once', async () => {
    const model = scriptedModel(
      concat(
        of(text('It ')),
        from([text('snows in the mountains, as it does every year.'), finish()]),
      ),
      [text('Yes.')],
    );
    const first = asking('Oslo?', { system: 'Be brief.' });
    const answer = {
      id: 'a',
      role: 'assistant',
      content: [{ type: 'text', text: 'It snows.' }],
    } as const;
    const more = { ...first, messages: [...first.messages, answer, ...asking('Sure?').messages] };
    const file = await recordedBy(model, [first, more]);
    const ms = /\[\d+, /g;
    expect(readFileSync(file, 'utf8').replace(ms, '[0, ')).toBe(`{
  "version": 1,
  "recordings": [
    {
      "model": "scripted",
      "request": {
        "system": "Be brief.",
        "messages": [
          { "id": "m1", "role": "user", "content": [{ "type": "text", "text": "Oslo?" }] }
        ]
      },
      "events": [
        [0, "It "],
        [0, "snows in the mountains, as it does every year."],
        [0, { "type": "finish", "finish": "stop" }]
      ],
      "end": [0, "completed"]
    },
    {
      "model": "scripted",
      "request": {
        "extends": 0,
        "messages": [
          { "id": "m2", "role": "assistant", "content": [{ "type": "text", "text": "It snows." }] },
          { "id": "m3", "role": "user", "content": [{ "type": "text", "text": "Sure?" }] }
        ]
      },
      "events": [[0, "Yes."], [0, { "type": "finish", "finish": "stop" }]],
      "end": [0, "completed"]
    }
  ]
}
`);
    expect(await chunksOf(cassette(file, never), more)).toEqual([text('Yes.'), finish()]);
  });

  it('keeps the name and the abilities of the model', () => {
    const model: Model = { ...never, name: 'm', unsupported: ['toolChoice'], keepsTime: true };
    const { name, unsupported, keepsTime } = cassette(newFile(), model);
    expect([name, unsupported, keepsTime]).toEqual(['m', ['toolChoice'], true]);
  });

  it('lets models share a file, and tells their requests apart', async () => {
    const file = newFile();
    const [large, small] = ['large', 'small'].map((name) => ({
      ...scriptedModel([text(name)]),
      name,
    }));
    if (large === undefined || small === undefined) throw new Error('no models');
    const both = (a: Model, b: Model) => Promise.all([chunksOf(a), chunksOf(b)]);
    await both(cassette(file, large), cassette(file, small));
    cassette(file, never).verify();
    const replays = [
      cassette(file, { ...never, name: 'small' }),
      cassette(file, { ...never, name: 'large' }),
    ] as const;
    expect(await both(...replays)).toEqual([
      [text('small'), finish()],
      [text('large'), finish()],
    ]);
    replays[0].verify();
  });
});

describe('the time of a replay', () => {
  const slow = (): Promise<string> => {
    const file = newFile();
    marbles(({ cold, scheduler, expectObservable }) => {
      const values = { a: text('a'), b: text('b'), f: finish() };
      const model = scriptedModel(cold('10s a 29s b 999ms (f|)', values));
      expectObservable(cassette(file, model).stream$(asking('?'), lentContext({ scheduler })));
    });
    cassette(file, never).verify();
    return Promise.resolve(file);
  };

  it('is none by default', async () => {
    const file = await slow();
    marbles(({ scheduler, expectObservable }) => {
      const chunk$ = cassette(file, never).stream$(asking('?'), lentContext({ scheduler }));
      expectObservable(chunk$).toBe('(abf|)', { a: text('a'), b: text('b'), f: finish() });
    });
  });

  it.each([
    [1, '10s a 29s b 999ms (f|)'],
    [10, '1s a 2899ms b 99ms (f|)'],
  ])(
    'is that of the recording at speed %d, on the scheduler of the call',
    async (speed, marble) => {
      const file = await slow();
      marbles(({ scheduler, expectObservable }) => {
        const model = cassette(file, never, { speed });
        const chunk$ = model.stream$(asking('?'), lentContext({ scheduler }));
        expectObservable(chunk$).toBe(marble, { a: text('a'), b: text('b'), f: finish() });
      });
    },
  );

  it('pauses while demand is closed', async () => {
    const file = await slow();
    marbles(({ scheduler, expectObservable, cold }) => {
      const demand = createDemand(1);
      const model = cassette(file, never, { speed: 1 });
      cold('5s a 34s b 60s c').subscribe((letter) => demand.backlog(letter === 'c' ? 0 : 1));
      const chunk$ = model.stream$(asking('?'), lentContext({ scheduler, demand }));
      expectObservable(chunk$).toBe('99002ms (abf|)', { a: text('a'), b: text('b'), f: finish() });
    });
  });

  it('stops at once for an observer that closes demand or leaves', async () => {
    const file = await slow();
    const demand = createDemand(1);
    const seen: ModelChunk[] = [];
    const subscription = cassette(file, never)
      .stream$(asking('?'), lentContext({ demand }))
      .subscribe((chunk) => {
        seen.push(chunk);
        demand.backlog(1);
      });
    await lastValueFrom(timer(5));
    expect(seen).toEqual([text('a')]);
    subscription.unsubscribe();
    demand.release();
    expect(seen).toHaveLength(1);
  });
});

describe('a replay', () => {
  it('emits one chunk at a time if an observer closes demand and opens it again', async () => {
    const file = await recordedBy(scriptedModel([text('a'), text('b')]));
    const demand = createDemand(1);
    const seen: ModelChunk[] = [];
    cassette(file, never)
      .stream$(asking('?'), lentContext({ demand }))
      .subscribe((chunk) => {
        demand.backlog(1);
        demand.backlog(0);
        seen.push(chunk);
      });
    await lastValueFrom(timer(5));
    expect(seen).toEqual([text('a'), text('b'), finish()]);
  });

  it('leaves no timer when it is cancelled', () => {
    const file = newFile();
    marbles(({ cold, scheduler }) => {
      const model = cassette(file, scriptedModel(cold('10s (f|)', { f: finish() })));
      model.stream$(asking('?'), lentContext({ scheduler })).subscribe();
    });
    cassette(file, never).verify();
    marbles(({ scheduler, flush }) => {
      const model = cassette(file, never, { speed: 1 });
      const subscription = model.stream$(asking('?'), lentContext({ scheduler })).subscribe();
      scheduler.schedule(() => subscription.unsubscribe(), 5);
      flush();
      expect(scheduler.now()).toBe(5);
    });
  });
});

describe('the requests of a replay', () => {
  it('may differ in an option alone', async () => {
    const model = scriptedModel([text('cold')], [text('hot')]);
    const file = await recordedBy(
      model,
      [0, 1].map((temperature) => asking('?', { temperature })),
    );
    const replay = cassette(file, never);
    expect(await chunksOf(replay, asking('?', { temperature: 1 }))).toEqual([
      text('hot'),
      finish(),
    ]);
    expect(await chunksOf(replay, asking('?', { temperature: 0 }))).toEqual([
      text('cold'),
      finish(),
    ]);
  });

  it('may come in another order', async () => {
    const model = scriptedModel([text('A')], [text('B')], [text('A again')]);
    const file = await recordedBy(model, [asking('a'), asking('b'), asking('a')]);
    const replay = cassette(file, never);
    const words = ['b', 'a', 'a'].map((it) =>
      chunksOf(replay, asking(it)).then(([first]) => first),
    );
    expect(await Promise.all(words)).toEqual([text('B'), text('A'), text('A again')]);
    replay.verify();
  });

  it('may have other ids', async () => {
    const request = (id: string): ModelRequest => ({
      messages: [
        {
          id: `${id}/1`,
          role: 'assistant',
          content: [{ type: 'tool_call', id, name: 'f', input: {} }],
        },
        {
          id: `${id}/2`,
          role: 'tool',
          content: [
            {
              type: 'tool_result',
              toolCallId: id,
              content: [{ type: 'text', text: `File ${id} is there.` }],
              isError: false,
              details: { shown: Math.random() },
            },
          ],
        },
      ],
    });
    const calls = await recordedBy(scriptedModel([text('a')]), [asking('call 0123456789abcdef')]);
    await chunksOf(cassette(calls, never), asking('call fedcba9876543210'));
    const orders = await recordedBy(scriptedModel([text('a')]), [asking('order 1234567890123456')]);
    const another = chunksOf(cassette(orders, never), asking('order 1234567890123457'));
    await expect(another).rejects.toThrow(/equals no recording/);
    const [one, other] = [crypto.randomUUID(), crypto.randomUUID()];
    const file = await recordedBy(scriptedModel([text('Fine.')]), [request(one)]);
    expect(readFileSync(file, 'utf8')).not.toContain('shown');
    expect(await chunksOf(cassette(file, never), request(other))).toEqual([
      text('Fine.'),
      finish(),
    ]);
  });

  it('fail with a difference if no recording equals them', async () => {
    const model = scriptedModel([text('1')], [text('2')]);
    const system = ['Be brief.', ...Array.from({ length: 9 }, (_, at) => `Rule ${at}.`)].join('\n');
    const requests = [asking('Go away.'), asking('How is Oslo?', { system, temperature: 0 })];
    const file = await recordedBy(model, requests);
    const replay = cassette(file, never);
    const request = asking('How is Rome?', { system, temperature: 1 });
    await expect(chunksOf(replay, request)).rejects.toMatchObject({
      code: 'invalidRequest',
      retryable: false,
      message: `Request 1 to the model 'scripted' equals no recording that is left in the cassette '${file}'. Recording 2 is the most similar (- recorded, + sent):

        {
          "content": [
            {
-             "text": "How is Oslo?",
+             "text": "How is Rome?",
              "type": "text"
            }
          ],
  …
  Rule 6.\\n
  Rule 7.\\n
  Rule 8.",
-     "temperature": 0
+     "temperature": 1
    }
  }

To record again, delete the file or set MILLRACE_CASSETTES=record.`,
    });
    expect(() => replay.verify()).toThrow(/equals no recording/);
  });

  it('show long and many lines in part', async () => {
    const words = (count: number, word: string) =>
      Array.from({ length: count }, () => word).join(' ');
    const file = await recordedBy(scriptedModel([text('.')]), [asking(`${words(90, 'same')} old`)]);
    const long: unknown = await chunksOf(
      cassette(file, never),
      asking(`${words(90, 'same')} new`),
    ).catch(({ message }: Error) => message);
    expect(long).toMatch(
      /\n- {13}…(?:same )+old",\n\+ {13}…(?:same )+new",\n|- …[^\n]+ old",\n\+ …[^\n]+ new",/,
    );
    const lines = (word: string) =>
      Array.from({ length: 100 }, (_, at) => `${word} ${at}`).join('\n');
    const many = await recordedBy(scriptedModel([text('.')]), [asking(lines('old'))]);
    await expect(chunksOf(cassette(many, never), asking(lines('new')))).rejects.toThrow(
      /\n {2}… 1\d\d more lines\n/,
    );
  });

  it('fail if there are more of them than recordings, or fewer', async () => {
    const file = await recordedBy(scriptedModel([text('1')], [text('2')]), [
      asking('a'),
      asking('b'),
    ]);
    const replay = cassette(file, never);
    await chunksOf(replay, asking('a'));
    expect(() => replay.verify()).toThrow(/has 2 recordings, but only 1 were asked for/);
    await chunksOf(replay, asking('b'));
    await expect(chunksOf(replay, asking('b'))).rejects.toThrow(
      /Request 3 to the model 'scripted' has no recording .* all 2 are played/,
    );
  });

  it('end the call above, too, if a sub-agent makes them', async () => {
    const file = newFile();
    const team = (model: Model, words: string) => {
      const helper = createAgent({ name: 'helper', model, instructions: words });
      const tools = [agentTool(helper, { description: 'Helps.' })];
      return createAgent({ name: 'boss', model, tools }).call('Go!');
    };
    const script = [
      [toolCall('helper', { user_prompt: 'Help!' })],
      [text('Helped.')],
      [text('Done.')],
    ];
    await team(cassette(file, scriptedModel(...script)), 'Be brief.');
    cassette(file, never).verify();
    const replay = cassette(file, never);
    await expect(team(replay, 'Be long.')).rejects.toMatchObject({
      code: 'invalidRequest',
      message: expect.stringMatching(/-[^\n]+Be brief\.[^\n]*\n\+[^\n]+Be long\./),
    });
    expect(replay.requests).toHaveLength(2);
  });

  it('may differ in what is ignored or normalized away', async () => {
    const on = (date: string) => asking(`It is ${date}.`, { temperature: Math.random() });
    const file = await recordedBy(scriptedModel([text('.')]), [on('2026-01-02')]);
    const replay = cassette(file, never, {
      ignore: /\d{4}-\d\d-\d\d/,
      normalize: ({ temperature: _temperature, ...request }) => request,
    });
    await expect(chunksOf(replay, asking('It is noon.'))).rejects.toThrow(/- .*It is \[ignored\]/);
    expect(await chunksOf(replay, on('2027-03-04'))).toEqual([text('.'), finish()]);
  });
});

describe('a recorded request that failed', () => {
  it('fails again, with the same typed error', async () => {
    const error = new MillraceError('rateLimited', 'Slow down.', {
      ...{ status: 429, retryAfterMs: 20_000, requestId: 'r1', partial: 'It', over: 3 },
      userMessage: 'Later.',
      retryable: false,
      cause: new Error('secret'),
    });
    const model = scriptedModel(
      concat(
        of(text('It')),
        throwError(() => error),
      ),
    );
    const file = await recordedBy(model);
    expect(readFileSync(file, 'utf8')).not.toContain('secret');
    const replayed: unknown = await chunksOf(cassette(file, never)).catch((it: unknown) => it);
    expect(replayed).toBeInstanceOf(MillraceError);
    expect({ ...(replayed as object) }).toEqual({ ...error });
    expect(replayed).toMatchObject({ message: 'Slow down.' });
  });

  it('fails with a plain error if the model did', async () => {
    const model = scriptedModel(throwError(() => new TypeError('No.')));
    const file = await recordedBy(model);
    const replayed: unknown = await chunksOf(cassette(file, never)).catch((it: unknown) => it);
    expect(replayed).toEqual(new Error('No.'));
    const throwing: Model = {
      name: 'm',
      stream$: () => {
        throw new Error('At once.');
      },
    };
    const other = await recordedBy(throwing);
    await expect(chunksOf(cassette(other, { ...never, name: 'm' }))).rejects.toThrow('At once.');
  });

  it('is not recorded if its key is missing or refused: the next run may have another', async () => {
    const file = newFile();
    const fails = (code: 'config' | 'auth') => throwError(() => new MillraceError(code, 'No key.'));
    const model = cassette(file, scriptedModel(fails('config'), fails('auth'), [text('a')]));
    await expect(chunksOf(model)).rejects.toMatchObject({ code: 'config' });
    await expect(chunksOf(model)).rejects.toMatchObject({ code: 'auth' });
    expect(existsSync(file)).toBe(false);
    await chunksOf(model);
    expect(stored(file).recordings).toHaveLength(1);
  });

  it('is retried by a wrapper around the cassette as it was', () => {
    const file = newFile();
    const fails = (code: 'server') => throwError(() => new MillraceError(code, 'No.'));
    const run = (model: Model) =>
      marbles(({ scheduler, expectObservable }) => {
        const context = lentContext({ scheduler });
        const chunk$ = retry(model, { jitter: 0 }).stream$(asking('?'), context);
        expectObservable(chunk$).toBe('3s (af|)', { a: text('a'), f: finish() });
      });
    run(cassette(file, scriptedModel(fails('server'), fails('server'), [text('a')])));
    cassette(file, never).verify();
    const replay = cassette(file, never, { speed: 1 });
    run(replay);
    replay.verify();
    expect(stored(file).recordings).toHaveLength(3);
  });

  it('is silent as it was: a wrapper that retries waits for silence twice at most', () => {
    const file = newFile();
    const limits = { firstChunkMs: 100 };
    const timed = (model: Model): Model => ({ ...retry(model, { attempts: 1 }), keepsTime: true });
    const silent = timed({ name: 'scripted', stream$: () => NEVER });
    const run = (model: Model) =>
      marbles(({ scheduler, expectObservable }) => {
        const context = lentContext({ scheduler, timeouts: limits });
        const code$ = retry(model, { jitter: 0 })
          .stream$(asking('?'), context)
          .pipe(
            map(() => 'content'),
            catchError((error: MillraceError) => of(error.code)),
          );
        expectObservable(code$).toBe('1200ms (a|)', { a: 'timeout' });
      });
    run(cassette(file, silent));
    cassette(file, never).verify();
    run(cassette(file, { ...never, keepsTime: true }, { speed: 1 }));
    expect(stored(file).recordings).toHaveLength(2);
  });
});

describe('a recorded request that was cancelled', () => {
  const values = { a: text('a'), b: text('b'), f: finish() };
  const cancelled = (): string => {
    const file = newFile();
    marbles(({ cold, scheduler, expectObservable }) => {
      const model = scriptedModel(cold('-a-b-f', values));
      const chunk$ = cassette(file, model).stream$(asking('?'), lentContext({ scheduler }));
      expectObservable(chunk$, '^---!').toBe('-a-b', values);
    });
    cassette(file, never).verify();
    return file;
  };

  it('can be cancelled again, at a chunk or at a time', async () => {
    const file = cancelled();
    expect(stored(file).recordings).toMatchObject([{ end: [4, 'cancelled'] }]);
    const replay = cassette(file, never);
    expect(
      await chunksOf({ ...replay, stream$: (...args) => replay.stream$(...args).pipe(take(2)) }),
    ).toEqual([text('a'), text('b')]);
    marbles(({ scheduler, expectObservable }) => {
      const model = cassette(file, never, { speed: 1 });
      const chunk$ = model.stream$(asking('?'), lentContext({ scheduler }));
      expectObservable(chunk$, '^---------------!').toBe('-a-b', values);
    });
  });

  it('fails a second later for a consumer that does not cancel', () => {
    const file = cancelled();
    marbles(({ scheduler, expectObservable }) => {
      const model = cassette(file, never, { speed: 1 });
      const outcome$ = model
        .stream$(asking('?'), lentContext({ scheduler }))
        .pipe(catchError((error: MillraceError) => of(`${error.code} ${error.message}`)));
      expectObservable(outcome$).toBe('-a-b 1000ms (e|)', {
        ...values,
        e: `invalidRequest A recording of the cassette '${file}' ends after 2 events, because its consumer cancelled the request. This consumer did not. To record again, delete the file or set MILLRACE_CASSETTES=record.`,
      });
    });
  });
});

describe('the reports of a model', () => {
  it('are replayed in their place, and retries take from the budget', async () => {
    const error = new MillraceError('server', 'Down.', { status: 503 });
    const reports: readonly ModelReport[] = [
      { type: 'modelRetry', model: 'm', attempt: 1, attempts: 3, waitMs: 1000, error },
      { type: 'modelWaiting', model: 'm', waitedMs: 10_000 },
      { type: 'modelFallback', from: 'm', to: 'n', error },
      {
        type: 'repaired',
        before: '{',
        after: '{}',
        toolCall: { type: 'tool_call', id: 'c', name: 'f', input: {} },
      },
      { type: 'queued', why: 'rate', ahead: 2 },
      { type: 'warning', message: 'Hm.' },
    ];
    const model = scriptedModel((_, { report }) => {
      reports.forEach(report);
      return [text('a')];
    });
    const file = await recordedBy(model);
    const seen: ModelReport[] = [];
    const retryBudget = createRetryBudget(1);
    const replay = cassette(file, never);
    await chunksOf(replay, asking('?'), { report: (it) => seen.push(it), retryBudget });
    expect(seen).toEqual(reports);
    expect(seen[0]).toMatchObject({ error: { message: 'Down.', status: 503 } });
    expect(retryBudget.take()).toBe(false);
  });
});

describe('secrets', () => {
  it('are not written, wherever they are, and the redacted call replays', async () => {
    const file = newFile();
    const show = tool({
      name: 'show',
      description: 'Shows.',
      run: () => `password hunter2, ${key}`,
    });
    const ask = (model: Model) =>
      createAgent({ model, tools: [show], instructions: `Your key is ${key}.` }).call('hunter2?');
    const pieces = [key.slice(0, 5), key.slice(5, 9), key.slice(9)];
    const json = JSON.stringify({ key, hunter2: 1 });
    const script = [
      [
        ...pieces.map(text),
        text(' is it.'),
        { type: 'toolCall', index: 0, id: 't1', name: 'show', json: json.slice(0, 20) },
        { type: 'toolCall', index: 0, json: json.slice(20) },
      ] as const,
      concat(
        of(text('hun')),
        throwError(() => new MillraceError('server', `Wrong key ter2 ${key}.`, { requestId: key })),
      ),
    ];
    const options = { redact: ['hunter2', /ter2/] };
    await ask(cassette(file, scriptedModel(...script), options)).catch(() => undefined);
    cassette(file, never).verify();
    const written = readFileSync(file, 'utf8');
    expect(written).not.toMatch(/hunter2|ter2|Abc123|Def456|Ghi789|Jkl012/);
    expect(written).toContain('Your key is [redacted].');
    expect(
      stored(file)
        .recordings[0].events.slice(0, 4)
        .map(([, it]: [number, unknown]) => it),
    ).toEqual(['[redacted]', '', '', ' is it.']);
    const replay = cassette(file, never, options);
    await expect(ask(replay)).rejects.toMatchObject({ code: 'server', requestId: '[redacted]' });
    replay.verify();
  });

  it.each([
    ['a key of a provider', key],
    ['a token of GitHub', ['ghp', 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8'].join('_')],
    ['a key of AWS', ['AKIA', 'IOSFODNN7EXAMPLE'].join('')],
    ['a key of Google', ['AIza', 'SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q'].join('')],
    ['a token', 'Bearer abc123.def-456_ghi'],
    ['a JSON Web Token', ['eyJhbGciOiJIUzI1NiJ9', 'eyJzdWIiOiIxMjM0In0', 'c2lnbmF0dXJl'].join('.')],
    ['a password in an address', 'postgres://user:pa55word@host/db'],
    [
      'a private key',
      ['-----BEGIN RSA PRIVATE', ' KEY-----\nMIIabc\n-----END RSA PRIVATE', ' KEY-----'].join(''),
    ],
  ])('of a known shape are found: %s', async (_, secret) => {
    const file = await recordedBy(scriptedModel([text(`It is ${secret}`)]), [asking(secret)]);
    expect(readFileSync(file, 'utf8').match(/\[redacted\]/g)).toHaveLength(2);
    const long = secret.match(/[\w.-]{8,}/g) ?? [];
    for (const part of long.filter((it) => /\d/.test(it))) {
      expect(readFileSync(file, 'utf8')).not.toContain(part);
    }
  });

  it('do not include ordinary words', async () => {
    const words =
      'sk-learn-is-a-library, https://example.org/a:b@c, Bearer of bad news, task-2026-planning-item';
    const file = await recordedBy(scriptedModel([text(words)]));
    expect(readFileSync(file, 'utf8')).toContain(words);
  });

  it('are refused as patterns that break requests', async () => {
    const model = cassette(newFile(), scriptedModel([]), { redact: 'user' });
    await expect(chunksOf(model)).rejects.toMatchObject({ code: 'config' });
  });
});

describe('whatever a model emits', () => {
  const words = fc.string({ unit: 'binary', maxLength: 20 });
  const chunk = fc.oneof(
    words.map(text),
    fc.record({ type: fc.constant('thinking' as const), text: words, signature: words }),
    fc.record({
      type: fc.constant('toolCall' as const),
      index: fc.nat(2),
      name: words,
      json: words,
    }),
    fc.record({ type: fc.constant('toolCall' as const), name: words, input: fc.jsonValue() }),
    fc.record({ type: fc.constant('usage' as const), usage: fc.record({ inputTokens: fc.nat() }) }),
    fc.record({ type: fc.constant('restart' as const), why: words }),
  );
  const timed = fc.array(fc.tuple(fc.nat(50_000), chunk), { maxLength: 12 });

  const emitted = (model: Model, scheduler: TestScheduler): readonly unknown[] => {
    const seen: unknown[] = [];
    model.stream$(asking('?'), lentContext({ scheduler })).subscribe({
      next: (it) => seen.push([scheduler.now(), it]),
      complete: () => seen.push([scheduler.now(), 'completed']),
    });
    scheduler.flush();
    return seen;
  };

  it('comes again at the same times', () => {
    fc.assert(
      fc.property(timed, (steps) => {
        const file = newFile();
        const model = (scheduler: TestScheduler): Model => ({
          name: 'scripted',
          stream$: () =>
            concat(...steps.map(([ms, it]) => timer(ms, scheduler).pipe(map(() => it)))),
        });
        let live: readonly unknown[] = [];
        marbles(({ scheduler }) => {
          live = emitted(cassette(file, model(scheduler)), scheduler);
        });
        cassette(file, never).verify();
        marbles(({ scheduler }) => {
          const replay = cassette(file, never, { speed: 1 });
          expect(emitted(replay, scheduler)).toEqual(JSON.parse(JSON.stringify(live)));
        });
      }),
      { numRuns: 200 },
    );
  });

  it('has no secret in the file, however it is split', () => {
    const pieces = fc.array(fc.nat(40), { maxLength: 6 }).map((cuts) => {
      const whole = `It is ${key}, is it not?`;
      const places = [0, ...cuts.toSorted((a, b) => a - b), whole.length];
      return places.slice(1).map((end, at) => whole.slice(places[at], end));
    });
    const kinds = fc.constantFrom<((piece: string) => ModelChunk)[]>(
      text,
      (piece) => ({ type: 'thinking', text: piece }),
      (json) => ({ type: 'toolCall', index: 1, json }),
    );
    return fc.assert(
      fc.asyncProperty(pieces, kinds, async (parts, kind) => {
        const file = await recordedBy(scriptedModel(parts.map(kind)));
        const { recordings } = stored(file);
        const written = recordings[0].events
          .map(([, it]: [number, string | { text?: string; json?: string }]) =>
            typeof it === 'string' ? it : (it.text ?? it.json ?? ''),
          )
          .join('');
        expect(written).toBe('It is [redacted], is it not?');
      }),
      { numRuns: 200 },
    );
  });

  const obliging: Model = { name: 'obliging', stream$: () => from([text('4'), finish()]) };
  for (const { name, run } of modelContract(() => cassette(newFile(), obliging))) {
    it(`while it is recorded, a model ${name}`, run);
  }
});

describe('the mode of a cassette', () => {
  it('never records in CI, unless it is told to', async () => {
    process.env['CI'] = 'true';
    const file = newFile();
    expect(() => cassette(file, never)).toThrow(
      `The cassette '${file}' does not exist, and nothing is recorded if the variable CI is set. Run the test on a machine that can reach the model, with MILLRACE_CASSETTES=record, and commit the file.`,
    );
    process.env['MILLRACE_CASSETTES'] = 'record';
    await chunksOf(cassette(file, scriptedModel([text('a')])));
    process.env['MILLRACE_CASSETTES'] = '';
    cassette(file, never).verify();
    expect(await chunksOf(cassette(file, never))).toEqual([text('a'), finish()]);
    process.env['CI'] = 'false';
    expect(() => cassette(newFile(), never)).not.toThrow();
  });

  it('records anew by the variable, once in a process', async () => {
    const file = newFile();
    writeFileSync(file, JSON.stringify({ version: 1, recordings: [] }));
    process.env['MILLRACE_CASSETTES'] = 'record';
    const first = cassette(file, scriptedModel([text('new')]));
    await chunksOf(first);
    first.verify();
    const second = cassette(file, never);
    expect(await chunksOf(second)).toEqual([text('new'), finish()]);
    second.verify();
    expect(stored(file).recordings).toHaveLength(1);
  });

  it('adds to the recordings of an earlier test of the process that did not verify', async () => {
    const file = newFile();
    await chunksOf(cassette(file, scriptedModel([text('1')])), asking('a'));
    await chunksOf(cassette(file, scriptedModel([text('2')])), asking('b'));
    expect(stored(file).recordings).toHaveLength(2);
  });

  it('replays from the start for the next test', async () => {
    const file = await recordedBy(scriptedModel([text('a')]));
    await chunksOf(cassette(file, never));
    expect(await chunksOf(cassette(file, never))).toEqual([text('a'), finish()]);
  });

  it('as an option takes precedence over the variable', () => {
    process.env['MILLRACE_CASSETTES'] = 'record';
    const file = newFile();
    expect(() => cassette(file, never, { mode: 'replay' })).toThrow(
      /does not exist\. Run the test/,
    );
  });

  it('is refused if it is unknown', () => {
    process.env['MILLRACE_CASSETTES'] = 'rewind';
    expect(() => cassette(newFile(), never)).toThrow(
      /must be record, replay or auto, not 'rewind'/,
    );
    expect(() => cassette(newFile(), never, { mode: 'rewind' as never })).toThrow(
      /'mode' must be 'auto' or 'record' or 'replay'/,
    );
    expect(() => cassette(newFile(), never, { speed: 0 })).toThrow(/'speed'/);
    expect(() => cassette(newFile(), never, { redact: [''] })).toThrow(/'redact'/);
    expect(() => cassette(never as never, never)).toThrow(/takes the path or URL of a file/);
    expect(() => cassette(newFile(), 'gpt' as never)).toThrow(/cassette\(\) takes a model/);
  });
});

describe('the file of a cassette', () => {
  it('appears at once, in a folder of its own, and may be a URL', async () => {
    const file = join(folder, 'deep', 'down', 'one.json');
    await chunksOf(cassette(pathToFileURL(file), scriptedModel([text('a')])));
    expect(readdirSync(join(folder, 'deep', 'down'))).toEqual(['one.json']);
    expect(statSync(join(folder, 'deep')).mode & 0o77).toBe(0);
    expect(statSync(file).mode & 0o77).toBe(0);
  });

  it('is not replaced if it cannot be written: the call fails', async () => {
    const place = newFile();
    mkdirSync(join(place, 'inside'), { recursive: true });
    const model = cassette(place, scriptedModel([text('a')]), { mode: 'record' });
    await expect(chunksOf(model)).rejects.toMatchObject({
      code: 'store',
      message: expect.stringContaining('Cannot write the cassette'),
    });
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    const below = newFile();
    writeFileSync(below, '');
    const inFile = cassette(join(below, 'x.json'), scriptedModel([text('a')]), { mode: 'record' });
    await expect(chunksOf(inFile)).rejects.toMatchObject({ code: 'store' });
    const warnings: ModelReport[] = [];
    const silent: Model = { name: 'm', stream$: () => NEVER };
    const other = join(place, 'inside');
    mkdirSync(join(other, 'further'));
    cassette(other, silent, { mode: 'record' })
      .stream$(asking('?'), lentContext({ report: (it) => warnings.push(it) }))
      .subscribe()
      .unsubscribe();
    expect(warnings).toMatchObject([{ type: 'warning' }]);
  });

  const recording = { model: 'm', request: { messages: [] }, events: [], end: [0, 'completed'] };
  const one = (change: object) =>
    JSON.stringify({ version: 1, recordings: [{ ...recording, ...change }] });
  const nested = (depth: number): string => (depth === 0 ? '1' : `[${nested(depth - 1)}]`);
  const bomb = [
    {
      ...recording,
      request: {
        messages: Array.from({ length: 2_000 }, () => ({ id: 'a', role: 'user', content: [] })),
      },
    },
    ...Array.from({ length: 600 }, () => ({ ...recording, request: { extends: 0, messages: [] } })),
  ];
  it.each([
    ['nothing', '', /it is not JSON/],
    ['half of one', one({}).slice(0, -9), /it is not JSON/],
    ['something else', '{"name":"core","version":"1.0.0"}', /it is not a cassette/],
    ['null', 'null', /it is not a cassette/],
    [
      'one of a later version',
      '{"version":2,"recordings":[]}',
      /it has version 2, and this is version 1/,
    ],
    ['deep nesting', `{"version":1,"recordings":${nested(200)}}`, /nested too deeply/],
    ['a recording that is none', '{"version":1,"recordings":[3]}', /recording 1 is not an object/],
    ['a model without a name', one({ model: 3 }), /'model' of recording 1 is invalid/],
    ['messages that are none', one({ request: { messages: [{}] } }), /'request' of recording 1/],
    [
      'a base that is not there',
      one({ request: { extends: 0, messages: [] } }),
      /'request' of recording 1/,
    ],
    [
      'a base by another name',
      one({ request: { extends: '__proto__', messages: [] } }),
      /'request' of recording 1/,
    ],
    ['events that are no list', one({ events: {} }), /'events' of recording 1/],
    ['an unknown chunk', one({ events: [[0, { type: 'magic' }]] }), /event 1 of recording 1/],
    [
      'a chunk of a prototype',
      one({ events: [[0, { type: 'constructor' }]] }),
      /event 1 of recording 1/,
    ],
    [
      'a chunk of another type',
      one({
        events: [
          [0, 'a'],
          [0, { type: 'finish', finish: 3 }],
        ],
      }),
      /event 2 of/,
    ],
    ['a time that no timer has', one({ events: [[-1, 'a']] }), /event 1 of recording 1/],
    [
      'an error of an unknown code',
      one({ end: [0, { error: { code: 'x', message: '' } }] }),
      /'end' of recording 1/,
    ],
    ['no end', one({ end: null }), /'end' of recording 1/],
    ['more messages than fit', JSON.stringify({ version: 1, recordings: bomb }), /it is too large/],
  ])('is refused if it holds %s', (_, content, problem) => {
    const file = newFile();
    writeFileSync(file, content);
    const error = caught(() => cassette(file, never));
    expect(error).toMatchObject({ code: 'config', message: expect.stringMatching(problem) });
    expect(error).toMatchObject({ message: expect.stringContaining('delete it to record again') });
  });

  it('harms nobody with __proto__', async () => {
    const file = newFile();
    const input = '{"__proto__":{"polluted":true}}';
    const events = `[[0,{"type":"toolCall","name":"f","input":${input},"__proto__":{"id":"x"}}]]`;
    const content = `{"__proto__":{"mode":"record"},"version":1,"recordings":[{"__proto__":{"end":1},"model":"scripted","request":${JSON.stringify(stableOf('?'))},"events":${events},"end":[0,"completed"]}]}`;
    writeFileSync(file, content);
    const [chunk] = await chunksOf(cassette(file, never));
    expect(chunk).toMatchObject({ type: 'toolCall', name: 'f' });
    expect(chunk && 'id' in chunk && Object.hasOwn(chunk, 'id')).toBe(false);
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
  });

  it('is refused if it is a folder', () => {
    const place = newFile();
    mkdirSync(place);
    expect(() => cassette(place, never)).toThrow(/Cannot read the cassette .*: it is not a file/);
  });
});

const stableOf = (words: string): ModelRequest => ({
  messages: [{ id: 'm1', role: 'user', content: [{ type: 'text', text: words }] }],
});

const caught = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return error;
  }
};
