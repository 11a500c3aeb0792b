import { describe, expect, it } from '@jest/globals';
import { concat, of, throwError } from 'rxjs';
import { createAgent, MillraceError, only, textOf, tool } from '../../index.js';
import { scriptedModel, text, toolCall } from '../../testing/index.js';
import { assistant, user } from './conversation.test-support.js';
import { shortenOnOverflow } from '../../models/fit-messages.js';
import { sessions } from '../sessions/index.js';

const long = 'word '.repeat(80);

describe('a request that the provider finds too long', () => {
  const over = new MillraceError('contextTooLong', 'Too long.');

  it('C11: is sent once more, shorter, with a warning', async () => {
    const model = scriptedModel(
      throwError(() => over),
      [text('Well.')],
    );
    const agent = createAgent({ model: shortenOnOverflow(model) });
    const warnings: string[] = [];
    agent.events$.pipe(only('warning')).subscribe(({ message }) => warnings.push(message));
    const session = sessions(agent).open('s');
    await session.memory
      .append$([user('h1', long), assistant('h2', long)])
      .forEach(() => undefined);
    expect(textOf(await session.call('And now?'))).toBe('Well.');
    expect(model.requests.map(({ messages }) => messages.length)).toEqual([3, 1]);
    expect(warnings).toEqual([
      "The model 'scripted' rejected the request as too long. Sending it again without 2 earlier messages (about 208 tokens).",
    ]);
  });

  it('C11: ends with contextTooLong when that is too long as well, or there is nothing to leave out', async () => {
    const twice = scriptedModel(
      throwError(() => over),
      throwError(() => over),
    );
    const session = sessions(createAgent({ model: shortenOnOverflow(twice) })).open('s');
    await session.memory
      .append$([user('h1', long), assistant('h2', long)])
      .forEach(() => undefined);
    await expect(session.call('And now?')).rejects.toBe(over);
    twice.verify();
    const once = scriptedModel(throwError(() => over));
    await expect(createAgent({ model: shortenOnOverflow(once) }).call(long)).rejects.toBe(over);
  });

  it('C11: is not sent again when something was shown', async () => {
    const model = scriptedModel(
      concat(
        of(text('Half')),
        throwError(() => over),
      ),
    );
    const look = tool({ name: 'look', description: 'Looks.', run: () => long });
    const session = sessions(createAgent({ model: shortenOnOverflow(model), tools: [look] })).open(
      's',
    );
    await session.memory
      .append$([user('h1', long), assistant('h2', long)])
      .forEach(() => undefined);
    await expect(session.call('?')).rejects.toMatchObject({
      code: 'contextTooLong',
      partial: 'Half',
    });
  });

  it('C11: leaves out old tools of the turn too', async () => {
    const model = scriptedModel(
      [toolCall('look')],
      [toolCall('look')],
      throwError(() => over),
      [text('Done.')],
    );
    const look = tool({ name: 'look', description: 'Looks.', run: () => long });
    await createAgent({ model: shortenOnOverflow(model), tools: [look] }).call('Look around.');
    expect(model.requests.map(({ messages }) => messages.length)).toEqual([1, 3, 5, 3]);
  });
});

describe('a stream that ends early', () => {
  it('X1: keeps what had come in the error', async () => {
    const reset = new MillraceError('connection', 'Reset.', { status: 200, requestId: 'r1' });
    const model = scriptedModel(
      concat(
        of(text('Half a '), text('sen')),
        throwError(() => reset),
      ),
    );
    await expect(createAgent({ model }).call('?')).rejects.toMatchObject({
      code: 'connection',
      message: 'Reset.',
      partial: 'Half a sen',
      retryable: true,
      status: 200,
      requestId: 'r1',
    });
  });
});
