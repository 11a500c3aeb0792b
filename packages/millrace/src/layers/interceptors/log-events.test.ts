import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { pino } from 'pino';
import type { AgentEvent } from '../../events.js';
import { createAgent } from '../../agent.js';
import { type Interceptor, on } from '../../seams/interceptor.js';
import { MillraceError } from '../../values/errors.js';
import { finish, marbles, scriptedModel, text, toolCall } from '../../testing/index.js';
import { tool } from '../../tools/tool.js';
import { type LogFields, type Logger, logEvents } from './log-events.js';
import { EMPTY, map, throwError, timer } from 'rxjs';
import { sessions } from '../sessions/index.js';

const secret = 'hunter2';

const recorder = () => {
  const lines: (readonly [level: string, fields: LogFields, message: string])[] = [];
  const write = (level: string) => (fields: LogFields, message: string) => {
    lines.push([level, fields, message]);
  };
  const logger: Logger = {
    error: write('error'),
    warn: write('warn'),
    info: write('info'),
    debug: write('debug'),
  };
  return { lines, logger };
};

const echo = tool({ name: 'echo', description: 'Echoes.', run: () => secret });

describe('logEvents', () => {
  it('C10: every line has the fields that find it again, and its own', async () => {
    const { lines, logger } = recorder();
    const model = scriptedModel([text(secret), toolCall('echo', { word: secret })], [text(secret)]);
    const agent = createAgent({ name: 'a', model, tools: [echo], use: [logEvents(logger)] });
    await sessions(agent)
      .open('s')
      .call(secret, { callId: 'c', metadata: { userId: 'u' } });
    expect(lines.map(([level, , message]) => `${level} ${message}`)).toEqual([
      'info preCall',
      'debug preReasoning',
      'debug postReasoning',
      'debug preActing',
      'debug postActing',
      'debug messagesAppended',
      'debug preReasoning',
      'debug postReasoning',
      'debug messagesAppended',
      'info postCall',
    ]);
    for (const [, fields, message] of lines) {
      expect(fields).toMatchObject({
        event: message,
        callId: 'c',
        rootId: 'c',
        sessionId: 's',
        userId: 'u',
        agent: 'a',
      });
    }
    expect(lines[4]?.[1]).toMatchObject({
      iteration: 1,
      tool: 'echo',
      isError: false,
      characters: 7,
    });
    expect(lines.at(-1)?.[1]).toMatchObject({ reason: 'answer', iterations: 2, toolCalls: 1 });
  });

  it('X10: says nothing of what was said', async () => {
    const { lines, logger } = recorder();
    const model = scriptedModel(
      [text(secret), toolCall('echo', { word: secret })],
      throwError(
        () => new MillraceError('auth', `Wrong key ${secret}`, { cause: secret, status: 401 }),
      ),
    );
    const interceptors = [logEvents(logger, { chunks: true })];
    await createAgent({ model, tools: [echo], use: interceptors })
      .call(secret)
      .catch(() => undefined);
    expect(JSON.stringify(lines)).not.toContain(secret);
    expect(lines.at(-1)).toMatchObject([
      'error',
      { code: 'auth', status: 401, retryable: false },
      'error',
    ]);
    expect(lines.filter(([, , message]) => message === 'reasoningChunk')).toMatchObject([
      ['debug', { kind: 'text', characters: 7 }, 'reasoningChunk'],
      ['debug', { kind: 'toolInput' }, 'reasoningChunk'],
    ]);
  });

  it('C10: warns of what went not as it should', async () => {
    const { lines, logger } = recorder();
    const interceptors = [logEvents(logger), on('preActing', () => EMPTY, { name: 'guard' })];
    const model = scriptedModel([toolCall('echo', {}, 'e1')], [text('.')]);
    await createAgent({ model, tools: [echo], use: interceptors }).call('?');
    expect(lines.filter(([level]) => level === 'warn')).toMatchObject([
      ['warn', { of: 'preActing', handler: 'guard', toolCallId: 'e1' }, 'vetoed'],
      ['warn', { tool: 'echo', isError: true }, 'postActing'],
    ]);
  });

  it('I17: a logger that throws harms no one', async () => {
    const broken = {
      ...recorder().logger,
      info: () => {
        throw new Error('Disk full');
      },
    };
    const agent = createAgent({ model: scriptedModel([text('Hi.')]), use: [logEvents(broken)] });
    expect((await agent.call('?')).reason).toBe('answer');
  });

  it('refuses what is no logger', () => {
    expect(() => logEvents({} as never)).toThrow(/error, warn, info and debug/);
    expect(() => logEvents(console, { format: 'json' as never })).toThrow(/'format' must be/);
  });
});

