import { describe, expect, it } from '@jest/globals';
import { createAgent } from '../../agent.js';
import { on } from '../../seams/interceptor.js';
import { MillraceError } from '../../values/errors.js';
import { scriptedModel, text, toolCall } from '../../testing/index.js';
import { tool } from '../../tools/tool.js';
import { type LogFields, type Logger, logEvents } from './log-events.js';
import { EMPTY, throwError } from 'rxjs';
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
    ]);
  });

  it('I17: a logger that throws harms nobody', async () => {
    const broken = {
      ...recorder().logger,
      info: () => {
        throw new Error('Disk full');
      },
    };
    const agent = createAgent({ model: scriptedModel([text('Hi.')]), use: [logEvents(broken)] });
    expect((await agent.call('?')).reason).toBe('answer');
  });

  it('takes console, and refuses what is no logger', () => {
    expect(() => logEvents(console)).not.toThrow();
    expect(() => logEvents({} as never)).toThrow(/error, warn, info and debug/);
  });
});
