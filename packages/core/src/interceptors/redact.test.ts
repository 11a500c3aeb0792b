import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { firstValueFrom, of } from 'rxjs';
import { createAgent } from '../agent.js';
import { textOf } from '../message.js';
import { record, scriptedModel, text, thinking, toolUse } from '../testing/index.js';
import { tool } from '../tool.js';
import { toolOutput } from '../tool-output.js';
import { redact } from './redact.js';
import { cutAt } from './text-window.test-support.js';
import { sessions } from '../sessions/index.js';

const card = /\b\d{4}(?: ?\d{4}){3}\b/;
const number = '4111 1111 1111 1111';

describe('redact', () => {
  it('X10: takes a secret out of all that the model is sent, and that memory and the reply hold', async () => {
    const pay = tool({ name: 'pay', description: 'Pays.', run: () => `Paid with ${number}.` });
    const model = scriptedModel(
      [toolUse('pay')],
      [text('You paid with 4111 11'), text('11 1111 1111, thanks.')],
    );
    const session = sessions(
      createAgent({
        model,
        instructions: `Never say ${number}.`,
        tools: [pay],
        use: [redact(card)],
      }),
    ).open('s');
    const events = await record(session.stream$(`My card is ${number}.`));
    const stored = await firstValueFrom(session.memory.load$());
    expect(JSON.stringify([model.requests, stored])).not.toContain('1 1');
    const [, ...behind] = events;
    expect(JSON.stringify(behind.filter(({ type }) => type !== 'preCall'))).not.toContain('1 1');
    expect(stored.map(textOf)[0]).toBe('My card is [redacted].');
    expect(textOf(stored.at(-1) ?? { content: [] })).toBe('You paid with [redacted], thanks.');
    expect(model.requests[0]?.system).toBe('Never say [redacted].');
  });

  it('X10: takes it out of what memory had before, and of what is said to the running call', async () => {
    const model = scriptedModel([text('Hm.')]);
    const history = [
      { id: '1', role: 'user', content: [{ type: 'text', text: number }] },
      { id: '2', role: 'assistant', content: [{ type: 'text', text: number }] },
    ] as const;
    const agent = createAgent({
      model,
      use: [redact([card, 'password'], { replacement: (match) => `<${match.length}>` })],
    });
    await sessions(agent, {
      memory: () => ({ load$: () => [history] as never, append$: () => [undefined] as never }),
    })
      .open('s')
      .call('My password?');
    expect(model.requests[0]?.messages.map(textOf)).toEqual(['<19>', '<19>', 'My <8>?']);
  });

  it('leaves thinking as it is: its provider has signed it', async () => {
    const signed = { ...thinking(`The card ${number}`), signature: 'sig' };
    const reply = await createAgent({
      model: scriptedModel([signed as never, text('Ok.')]),
      use: [redact(card)],
    }).call('?');
    expect(reply.content[0]).toMatchObject({
      type: 'thinking',
      text: `The card ${number}`,
      signature: 'sig',
    });
  });

  it('X10: however a text is cut into deltas, nothing of a secret is shown, and nothing else is lost', async () => {
    const piece = fc.oneof(
      fc.constant('KEY-abcdef'),
      fc.constantFrom('a', ' ', 'KEY', '-abc', 'lorem ipsum '),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { minLength: 1 }),
        fc.array(fc.nat(12)),
        async (pieces, sizes) => {
          const whole = pieces.join('');
          const chunks = cutAt(whole, sizes).map(text);
          const agent = createAgent({
            model: scriptedModel(chunks),
            use: [redact(/KEY-abcdef/, { window: 12 })],
          });
          const events = await record(agent.stream$('?')).catch(() => []);
          const shown = events
            .flatMap((event) => (event.type === 'reasoningChunk' ? [event.delta] : []))
            .join('');
          if (whole.trim() !== '') expect(shown).toBe(whole.replace(/KEY-abcdef/g, '[redacted]'));
        },
      ),
      { numRuns: 200 },
    );
  });

  it('X10: takes it out of the closing request and its answer too', async () => {
    const model = scriptedModel([toolUse('none', {}, 'n')], [text(`It is ${number}.`)]);
    const history = [
      { id: '1', role: 'user', content: [{ type: 'text', text: number }] },
      { id: '2', role: 'assistant', content: [{ type: 'text', text: 'Ok.' }] },
    ] as const;
    const remembering = createAgent({ model, use: [redact(card)] });
    const reply = await sessions(remembering, {
      memory: () => ({ load$: () => [history] as never, append$: () => [undefined] as never }),
    })
      .open('s')
      .call('?', { limits: { maxIterations: 1 } });
    expect(textOf(reply)).toBe('It is [redacted].');
    expect(JSON.stringify(model.requests)).not.toContain('1 1');
  });

  it('X10: what is longer than the window may be shown in part, but is not stored', async () => {
    const long = `KEY${'x'.repeat(100)}`;
    const agent = createAgent({
      model: scriptedModel(Array.from(long, (it) => text(it))),
      use: [redact(/KEYx{100}/, { window: 4 })],
    });
    expect(textOf(await agent.call('?'))).toBe('[redacted]');
  });

  it('sees what stands before the window: no word is taken for the end of another', async () => {
    const agent = createAgent({
      model: scriptedModel(Array.from('a monkey, a key', (it) => text(it))),
      use: [redact(/\bkey\b/, { window: 4 })],
    });
    const events = await record(agent.stream$('?'));
    const shown = events.flatMap((it) => (it.type === 'reasoningChunk' ? [it.delta] : [])).join('');
    expect(shown).toBe('a monkey, a [redacted]');
  });

  it('X10: a match far longer than the window is removed to its end, from the stream and from memory', async () => {
    const long = `The key is sk-${'abcdefg'.repeat(100)}. Keep it.`;
    const session = sessions(
      createAgent({
        model: scriptedModel(Array.from(long, (it) => text(it))),
        use: [redact(/sk-[a-z]+/)],
      }),
    ).open('s');
    const events = await record(session.stream$('?'));
    const shown = events.flatMap((it) => (it.type === 'reasoningChunk' ? [it.delta] : [])).join('');
    expect(shown).toBe('The key is [redacted]. Keep it.');
    const stored = await firstValueFrom(session.memory.load$());
    expect(stored.map(textOf)).toEqual(['?', shown]);
  });

  it('H8: covers the progress of a tool, also in pieces, and the details of its result', async () => {
    const secret = 'KEY-abcdef';
    class Found {
      readonly key = secret;
    }
    const search = tool({
      name: 'search',
      description: 'Searches.',
      run: () =>
        of(
          'The key is KE',
          'Y-abc',
          `def. ${'x'.repeat(20)}`,
          { found: [new Found(), 7], at: new Map([[secret, 1]]) },
          toolOutput({
            content: `It is ${secret}.`,
            details: { log: [`a ${secret}`], cause: new Error(secret), bytes: new Uint8Array(2) },
          }),
        ),
    });
    const model = scriptedModel([toolUse('search')], [text('Done.')]);
    const agent = createAgent({
      model,
      tools: [search],
      use: [redact(/KEY-[a-f]+/, { window: 12 })],
    });
    const events = await record(agent.stream$('?'));
    const shown = events.flatMap((it) => (it.type === 'actingChunk' ? [it.value] : []));
    const texts = shown.filter((it) => typeof it === 'string').join('');
    expect(texts).toMatch(/^The key is \[redacted\]\. x+$/);
    expect(shown.at(-1)).toEqual({ found: [{ key: '[redacted]' }, 7], at: [['[redacted]', 1]] });
    const done = events.find((it) => it.type === 'postActing');
    expect(done?.result.details).toMatchObject({
      log: ['a [redacted]'],
      cause: { message: '[redacted]' },
      bytes: new Uint8Array(2),
    });
    expect(inspect(events, { depth: 20 })).not.toContain(secret);
  });

  it('X6: 20,000 deltas take linear time', async () => {
    const agent = createAgent({
      model: scriptedModel(Array.from({ length: 20_000 }, () => text('x '))),
      use: [redact(card)],
    });
    expect(textOf(await agent.call('?'))).toHaveLength(40_000);
  });

  it('refuses what it cannot look for', () => {
    expect(() => redact([])).toThrow(/at least one pattern/);
    expect(() => redact('')).toThrow(/not empty/);
    expect(() => redact('a', { windows: 1 } as never)).toThrow(/'windows'/);
  });
});