describe('logEvents with console', () => {
  const levels = ['error', 'warn', 'info', 'debug'] as const;
  let written: (readonly unknown[])[] = [];
  beforeEach(() => {
    written = [];
    for (const level of levels) {
      jest
        .spyOn(console, level)
        .mockImplementation((...args) => void written.push([level, ...args]));
    }
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  const usage = {
    type: 'usage',
    usage: { inputTokens: 40, cacheReadTokens: 2, outputTokens: 7 },
  } as const;
  const slow = tool({
    name: 'echo',
    description: 'Echoes.',
    run: () => timer(42).pipe(map(() => secret)),
  });

  const lines = (layer: Interceptor, callId = 'c'): readonly (readonly unknown[])[] => {
    marbles(({ cold, scheduler, flush }) => {
      const model = scriptedModel(
        cold('1250ms t(cuf|)', {
          t: text(secret),
          c: toolCall('echo', { word: secret }),
          u: usage,
          f: finish(),
        }),
        throwError(() => new MillraceError('auth', `Wrong key ${secret}`, { status: 401 })),
      );
      const agent = createAgent({ name: 'a', model, tools: [slow], use: [layer] });
      agent.call$(secret, { callId, scheduler }).subscribe({ error: () => undefined });
      flush();
    });
    return written;
  };

  it('C10: writes one readable line for each event, without content', () => {
    expect(lines(logEvents(console))).toEqual([
      ['info', '00:00:00.000 a c/0 preCall messages=1'],
      ['debug', '00:00:00.000 a c/1 preReasoning messages=1 tools=1'],
      [
        'debug',
        '00:00:01.251 a c/1 postReasoning messageId=c/1 finish=stop tokens=42→7 tools=echo characters=7',
      ],
      ['debug', '00:00:01.251 a c/1 preActing tool=echo toolCallId=call_1_0'],
      [
        'debug',
        '00:00:01.293 a c/1 postActing tool=echo toolCallId=call_1_0 isError=false took=42ms characters=7',
      ],
      ['debug', '00:00:01.293 a c/2 preReasoning messages=3 tools=1'],
      ['error', '00:00:01.293 a c/2 error code=auth retryable=false status=401'],
    ]);
  });

  it('is the default, and shortens random ids', () => {
    const [first, , third] = lines(logEvents(), '0123456789abcdef');
    expect(first).toEqual(['info', '00:00:00.000 a 012345/0 preCall messages=1']);
    expect(third?.[1]).toContain(' a 012345/1 postReasoning messageId=012345/1 ');
  });

  it('formats lines as it is given, also for other loggers', () => {
    const format = ({ agent, event }: LogFields, { at }: AgentEvent) => `${at} ${agent} ${event}`;
    expect(lines(logEvents(console, { format }))[0]).toEqual(['info', '0 a preCall']);
    const { lines: entries, logger } = recorder();
    lines(logEvents(logger, { format }));
    expect(entries[0]).toMatchObject(['info', { event: 'preCall' }, '0 a preCall']);
  });

  it('X10: quotes names that are no words, so that no one forges a line', async () => {
    const model = scriptedModel([toolCall('x=1\n\u001b[31m\u009b "y"')], [text('.')]);
    const use = [logEvents()];
    await createAgent({ name: 'an agent', model, tools: [slow], use }).call('?', { callId: 'c' });
    const line = written.map(([, it]) => String(it)).find((it) => it.includes('postActing'));
    expect(line).toContain(String.raw` "an agent" c/1 postActing tool="x=1\n\u001b[31m? \"y\"" `);
  });
});

describe('logEvents with pino', () => {
  it('C10: writes its level, the fields and the message', async () => {
    const written: string[] = [];
    const logger = pino(
      { level: 'debug', base: null },
      { write: (line: string) => written.push(line) },
    );
    const model = scriptedModel([toolCall('echo', { word: secret }, 'e1')], [text(secret)]);
    const agent = createAgent({ name: 'a', model, tools: [echo], use: [logEvents(logger)] });
    await agent.call(secret, { callId: 'c' });
    const entries: readonly unknown[] = written.map((line) => JSON.parse(line));
    const origin = { callId: 'c', rootId: 'c', agent: 'a', time: expect.any(Number) };
    expect(entries[0]).toEqual({
      ...origin,
      ...{ level: 30, msg: 'preCall', event: 'preCall', iteration: 0, seq: 1, messages: 1 },
    });
    expect(entries).toContainEqual({
      ...origin,
      ...{ level: 20, msg: 'preActing', event: 'preActing', iteration: 1, seq: expect.any(Number) },
      ...{ tool: 'echo', toolCallId: 'e1' },
    });
    expect(entries.at(-1)).toMatchObject({ level: 30, msg: 'postCall', reason: 'answer' });
    expect(written.join('')).not.toContain(secret);
  });
});
